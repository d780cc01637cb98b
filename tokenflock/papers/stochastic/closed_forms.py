r"""Two tokens under random value matrices: the stochastic transformer of 2601.21942.

x_i <- N(x_i + L^{-1/2} V_l sum_j A_ij x_j) with independent centred V_l (entries of variance v,
here v = 1/d unless said otherwise) and Q^T K = I. As L -> inf, R = <x_1, x_2> is a diffusion on
[-1, 1], absorbed at +1 (same point) or, if cosh(2 beta) > d - 2, possibly at -1 (antipodes).
With p = tanh(beta(1-R)/2), drift and variance rate factor as

    drift = (1-R^2) [(d-2)(1-p^2) - R(1+p^2)] v/2,    variance = (1-R^2)^2 (1+p^2) v.
"""

import functools

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import ArrayLike

from ...theory._checks import Array, bounded, inverse_temperature, sphere_dimension, value_variance


def overlap_drift(
    overlap: ArrayLike, d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None = None
) -> Array:
    """Ito drift of R = <x_1, x_2> (model of 2601.21942; formula in the module docstring).

    Equals v[(d-2+R^2)c - (d-1)Rs], s = |m_i|^2, c = <m_1, m_2>, m the attention averages.
    `variance` is v, 1/d when omitted.
    """
    overlap, d, square, v = _state(overlap, d, beta, variance)
    pull = (d - 2) * (1 - square) - overlap * (1 + square)
    return (1 - overlap**2) * pull * v / 2


def overlap_variance(
    overlap: ArrayLike, d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None = None
) -> Array:
    """Variance rate d<R>/dt = (1-R^2)^2(1+p^2)v of R = <x_1, x_2> (model of 2601.21942)."""
    overlap, d, square, v = _state(overlap, d, beta, variance)
    return (1 - overlap**2) ** 2 * (1 + square) * v


def collapse_exponent(d: ArrayLike, variance: ArrayLike | None = None) -> Array:
    """Lyapunov exponent -(d-1)v of 1 - R at R = 1: always attracting (2601.21942)."""
    d = sphere_dimension(d)
    return -(d - 1) * value_variance(variance, d)


def antipodal_exponent(d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None = None) -> Array:
    """Lyapunov exponent ((d-1)/cosh^2(beta) - 2)v of 1 + R at R = -1 (2601.21942).

    Negative (antipodes attract) iff cosh(2 beta) > d - 2.
    """
    d, beta = sphere_dimension(d), inverse_temperature(beta)
    return ((d - 1) / np.cosh(beta) ** 2 - 2) * value_variance(variance, d)


def antipodal_threshold(d: ArrayLike) -> Array:
    """beta above which antipodes attract: cosh(2 beta) = d - 2, and 0 for d <= 3 (2601.21942)."""
    return np.arccosh(np.maximum(sphere_dimension(d) - 2, 1.0)) / 2


def antipodal_probability(overlap: ArrayLike, d: ArrayLike, beta: ArrayLike) -> Array:
    """P(R -> -1) from R(0) = overlap, by the scale function (model of 2601.21942).

    In z = artanh R, where 2 drift/variance is tanh z + (d-2) sech(beta(1 - tanh z)), the scale density is
    sech(z) e^{-(d-2) int sech(beta(1 - tanh z)) dz}: smooth on the unit scale for every beta, exponential
    at both ends. P = int_z^inf / int. arccos(R)/pi for d = 2 at any beta; 0 when cosh(2 beta) <= d - 2
    (d > 2). Independent of v. -1 < overlap < 1, beta below 350; relative error about 1e-12, more only
    next to the transition.
    """
    advice = "the end points are absorbing"
    overlap = bounded("overlap", overlap, -1, 1, closed="neither", advice=advice)
    d, beta = sphere_dimension(d), inverse_temperature(beta)
    overlap, d, beta = np.broadcast_arrays(overlap, d, beta)
    found = np.empty(overlap.shape)
    for model in {*zip(d.flat, beta.flat, strict=True)}:
        here = (d == model[0]) & (beta == model[1])
        found[here] = _absorbed(np.arctanh(overlap[here]), *model)
    return found[()]


# Gauss-Legendre nodes in a panel; two panels per unit of z leave 1e-14 (nearest pole at pi/4).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Where the scale density has become exponential to the last digit, for beta <= 1.
_FAR = 20.0


def _absorbed(z: Array, d: float, beta: float) -> Array:
    """P(R -> -1) from z = artanh R, for one d and beta."""
    # 1 - (d-2)/cosh(2 beta), without its cancellation at d = 3 and small beta
    tail = np.tanh(beta) * np.tanh(2 * beta) - (d - 3) / np.cosh(2 * beta)
    if tail <= 0:
        return np.zeros_like(z)
    far = _FAR + np.log1p(beta) / 2 + float(np.max(np.abs(z), initial=0.0))
    edges = np.unique(np.concatenate([np.linspace(-far, far, int(far * max(4, d / 2))), z]))
    log_density, log_mass = _panels(edges, d, beta)
    top = max(np.max(log_density), np.max(log_mass))
    mass = np.exp(log_mass - top)
    below = np.cumsum([np.exp(log_density[0] - top) / tail, *mass])
    above = np.cumsum([np.exp(log_density[-1] - top) / (d - 1), *mass[::-1]])[::-1]
    at = np.searchsorted(edges, z)
    return above[at] / (above[at] + below[at])


def _panels(edges: Array, d: float, beta: float) -> tuple[Array, Array]:
    """log of the scale density at the edges, and of its integral between them."""
    half = np.diff(edges)[:, None] / 2
    points = edges[:-1, None] + half * (1 + _NODES)
    pull = (d - 2) / np.cosh(beta * (1 - np.tanh(points)))
    whole_panel = (half * pull) @ _WEIGHTS
    inside = half * (pull @ _partial_integrals().T)
    start = np.concatenate([[0.0], np.cumsum(whole_panel)])
    log_density = -start - _log_cosh(edges)
    inner = -start[:-1, None] - inside - _log_cosh(points)
    highest = np.max(inner, axis=1, keepdims=True)
    mass = np.sum(half * _WEIGHTS * np.exp(inner - highest), axis=1)
    return log_density, np.log(mass) + highest[:, 0]


@functools.cache
def _partial_integrals() -> Array:
    """M with (M f)_i = int_{-1}^{x_i} f, exact for polynomials through the Gauss nodes."""
    size = _NODES.size
    values = np.polynomial.legendre.legvander(_NODES, size - 1)
    integrals = np.stack([Legendre.basis(k).integ(lbnd=-1)(_NODES) for k in range(size)], axis=1)
    return integrals @ np.linalg.inv(values)


def _log_cosh(z: Array) -> Array:
    """log(2 cosh z) without overflow."""
    return np.logaddexp(z, -z)


def _state(
    overlap: ArrayLike, d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    overlap = bounded("overlap", overlap, -1, 1, advice="an inner product of unit vectors")
    d, beta = sphere_dimension(d), inverse_temperature(beta)
    return overlap, d, np.tanh(beta * (1 - overlap) / 2) ** 2, value_variance(variance, d)
