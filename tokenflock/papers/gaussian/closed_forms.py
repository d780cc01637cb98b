"""Gaussian measures on R^d under attention without layer norm: closed forms of 2501.18322.

mu = N(alpha, Sigma) and A = beta K^T Q, so that a score is y^T A x. Softmax attention with V = I moves it by
alpha' = (I + Sigma A) alpha and Sigma' = Sigma (A + A^T) Sigma; for symmetric A this is solved below. All
formulas are written without an inverse of Sigma, which may lack rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...theory._checks import Array, bounded, real

# Eigenvalues below this share of the largest are zero up to rounding of the input.
RANK_TOLERANCE = 1e-10


def softmax_covariance(t: ArrayLike, covariance: ArrayLike, A: ArrayLike) -> Array:
    """Sigma(t) = (Sigma_0^{-1} - 2 t A)^{-1} for V = I and symmetric A; times (...) give (..., d, d).

    With R = Sigma_0^{1/2}: R (I - 2 t R A R)^{-1} R. Refused from the blow-up on.
    """
    root, values, vectors = _whitened(covariance, A)
    times = _times_before_blow_up(t, values)
    return _sandwich(root @ vectors, 1.0 / (1.0 - 2.0 * times[..., None] * values))


def softmax_mean(t: ArrayLike, mean: ArrayLike, covariance: ArrayLike, A: ArrayLike) -> Array:
    """alpha(t) = e^t (I - 2 t Sigma_0 A)^{-1/2} alpha_0 for V = I and symmetric A; (..., d).

    Functions of Sigma_0 A commute, which makes this the solution of alpha' = (I + Sigma(t) A) alpha. With
    s = sqrt(1 - 2 t x) the inverse root of 1 - 2 t x is 1 + k x, k = 2t/(s (1 + s)), and k(Sigma_0 A) Sigma_0
    = R k(R A R) R.
    """
    root, values, vectors = _whitened(covariance, A)
    times = _times_before_blow_up(t, values)[..., None]
    start = _vector("mean", mean, len(root))
    s = np.sqrt(1.0 - 2.0 * times * values)
    pull = _sandwich(root @ vectors, 2.0 * times / (s * (1.0 + s)))
    return np.exp(times) * (start + pull @ (_symmetric("A", A) @ start))


def softmax_blow_up_time(covariance: ArrayLike, A: ArrayLike) -> float:
    """t* = 1/(2 lambda_max(Sigma_0^{1/2} A Sigma_0^{1/2})) for V = I, symmetric A; infinity if <= 0."""
    largest = float(_whitened(covariance, A)[1][-1])
    return 1.0 / (2.0 * largest) if largest > 0 else np.inf


def softmax_limit(covariance: ArrayLike, A: ArrayLike) -> Array:
    """Sigma(infinity) for V = I and A <= 0: R Pi R, Pi the projection on the kernel of R A R.

    For invertible Sigma_0 this is the inverse of Sigma_0^{-1} on the kernel of A; approached like 1/t.
    """
    root, values, vectors = _whitened(covariance, A)
    size = np.max(np.abs(values))
    bounded(
        "the largest eigenvalue of Sigma^{1/2} A Sigma^{1/2}",
        values[-1],
        -np.inf,
        RANK_TOLERANCE * size,
        advice="for A with a positive direction the covariance blows up, see softmax_blow_up_time",
    )
    return _sandwich(root @ vectors, (values >= -RANK_TOLERANCE * size).astype(float))


def limit_rank(covariance: ArrayLike, A: ArrayLike) -> int:
    """Rank of `softmax_limit`: d - rank A for invertible Sigma_0. Clustering is this loss of rank."""
    limit = np.linalg.eigvalsh(softmax_limit(covariance, A))
    size = np.linalg.eigvalsh(real("covariance", covariance))[-1]
    return int(np.sum(limit > RANK_TOLERANCE * size))


def l2_slope(covariance: ArrayLike, Q: ArrayLike, K: ArrayLike, c: float) -> Array:
    """Slope of E[y | x] under weights e^{-c |Qx - Ky|^2}: (Sigma^{-1} + 2c K^T K)^{-1} 2c K^T Q.

    As (I + 2c Sigma K^T K)^{-1} 2c Sigma K^T Q. For injective K it is at most |K^+ Q| however large Sigma
    is, so there is no blow-up; for K that is not, it grows with Sigma.
    """
    sigma = _symmetric("covariance", covariance)
    query, key = _map("Q", Q, len(sigma)), _map("K", K, len(sigma))
    if len(query) != len(key):
        raise ValueError(
            f"Q has {len(query)} rows and K {len(key)}; give them equally many, so that Qx - Ky makes sense"
        )
    gain = 2.0 * _scale(c) * sigma @ key.T
    slope = np.linalg.solve(np.eye(sigma.shape[0]) + gain @ key, gain @ query)
    return np.asarray(slope, dtype=np.float64)


def l2_blow_up_time(c: float, seen: float, across: float) -> float:
    """t* = (1 + 2c Sigma_11)/(2c Sigma_12) for K = (1, 0), Q = (0, 1), V = diag(0, 1) in d = 2.

    x_1 rests and Sigma_12' = 2c Sigma_12^2/(1 + 2c Sigma_11): the smallest model of l2 attention with a
    K that is not injective. `seen` = Sigma_11 >= 0, `across` = Sigma_12; infinity for Sigma_12 <= 0 or c = 0.
    """
    c, across = _scale(c), float(real("across", across))
    seen = float(bounded("seen", seen, 0.0, advice="it is the variance of x_1"))
    return (1.0 + 2.0 * c * seen) / (2.0 * c * across) if c * across > 0 else np.inf


def sinkhorn_slope(covariance: ArrayLike, A: ArrayLike) -> Array:
    """M = (Sigma - M Sigma M^T) A: the slope of E[y | x] under Sinkhorn's coupling of mu with itself.

    R = Sigma^{1/2}, R A R = U D W^T, n = (sqrt(1 + 4 D^2) - 1)/(2 D), M = R U n W^T R^{-1}. The joint
    law of (x, y) is Gaussian with e^{y^T A x} as its only cross term, whence the equation. |n| < 1.
    Needs an invertible Sigma.
    """
    sigma = _symmetric("covariance", covariance)
    matrix = _square("A", A, len(sigma))
    values, vectors = np.linalg.eigh(sigma)
    bounded("the smallest eigenvalue of the covariance", values[0], 0.0, closed="neither")
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    U, D, Wt = np.linalg.svd(root @ matrix @ root)
    return root @ (U * sinkhorn_correlation(D)) @ Wt @ inverse


def sinkhorn_correlation(strength: ArrayLike) -> Array:
    """n = (sqrt(1 + 4 D^2) - 1)/(2 D): in one dimension the slope M for D = a sigma^2."""
    D = real("strength", strength)
    return 2.0 * D / (1.0 + np.sqrt(1.0 + 4.0 * D**2))


def bures_w2(mean0: ArrayLike, cov0: ArrayLike, mean1: ArrayLike, cov1: ArrayLike) -> float:
    """W2 of two Gaussians: |m_0 - m_1|^2 + tr(S_0 + S_1 - 2 (S_0^{1/2} S_1 S_0^{1/2})^{1/2}), rooted.

    Written as min over orthogonal O of |S_0^{1/2} - S_1^{1/2} O|^2, which loses no digits where the two
    are close.
    """
    first, second = _root("cov0", cov0), _root("cov1", cov1)
    size = len(_square("cov1", second, len(first), like="cov0"))
    U, _, Wt = np.linalg.svd(second @ first)
    gap = np.linalg.norm(first - second @ U @ Wt)
    away = _vector("mean0", mean0, size) - _vector("mean1", mean1, size)
    return float(np.hypot(gap, np.linalg.norm(away)))


def _whitened(covariance: ArrayLike, A: ArrayLike) -> tuple[Array, Array, Array]:
    """R = Sigma^{1/2}, and the eigenvalues and eigenvectors of R A R."""
    root = _root("covariance", covariance)
    score = _square("A", _symmetric("A", A), len(root))
    values, vectors = np.linalg.eigh(root @ score @ root)
    return root, values, vectors


def _root(name: str, covariance: ArrayLike) -> Array:
    values, vectors = np.linalg.eigh(_symmetric(name, covariance))
    bounded(
        f"the smallest eigenvalue of {name}",
        values[0],
        -RANK_TOLERANCE * max(abs(values[-1]), np.finfo(float).tiny),
        advice="a covariance is positive semidefinite",
    )
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _symmetric(name: str, matrix: ArrayLike) -> Array:
    array = real(name, matrix)
    size = array.shape[0] if array.ndim == 2 else 0
    if size == 0 or array.shape != (size, size):
        raise ValueError(
            f"{name} must be one symmetric matrix, got shape {array.shape}; give (d, d)"
        )
    if not np.allclose(array, array.T, rtol=0, atol=1e-12 * np.abs(array).max()):
        raise ValueError(
            f"{name} must be one symmetric matrix, got {array}; solve the equations instead"
        )
    return array


def _square(name: str, matrix: ArrayLike, size: int, like: str = "the covariance") -> Array:
    array = real(name, matrix)
    if array.shape != (size, size):
        raise ValueError(
            f"{name} has shape {array.shape} and {like} {(size, size)}; give them the same dimension d"
        )
    return array


def _map(name: str, matrix: ArrayLike, size: int) -> Array:
    array = real(name, matrix)
    if array.ndim != 2 or array.shape[1] != size:
        raise ValueError(
            f"{name} has shape {array.shape} and the covariance {(size, size)}; give {name} {size} columns"
        )
    return array


def _vector(name: str, vector: ArrayLike, size: int) -> Array:
    array = real(name, vector)
    if array.shape != (size,):
        raise ValueError(
            f"{name} has shape {array.shape} and the covariance {(size, size)}; give {name} {size} numbers"
        )
    return array


def _scale(c: float) -> float:
    return float(bounded("c", c, 0.0, advice="l2 attention needs c >= 0"))


def _times_before_blow_up(t: ArrayLike, values: Array) -> Array:
    latest = 1.0 / (2.0 * values[-1]) if values[-1] > 0 else np.inf
    return bounded("t", t, 0.0, latest, closed="low", advice="the covariance blows up there")


def _sandwich(frame: Array, diagonal: Array) -> Array:
    """frame diag frame^T for diagonals (..., d)."""
    return (frame * diagonal[..., None, :]) @ frame.T
