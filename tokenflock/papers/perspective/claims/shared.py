"""What several sections of this paper measure: its energy, its models with another V, its starts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ....dynamics import Dynamics
from ....ledger.claim import Case
from ....ledger.measure import MODELS, gram
from ....measure import Measure, from_array
from ....observables import Observable, Snapshot
from ....reduce import Dense
from ....space import Sphere
from ....starts import uniform
from ....weights import Weights


def pulled(model: str, beta: float, sign: float) -> Dynamics:
    """SA or USA with V = sign I: 1 attracts, -1 repels."""
    return MODELS[model](beta, weights=Weights(V=sign))


def turning(d: int, turn: float) -> np.ndarray:
    """I + turn J with J skew: not symmetric, so that no energy belongs to it, unless turn = 0."""
    return np.eye(d) + turn * (np.eye(d, k=1) - np.eye(d, k=-1))


def interaction_energy(states: np.ndarray, beta: float) -> np.ndarray:
    """E = (1/(2 beta n^2)) sum_ij e^{beta <x_i, x_j>} of states (..., n, d), equation (3.5)."""
    return np.exp(beta * gram(states)).mean(axis=(-2, -1)) / (2 * beta)


def polygon(d: int, n: int, samples: int) -> Measure:
    """The regular n-gon in a plane, `samples` times: at rest for every beta, but a saddle."""
    angles = 2 * np.pi * np.arange(n) / n
    points = np.zeros((samples, n, d))
    points[..., 0], points[..., 1] = np.cos(angles), np.sin(angles)
    return from_array(Sphere(d), points)


def generic_or_polygon(case: Case) -> Measure:
    """Independent uniform tokens, or the symmetric start that a statement on almost all excludes."""
    if case.start == "polygon":
        return polygon(case.d, case.n, case.samples)
    return uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)


def read_each(observable: Observable, model: Dynamics, x0: Measure) -> np.ndarray:
    """The value of an observable at every sample of a batch."""
    return np.asarray(_read_each(observable, model, x0))


@eqx.filter_jit
def _read_each(observable: Observable, model: Dynamics, x0: Measure) -> jax.Array:
    def one(points: jax.Array) -> jax.Array:
        return observable(Snapshot(jnp.zeros(()), x0.at(points), model, Dense()))

    return jax.vmap(one)(x0.points)
