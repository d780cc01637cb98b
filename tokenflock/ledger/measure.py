"""What many claims measure: a flow at given times, a field, an observable, the spread of tokens.

Times are padded to a few standard counts, so that claims of equal shape share one compiled program.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics
from ..integrate import Save, solve
from ..kinds import Softmax, Unnormalised
from ..measure import Measure
from ..models import SA, USA
from ..observables import Observable, Snapshot
from ..observables.reading import velocity
from ..reduce import Dense
from ..runtime import ArrayLike
from .claim import Case

STANDARD_COUNTS = (2, 9, 33, 129, 513)
MODELS = {"SA": SA, "USA": USA}
KINDS = {"SA": Softmax(), "USA": Unnormalised()}


def flow(case: Case, model: Dynamics, x0: Measure, times: ArrayLike, **options: Any) -> np.ndarray:
    """The tokens at increasing times, (*beta, *sample, time, n, d), to the tolerances of the case."""
    wanted = np.asarray(times, dtype=float)
    grid = _padded(wanted)
    options = {"rtol": case.rtol, "atol": case.atol, **options}
    run = solve(model, x0, float(grid[-1]), save=Save(at=grid, states=True), **options)
    states = np.asarray(run.array("states"))
    return states[..., np.searchsorted(grid, wanted), :, :]


def _padded(times: np.ndarray) -> np.ndarray:
    """The times, 0 among them, with midpoints of the widest gaps up to a standard count."""
    grid = np.unique(np.concatenate([[0.0], times]))
    count = next((size for size in STANDARD_COUNTS if size >= len(grid)), len(grid))
    while len(grid) < count:
        widest = int(np.argmax(np.diff(grid)))
        grid = np.insert(grid, widest + 1, (grid[widest] + grid[widest + 1]) / 2)
    return grid


def field(model: Dynamics, x0: Measure, t: float = 0.0) -> np.ndarray:
    """The velocity of one measure at a time, (n, d)."""
    return np.asarray(_field(Snapshot(jnp.asarray(t), x0, model, Dense())))


_field = eqx.filter_jit(velocity)


def read(observable: Observable, model: Dynamics, x0: Measure, t: float = 0.0) -> np.ndarray:
    """The value of an observable at one measure."""
    return np.asarray(_read(observable, Snapshot(jnp.asarray(t), x0, model, Dense())))


@eqx.filter_jit
def _read(observable: Observable, snapshot: Snapshot) -> Any:
    return observable(snapshot)


def gram(states: np.ndarray) -> np.ndarray:
    """<x_i, x_j> of states (..., n, d)."""
    return np.einsum("...id,...jd->...ij", states, states)


def off_diagonal(matrices: np.ndarray) -> np.ndarray:
    """The entries i != j of (..., n, n) as (..., n (n - 1))."""
    n = matrices.shape[-1]
    return matrices[..., ~np.eye(n, dtype=bool)]


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors (..., d) divided by their lengths."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def largest_chord(states: np.ndarray) -> np.ndarray:
    """max_ij |x_i - x_j| of states (..., n, d)."""
    differences = states[..., :, None, :] - states[..., None, :, :]
    return np.sqrt(np.max(np.sum(differences**2, axis=-1), axis=(-2, -1)))
