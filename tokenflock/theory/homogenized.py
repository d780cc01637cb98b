r"""Random-depth Transformers (2604.01978): overlaps of tokens under layers of random heads.

x_i <- N(x_i + (eta/H) sum_h V_h m_{A_h}(x_i)), V with entries of variance sigma_V^2 (1/d unless said
otherwise), A = W W'^T. The diffusive clock is tau = (eta^2/H) layer. With R_ij = <x_i, x_j> and
s_ij = E_A <m(x_i), m(x_j)> the layer moves R by sigma_V^2 d tau times

    (d-2+R_ij^2) s_ij - (d-1) R_ij (s_ii+s_jj)/2,   variance (1-R_ij^2)(s_ii+s_jj-2 R_ij s_ij).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad, solve_ivp
from scipy.special import betainc, digamma, gammaln, hyp2f1
from scipy.stats import norm

from ..errors import require
from ._checks import Array, bounded, inverse_temperature, sphere_dimension, value_variance, whole

OVERLAP = "an inner product of unit vectors"


def variance_proxy(d: ArrayLike, variance: ArrayLike | None = None) -> Array:
    """varsig^2 = max E|P_x V m|^2 = sigma_V^2 (d-1) under Gaussian heads (2604.01978)."""
    d = sphere_dimension(d)
    return value_variance(variance, d) * (d - 1)


def noise_strength(
    step: ArrayLike, heads: ArrayLike, d: ArrayLike, variance: ArrayLike | None = None
) -> Array:
    """alpha = eta varsig^2/H under Gaussian heads (2604.01978): noise per unit of t = eta layer."""
    step = bounded("step", step, 0, closed="neither", advice="the layer's step eta")
    return step * variance_proxy(d, variance) / whole("heads", heads, 1)


class Regime(NamedTuple):
    """What must be small or bounded after L layers, and the limit that this selects."""

    noise: float  # alpha eta L: 1 at L = H/(eta^2 varsig^2)
    drift_error: float  # eta^2 L
    modified_error: float  # eta^3 L
    limit: str


def depth_regime(
    layers: int, step: float, heads: int, d: int, variance: float | None = None, small: float = 0.1
) -> Regime:
    """Which limit describes L layers (2604.01978): "ballistic" X' = F, "modified" X' = F - eta/2 grad_F F,
    "diffusive" (the SDE), or "none"; o(1) is read as at most `small`."""
    alpha = float(noise_strength(step, heads, d, variance))
    noise, drift, modified = alpha * step * layers, step**2 * layers, step**3 * layers
    if modified > small:
        limit = "none"
    elif noise > small:
        limit = "diffusive"
    else:
        limit = "ballistic" if drift <= small else "modified"
    return Regime(noise, drift, modified, limit)


def gram_drift(
    overlap: ArrayLike, attended: ArrayLike, d: ArrayLike, variance: ArrayLike | None = None
) -> Array:
    """D_ij of all pairs per unit tau (2604.01978; module docstring); `attended` is the matrix s_ij."""
    R, s, mean = _gram(overlap, attended)
    d = sphere_dimension(d)
    return value_variance(variance, d) * ((d - 2 + R**2) * s - (d - 1) * R * mean)


def gram_variation(
    overlap: ArrayLike, attended: ArrayLike, d: ArrayLike, variance: ArrayLike | None = None
) -> Array:
    """d<R_ij>/dtau = sigma_V^2 (1-R_ij^2)(s_ii+s_jj-2 R_ij s_ij) of all pairs (derived from (G))."""
    R, s, mean = _gram(overlap, attended)
    return value_variance(variance, sphere_dimension(d)) * (1 - R**2) * 2 * (mean - R * s)


def _gram(overlap: ArrayLike, attended: ArrayLike) -> tuple[Array, Array, Array]:
    R = bounded("overlap", overlap, -1 - 1e-12, 1 + 1e-12, advice=OVERLAP)
    s = np.asarray(attended, dtype=np.float64)
    own = np.diagonal(s, axis1=-2, axis2=-1)
    return R, s, (own[..., :, None] + own[..., None, :]) / 2


def simplex_drift(
    gamma: ArrayLike, f: ArrayLike, g: ArrayLike, d: ArrayLike | None = None
) -> Array:
    """Drift of the common overlap of simplex tokens; f = E sum_k p_ik^2, g = E sum_k p_ik p_jk.

    h = (1-gamma)(gamma + g - gamma f), the printed ODE (2604.01978), or with d the exact drift
    ((d-2+gamma^2) S - (d-1) gamma P)/d, S = gamma+(1-gamma)g, P = gamma+(1-gamma)f: O(1/d) away.
    """
    gamma = bounded("gamma", gamma, -1, 1, advice=OVERLAP)
    f, g = np.asarray(f, dtype=np.float64), np.asarray(g, dtype=np.float64)
    if d is None:
        return (1 - gamma) * (gamma + g - gamma * f)
    d = sphere_dimension(d)
    cross, own = gamma + (1 - gamma) * g, gamma + (1 - gamma) * f
    return ((d - 2 + gamma**2) * cross - (d - 1) * gamma * own) / d


def simplex_overlap(
    tau: ArrayLike,
    gamma0: float,
    moments: Callable[[float], tuple[float, float]],
    d: int | None = None,
) -> Array:
    """gamma(tau) with gamma' = simplex_drift, from moments(gamma) = (f, g); tolerance 1e-9.

    n tokens with equal overlaps start between -1/(n-1) and 1.
    """
    tau = bounded("tau", tau, 0, np.inf, closed="low", advice="times start at 0")
    start = "n tokens with equal overlaps have them in (-1/(n-1), 1)"
    gamma0 = float(bounded("gamma0", gamma0, -1, 1, closed="neither", advice=start))

    def rate(_: float, gamma: Array) -> Array:
        inside = np.clip(gamma[0], -1.0, 1.0)
        return np.atleast_1d(simplex_drift(inside, *moments(float(inside)), d))

    wanted = np.atleast_1d(tau)
    found = solve_ivp(
        rate, (0, wanted.max() or 1.0), [gamma0], dense_output=True, rtol=1e-9, atol=1e-9
    )
    require(found.success, f"gamma(tau) could not be followed from {gamma0:g}: {found.message}")
    return found.sol(wanted)[0].reshape(tau.shape)


def logistic_overlap(tau: ArrayLike, start: ArrayLike) -> Array:
    """u0/(u0 + (1-u0) e^{-tau}), the mean overlap at high temperature (2604.01978)."""
    start = bounded("start", start, 0, 1, advice="the mean overlap |mean|^2")
    return start / (start + (1 - start) * np.exp(-np.asarray(tau, dtype=np.float64)))


def logistic_depth(level: ArrayLike, start: ArrayLike) -> Array:
    """tau at which the logistic overlap reaches `level`: about log n from orthogonal tokens (u0 = 1/n)."""
    level = bounded("level", level, 0, 1, closed="neither", advice="below complete collapse")
    start = bounded("start", start, 0, 1, closed="neither", advice="the mean overlap |mean|^2")
    return np.maximum(np.log(level / (1 - level)) - np.log(start / (1 - start)), 0.0)


def layered_depth(
    level: float, n: float, d: int | None = None, step: float = 0.0, heads: int = 1
) -> float:
    """tau = (eta^2/H) L at which n orthogonal tokens reach the mean overlap `level` at beta = 0.

    Two corrections to `logistic_depth(level, 1/n)`, both towards more layers [derived here]:
    - a finite step: a layer takes 1-R to (1-R)/(1+(eta^2/H) u) up to O(1/d), so it multiplies u/(1-u) by
      1+eta^2/H exactly, and L = log(9(n-1))/log(1+eta^2/H) at the level 0.9;
    - a finite d: tau is the integral of 1/simplex_drift with f = g = 1/n.
    Together they neglect O(eta^2/d), the spread of the chains, and that L is whole.
    """
    level = float(bounded("level", level, 1 / n, 1, closed="low", advice="from 1/n to below 1"))
    unit = float(step) ** 2 / heads
    stretch = unit / np.log1p(unit) if unit else 1.0
    if d is None:
        return float(logistic_depth(level, 1 / n)) * stretch
    last = (level - 1 / n) / (1 - 1 / n)
    tau, _ = quad(lambda gamma: 1 / float(simplex_drift(gamma, 1 / n, 1 / n, d)), 0.0, last)
    return tau * stretch


def high_temperature_moments(tokens: ArrayLike, beta: ArrayLike, sigma_A: float) -> Array:
    """s_ij up to O(beta^4) for A = W W'^T with entries of variance sigma_A^2, or d sigma_A^4 per entry of A.

    |xbar|^2 + beta^2 d sigma_A^4 (R_ij tr C^2 + <xbar, E (y-xbar)|y-xbar|^2>), C the tokens' covariance:
    the second-order expansion of the softmax barycentre, E A = 0.
    """
    x, beta = np.asarray(tokens, dtype=np.float64), inverse_temperature(beta)
    n, d = x.shape
    mean = x.mean(axis=0)
    centred = x - mean
    covariance = centred.T @ centred / n
    third = (centred * np.sum(centred**2, axis=1, keepdims=True)).mean(axis=0)
    bend = (x @ x.T) * np.sum(covariance**2) + mean @ third
    return mean @ mean + beta**2 * d * sigma_A**4 * bend


def two_point_exponent(d: ArrayLike, slope: ArrayLike) -> Array:
    """Exponent of 1 - R at R = 1 per unit tau, (-(d-1) + (d-3) slope)/d, where s_12/s_11 ~ 1 - slope (1-R).

    Drift minus half the variance of log(1-R), with s_11 = 1. slope = 0 at beta = 0: -(d-1)/d.
    """
    d = sphere_dimension(d)
    return (-(d - 1) + (d - 3) * np.asarray(slope, dtype=np.float64)) / d


def zero_temperature_exponent(d: ArrayLike, factors: int = 2) -> Array:
    """Two-point exponent at beta = infinity: -(d-1)/(d(d-2)^2) for A = W W'^T, -(d-1)/(d(d-2)) for one
    Gaussian matrix; slope ((d-1)/(d-2))^factors, since E|P_a b|^2/|a|^2 = (d-1)/(d-2)."""
    d = whole("d", d, 3, advice="the exponent exists for d >= 3")
    return two_point_exponent(d, ((d - 1) / (d - 2)) ** _factors(factors))


def direction_overlap(overlap: ArrayLike, d: ArrayLike, factors: int = 2) -> Array:
    """E cos(Ax, Ay) of unit vectors with <x, y> = R, A one Gaussian matrix or W W'^T (two factors).

    One: rho_d(R) = R (2/d)(Gamma((d+1)/2)/Gamma(d/2))^2 2F1(1/2, 1/2; (d+2)/2; R^2) = R + (R^3-R)/(2d) + ...
    Two: the mean of rho_d over Fisher's law of the sample correlation of d pairs; R + (R^3-R)/d + ...
    Relative error about 1e-12, for d >= 2 and all R.
    """
    R = bounded("overlap", overlap, -1, 1, advice=OVERLAP)
    return R - R * (1 - R) * (1 + R) * _loss(R, sphere_dimension(d), factors)


def slow_coefficient(overlap: ArrayLike, d: ArrayLike, factors: int = 2) -> Array:
    """k_d(R) = -d D/(R(1-R^2)) at beta = infinity: 2 + O(1/d) for A = W W'^T, 3/2 for one matrix.

    D from `gram_drift` with s_11 = 1 and s_12 = direction_overlap: k_d = 1 + (d-2+R^2)(R - s_12)/(R(1-R^2)),
    by continuity at R = 0. The slow limit is printed with k = 1.
    """
    R = bounded("overlap", overlap, -1, 1, closed="neither", advice="away from +-1")
    d = sphere_dimension(d)
    return 1 + (d - 2 + R**2) * _loss(R, d, factors)


def _loss(overlap: Array, d: Array, factors: int) -> Array:
    """(R - E cos)/(R(1-R^2)), a smooth even function of R, computed without a difference.

    With q of one factor and r the correlation of its images, E r = R - R(1-R^2) q(R), so that two factors
    lose q(R) + E[r(1-r^2) q(r)]/(R(1-R^2)).
    """
    single = _factors(factors) == 1

    def one(R: float, d: float) -> float:
        # Even in R: 1e-4 stands for 0 (they differ by 1e-8), and the end points are approached only.
        R = min(max(abs(R), 1e-4), 1 - 1e-15)
        gap = (1 - R) * (1 + R)
        own = float(_single_loss(np.asarray(gap), d))
        return own if single else own + _second_loss(R, d) / (R * gap)

    return np.vectorize(one, otypes=[float])(overlap, d)[()]


def _single_loss(gap: Array, d: float) -> Array:
    """q = (1 - rho_d(R)/R)/(1-R^2) from gap = 1 - R^2: the mean over [R^2, 1] of the 2F1's derivative.

    That derivative may end like a logarithm (d = 2): points 1 - gap v^4 keep Gauss's rule at full order.
    """
    v, weight = np.polynomial.legendre.leggauss(64)
    v, weight = (1 + v) / 2, weight / 2
    scale = 2 / d * np.exp(2 * (gammaln((d + 1) / 2) - gammaln(d / 2))) / (2 * (d + 2))
    return scale * (_slope(gap[..., None] * v**4, d) @ (4 * v**3 * weight))


def _slope(rest: Array, d: float) -> Array:
    """2F1(3/2, 3/2; (d+4)/2; 1 - rest), for large d and next to 1 at d = 2 as well, where SciPy fails."""
    if d >= 60:
        n = np.arange(40.0)
        ratios = (n + 1.5) ** 2 / (((d + 4) / 2 + n) * (n + 1))
        series = np.append(1.0, np.cumprod(ratios))
        return np.asarray(np.polynomial.polynomial.polyval(1 - rest, series), dtype=np.float64)
    if d > 2:
        return hyp2f1(1.5, 1.5, (d + 4) / 2, 1 - rest)
    # (Gamma(3)/Gamma(3/2)^2)(-log rest - 2 gamma - 2 psi(3/2)) + O(rest log rest)
    end = 8 / np.pi * (-np.log(np.maximum(rest, 1e-300)) + 2 * digamma(1) - 2 * digamma(1.5))
    return np.where(rest < 1e-10, end, hyp2f1(1.5, 1.5, 3.0, 1 - np.maximum(rest, 1e-10)))


def _second_loss(R: float, d: float) -> float:
    """E[r(1-r^2) q(r)] over Fisher's law, by a sum over even points in z = artanh r.

    There the law is a bell of width d^{-1/2} around artanh R with tails e^{-(d-1)|z|} at least; times 1 - r^2
    the left one falls like e^{-(d-2)z} only, until r = 0 is passed.
    """
    centre, width = np.arctanh(R), 12 / np.sqrt(d)
    low = max(centre - width - 40 / max(d - 2, 1e-9), -40 / (d - 1) - width)
    high = centre + width + 40 / (d - 1)
    z = np.arange(low, high, min(0.2, 0.5 / np.sqrt(d)))
    # log(1 - r^2) and 1 - R r without cancellation at r = +-1.
    squeeze = -2 * (np.logaddexp(z, -z) - np.log(2))
    apart = (1 - R) + R * 2 / (1 + np.exp(2 * z))
    law = np.exp(_fisher(R, squeeze, apart, d) + 2 * squeeze)
    return float((law * np.tanh(z) * _single_loss(np.exp(squeeze), d)).sum() * (z[1] - z[0]))


def correlation_log_density(r: ArrayLike, overlap: ArrayLike, d: ArrayLike) -> Array:
    """log density of the correlation of d Gaussian pairs of correlation R, means known (Fisher 1915)."""
    r = bounded("r", r, -1, 1, closed="neither", advice="a correlation")
    R = bounded("overlap", overlap, -1, 1, closed="neither", advice="a correlation")
    return _fisher(R, np.log1p(-(r**2)), 1 - R * r, sphere_dimension(d))


def _fisher(R: ArrayLike, squeeze: Array, apart: Array, d: ArrayLike) -> Array:
    """The same from log(1 - r^2) and 1 - R r."""
    R, d = np.asarray(R, dtype=np.float64), np.asarray(d, dtype=np.float64)
    constant = np.log(d - 1) + gammaln(d) - gammaln(d + 0.5) - np.log(2 * np.pi) / 2
    powers = d / 2 * np.log((1 - R) * (1 + R)) + (d - 3) / 2 * squeeze - (d - 0.5) * np.log(apart)
    return constant + powers + np.log(hyp2f1(0.5, 0.5, d + 0.5, 1 - apart / 2))


def slow_probability(start: ArrayLike, k: ArrayLike) -> Array:
    """P(u -> 1) for du = -k u(1-u^2)dt + sqrt2 (1-u^2)dB, k < 2: I_{(1+u0)/2}(1-k/2, 1-k/2).

    From the scale density (1-u^2)^{-k/2}; 1/2 + arcsin(u0)/pi at k = 1 (2604.01978). At k >= 2 neither
    end is ever reached: the chain keeps wandering.
    """
    start = bounded("start", start, -1, 1, advice=OVERLAP)
    k = bounded("k", k, high=2, closed="low", advice="at k >= 2 nothing is absorbed")
    return betainc(1 - k / 2, 1 - k / 2, (1 + start) / 2)


def slow_share(level: ArrayLike, t: ArrayLike, k: int) -> Array:
    """P(|u(t)| > level) of the slow limit from u = 0, in closed form at k = 0 and at the critical k = 2.

    z = artanh u obeys dz = (2-k) tanh z dt + sqrt2 dB: N(0, 2t) at k = 2, and at k = 0 (an h-transform
    by cosh) the even mixture of N(+-2t, 2t).
    """
    z = np.arctanh(bounded("level", level, 0, 1, closed="low", advice="0 <= level < 1"))
    t = bounded("t", t, 0, closed="neither", advice="t > 0")
    if k not in (0, 2):
        raise ValueError(
            f"the law is closed at k = 0 and k = 2, got {k}; use flock.random_depth.slow"
        )
    shift = 2 * t if k == 0 else 0.0 * t
    return norm.sf((z - shift) / np.sqrt(2 * t)) + norm.sf((z + shift) / np.sqrt(2 * t))


def _factors(factors: int) -> int:
    if factors not in (1, 2):
        raise ValueError(
            f"factors must be 1 (one Gaussian matrix) or 2 (A = W W'^T), got {factors}"
        )
    return factors
