"""The health of a run: what it can say about its own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dynamics import Dynamics, Lab
from .kinds import Softmax, Unnormalised
from .masks import Full
from .measure import Measure
from .reduce import Reduction
from .terms import Attention
from .weights import Weights

# Beyond this many tokens the energy would cost more than the run it watches over.
LARGEST_WATCHED = 20_000
ENERGY = "scaled_energy"


def energy_direction(model: Dynamics, measure: Measure) -> int:
    """+1 or -1 where theory makes the energy monotone, 0 where it says nothing.

    SA and USA with Q = K = I, V = c I, every token visible, no noise (2312.10794, eq. 3.6); every
    normalisation scheme only changes the clock of each token (2510.22026).
    """
    term = model.terms
    if not isinstance(term, Attention) or model.noise is not None or measure.n > LARGEST_WATCHED:
        return 0
    if not isinstance(term.weights, Weights):
        return 0
    weights = term.weights
    plain = not weights.matrices() and isinstance(model.frame, Lab)
    gradient = isinstance(term.kind, Unnormalised) or term.kind == Softmax()
    positive = bool(np.all(np.asarray(term.beta) > 0))
    if not (plain and gradient and positive and isinstance(term.mask, Full)):
        return 0
    return 1 if weights.V is None else int(np.sign(float(weights.V)))


def energy_violation(energy: np.ndarray, direction: int, time_axis: int) -> float:
    """Largest step of the energy in the forbidden direction, relative to the energy."""
    steps = direction * np.diff(energy, axis=time_axis)
    before = np.take(energy, range(energy.shape[time_axis] - 1), axis=time_axis)
    relative = -steps / np.abs(before)
    return float(max(0.0, np.nanmax(relative, initial=0.0)))


def health_report(
    model: Dynamics, measure: Measure, reduction: Reduction, arrays: dict[str, Any], time_axis: int
) -> dict[str, Any]:
    """Norm drift, monotonicity, finiteness, step counts, error bound."""
    final = np.asarray(arrays["final_points"])
    finite = bool(np.all(np.isfinite(final)))
    report: dict[str, Any] = {
        "finite": finite,
        "norm_drift": measure.space.worst_defect(final),
        "reduction_error_bound": reduction.error_bound(measure.n),
    }
    for name in ("steps", "accepted_steps", "rejected_steps"):
        report[name] = int(np.sum(np.asarray(arrays[name])))
    direction = energy_direction(model, measure)
    if direction and ENERGY in arrays:
        energy = np.asarray(arrays[ENERGY])
        report["energy_violation"] = energy_violation(energy, direction, time_axis)
    return report
