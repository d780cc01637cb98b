"""Its rescaled model, and matrices drawn from a seed."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....models import RescaledSA
from ....weights import Weights


def rescaled(scores: np.ndarray, values: np.ndarray) -> Dynamics:
    """z_i' = sum_j P_ij V (z_j - z_i) with Q^T K = scores and V = values; beta is part of scores.

    Both are always matrices, so that all claims of equal n and d share one compiled program.
    """
    return RescaledSA(1.0, Weights(B=scores, V=values))


def eighths(t: float) -> np.ndarray:
    """0, t/8, ..., t: one count of times for all claims, hence one program."""
    return t * np.linspace(0.0, 1.0, 9)


def positive_definite(d: int, seed: int) -> np.ndarray:
    """A generic symmetric matrix with eigenvalues between 1/2 and 3/2."""
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    return rotation @ np.diag(np.linspace(0.5, 1.5, d)) @ rotation.T


def generic_basis(d: int, seed: int) -> np.ndarray:
    """An oblique, well-conditioned basis: a rotation of (identity + upper triangle), in columns."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return rotation @ (np.eye(d) + 0.4 * np.triu(rng.normal(size=(d, d)), 1))
