"""The health of a run: what it can say about its own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dynamics import Dynamics, Lab
from .kinds import Softmax, Unnormalised
from .masks import Full
from .measure import Measure
from .terms import Attention
from .weights import Weights

# Beyond this many tokens the energy would cost more than the run it watches over.
LARGEST_WATCHED = 20_000
ENERGY = "scaled_energy"


def energy_direction(model: Dynamics, measure: Measure) -> int:
    """+1 or -1 where theory makes the energy monotone, 0 where it says nothing.

    SA and USA with Q = K = I, V = c I, every token visible, no noise (2312.10794, eq. 3.6); layer norm,
    wherever it stands, only changes the clock of each token (2510.22026).
    """
    term = model.terms
    if not model.scheme().changes_clock_only:
        return 0
    if model.now(0.0) is not model:  # The energy itself changes where its numbers do.
        return 0
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
    signs = {1} if weights.V is None else {int(sign) for sign in np.sign(np.ravel(weights.V))}
    return signs.pop() if len(signs) == 1 else 0


def energy_violation(energy: np.ndarray, direction: int, time_axis: int) -> float:
    """Largest step of the energy in the forbidden direction, relative to the energy."""
    steps = direction * np.diff(energy, axis=time_axis)
    before = np.take(energy, range(energy.shape[time_axis] - 1), axis=time_axis)
    relative = -steps / np.abs(before)
    return float(max(0.0, np.nanmax(relative, initial=0.0)))


def token_health(
    model: Dynamics, measure: Measure, arrays: dict[str, Any], time_axis: int
) -> dict[str, Any]:
    """How far the energy went in the forbidden direction, where there is one."""
    direction = energy_direction(model, measure)
    if not direction or ENERGY not in arrays:
        return {}
    energy = np.asarray(arrays[ENERGY])
    return {"energy_violation": energy_violation(energy, direction, time_axis)}
