r"""Two tokens under random value matrices: the stochastic transformer of 2601.21942.

x_i <- N(x_i + L^{-1/2} V_l sum_j A_ij x_j) with independent centred V_l (entries of variance v,
here v = 1/d unless said otherwise) and Q^T K = I. As L -> inf, R = <x_1, x_2> is a diffusion on
[-1, 1], absorbed at +1 (same point) or, if cosh(2 beta) > d - 2, possibly at -1 (antipodes).
With p = tanh(beta(1-R)/2), drift and variance rate factor as

    drift = (1-R^2) [(d-2)(1-p^2) - R(1+p^2)] v/2,    variance = (1-R^2)^2 (1+p^2) v.
"""

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike
from scipy.integrate import quad

from ._checks import Array, bounded, inverse_temperature, whole


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
    d = _dimension(d)
    return -(d - 1) * _variance(variance, d)


def antipodal_exponent(d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None = None) -> Array:
    """Lyapunov exponent ((d-1)/cosh^2(beta) - 2)v of 1 + R at R = -1 (2601.21942).

    Negative (antipodes attract) iff cosh(2 beta) > d - 2.
    """
    d, beta = _dimension(d), inverse_temperature(beta)
    return ((d - 1) / np.cosh(beta) ** 2 - 2) * _variance(variance, d)


def antipodal_threshold(d: ArrayLike) -> Array:
    """beta above which antipodes attract: cosh(2 beta) = d - 2, and 0 for d <= 3 (2601.21942)."""
    return np.arccosh(np.maximum(_dimension(d) - 2, 1.0)) / 2


def antipodal_probability(overlap: ArrayLike, d: ArrayLike, beta: ArrayLike) -> Array:
    """P(R -> -1) from R(0) = overlap, by the scale function (model of 2601.21942).

    Scale density (1-R)^{(d-3)/2} (1+R)^{-(1+(d-2)S)/2} e^{-(d-2)H(R)} with S = 1/cosh(2 beta),
    H' = [(s(R)-1)/(1-R) + (s(R)-S)/(1+R)]/2, s(R) = 1/cosh(beta(1-R)); integrated with the
    singular power at -1 as a quadrature weight. arccos(R)/pi for d = 2 at any beta; 0 when
    cosh(2 beta) <= d - 2 (d > 2). Independent of v.
    -1 < overlap < 1; relative error about 1e-9, beta below about 40.
    """
    advice = "the end points are absorbing"
    overlap = bounded("overlap", overlap, -1, 1, closed="neither", advice=advice)
    d, beta = _dimension(d), inverse_temperature(beta)
    return np.vectorize(_antipodal_probability, otypes=[float])(overlap, d, beta)[()]


def _antipodal_probability(overlap: float, d: float, beta: float) -> float:
    if d == 2:
        return float(np.arccos(overlap) / np.pi)  # scale density (1-R^2)^{-1/2}
    far = 1 / np.cosh(2 * beta)
    if (d - 2) * far >= 1:
        return 0.0
    right, left = (d - 3) / 2, -(1 + (d - 2) * far) / 2
    regular = _regular_exponent(beta)

    def exponent(r: Array) -> Array:
        """log of the scale density without the power of 1+R."""
        return right * np.log1p(-r) - (d - 2) * regular(r)

    top = exponent(np.linspace(-1, 1, 2000, endpoint=False)).max()

    def smooth(r: float) -> float:
        return float(np.exp(exponent(np.asarray(r)) - top))

    tight = {"epsabs": 0.0, "epsrel": 1e-11, "limit": 400}
    above = quad(lambda r: smooth(r) * (1 + r) ** left, overlap, 1, **tight)[0]
    below = quad(smooth, -1, overlap, weight="alg", wvar=(left, 0), **tight)[0]
    return above / (above + below)


def _regular_exponent(beta: float) -> Chebyshev:
    """H of `antipodal_probability`: analytic on [-1, 1], nearest pole at distance pi/(2 beta)."""

    def slope(r: Array) -> Array:
        near, far = np.cosh(beta * (1 - r)), np.cosh(2 * beta)
        first = -2 * np.sinh(beta * (1 - r) / 2) ** 2 / ((1 - r) * near)
        second = 2 * np.sinh(beta * (3 - r) / 2) * np.sinh(beta * (1 + r) / 2)
        return (first + second / ((1 + r) * near * far)) / 2

    return Chebyshev.interpolate(slope, int(40 + 30 * beta)).integ()


def _state(
    overlap: ArrayLike, d: ArrayLike, beta: ArrayLike, variance: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    overlap = bounded("overlap", overlap, -1, 1, advice="an inner product of unit vectors")
    d, beta = _dimension(d), inverse_temperature(beta)
    return overlap, d, np.tanh(beta * (1 - overlap) / 2) ** 2, _variance(variance, d)


def _dimension(d: ArrayLike) -> Array:
    return whole("d", d, 2, advice="the sphere S^{d-1} needs d >= 2")


def _variance(variance: ArrayLike | None, d: Array) -> Array:
    if variance is None:
        return 1 / d
    return bounded("variance", variance, 0, np.inf, advice="the variance of an entry of V")
