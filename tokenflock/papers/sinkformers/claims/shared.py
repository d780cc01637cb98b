"""Its three kernels as models of the engine, and random tokens."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....kinds import Kind, Sinkhorn, Softmax, Unnormalised
from ....measure import Measure
from ....space import Euclidean
from ....terms import Attention
from ....weights import Weights

NUMBER = "the statement's number was not seen"
KINDS: dict[str, Kind] = {
    "unnormalised": Unnormalised(),
    "softmax": Softmax(),
    "sinkhorn": Sinkhorn(threshold=1e-12),
}


def attention(kind: str, B: np.ndarray, V: np.ndarray) -> Dynamics:
    """x_i' = sum_j K_ij V x_j with scores x_i^T B x_j, on R^d; K^0, K^1 or K^inf by its kind."""
    return Dynamics(None, Attention(Weights(B=B, V=V), 1.0, KINDS[kind]), label=kind)


def random_tokens(rng: np.random.Generator, n: int, d: int) -> Measure:
    """Gaussian tokens with random masses."""
    return Measure(Euclidean(d), rng.normal(size=(n, d)), rng.uniform(0.5, 1.5, n))


def random_symmetric(rng: np.random.Generator, d: int) -> np.ndarray:
    """A symmetric B with eigenvalues of both signs, from -0.5 to 1, in a random frame."""
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0]
    matrix = (frame * np.linspace(-0.5, 1.0, d)) @ frame.T
    return (matrix + matrix.T) / 2
