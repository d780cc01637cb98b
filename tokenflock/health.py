"""The health of a run: what it can say about its own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dynamics import Dynamics
from .measure import Measure
from .observables.base import Observable
from .observables.energies import energy, scaled_energy
from .weights import shapes_of

# Beyond this many tokens the energy would cost more than the run it watches over.
LARGEST_WATCHED = 20_000


def watched_energy(model: Dynamics) -> Observable:
    """The energy that is watched: scaled to at most 1 where it is that of an exponential."""
    return scaled_energy if model.attentions()[0].kind.exponential else energy


def energy_direction(model: Dynamics, measure: Measure) -> int:
    """+1 or -1 where theory makes the energy monotone, 0 where it says nothing.

    Attention with an energy, Q = K = I, V = c I, every token visible, no noise (2312.10794, eq. 3.6; other
    kinds 2405.18273); layer norm, wherever it stands, only changes the clock of each token (2510.22026).
    """
    attention = model.terms.attention()
    if not model.scheme().changes_clock_only:
        return 0
    if model.now(0.0) is not model:  # The energy itself changes where its numbers do.
        return 0
    if attention is None or model.noise is not None or measure.n > LARGEST_WATCHED:
        return 0
    positive = bool(np.all(np.asarray(attention.beta) > 0))
    tied = attention.has_pairs and not shapes_of(attention.weights)
    if not (tied and positive and model.frame.is_original):
        return 0
    weights = attention.weights.at(0.0)
    signs = {1} if weights.V is None else {int(sign) for sign in np.sign(np.ravel(weights.V))}
    return signs.pop() if len(signs) == 1 else 0


def energy_violation(energy: np.ndarray, direction: int, time_axis: int) -> float:
    """Largest step of the energy in the forbidden direction, relative to the energy.

    An energy that may pass through 0 is measured by its largest value.
    """
    steps = direction * np.diff(energy, axis=time_axis)
    before = np.abs(np.take(energy, range(energy.shape[time_axis] - 1), axis=time_axis))
    # Rows after the end of a member are NaN.
    if np.any(energy <= 0):
        before = np.max(np.abs(np.nan_to_num(energy)), axis=time_axis, keepdims=True)
    relative = -steps / np.maximum(before, np.finfo(float).tiny)
    return float(max(0.0, np.nanmax(relative, initial=0.0)))


def token_health(
    model: Dynamics, measure: Measure, arrays: dict[str, Any], time_axis: int
) -> dict[str, Any]:
    """How far the energy went in the forbidden direction, where there is one."""
    direction = energy_direction(model, measure)
    name = watched_energy(model).name if direction else ""
    if name not in arrays:
        return {}
    found = energy_violation(np.asarray(arrays[name]), direction, time_axis)
    return {"energy_violation": found}
