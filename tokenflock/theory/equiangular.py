r"""Tokens with one common inner product gamma: the exact scalar ODE of SA and USA.

If <x_i, x_j> = gamma for all i != j at time 0 (orthogonal tokens: gamma = 0), symmetry keeps it so.
The stable variable is

    w = (1 - gamma) / ((n-1) gamma + 1),   gamma = (1 - w) / (1 + (n-1) w),   w: inf -> 0,

in which the flow reads d log w / dt = -2n/(e^{beta(1-gamma)} + n - 1) for SA and
-2 e^{beta gamma} for USA; 1 - gamma = n w/(1 + (n-1) w) keeps full relative accuracy near 1.

`kind` is `kinds.Softmax()` for SA or `kinds.Unnormalised(convention)` for USA in one of its clocks:
"perspective" has weights e^{beta<x,y>}/n (2312.10794), "metastability" e^{beta(<x,y>-1)}/n (2410.06833),
slower by e^{-beta}.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ._checks import Array, bounded, chosen, inverse_temperature, whole
from ._kinds import SA, Kind, averages, log_speed
from ._special import log_integral, scaled_e1, scaled_ei

Method = Literal["closed", "quadrature"]


def w_from_gamma(gamma: ArrayLike, n: ArrayLike) -> Array:
    """Stable variable w = (1-gamma)/((n-1)gamma+1), for -1/(n-1) < gamma <= 1, n >= 2."""
    n = _tokens(n)
    gamma = _inner_product("gamma", gamma, n)
    return (1 - gamma) / ((n - 1) * gamma + 1)


def gamma_from_w(w: ArrayLike, n: ArrayLike) -> Array:
    """Inner product gamma = (1-w)/(1+(n-1)w) of the stable variable w >= 0."""
    n = _tokens(n)
    w = bounded("w", w, 0, np.inf, closed="low", advice="w is a ratio of positive numbers")
    return (1 - w) / (1 + (n - 1) * w)


def gap_from_w(w: ArrayLike, n: ArrayLike) -> Array:
    """1 - gamma = n w/(1+(n-1)w), accurate to the last digit however small."""
    n = _tokens(n)
    w = bounded("w", w, 0, np.inf, closed="low", advice="w is a ratio of positive numbers")
    return n * w / (1 + (n - 1) * w)


def equiangular_rate(gamma: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: Kind = SA) -> Array:
    """d gamma/dt of n tokens with common inner product gamma (2312.10794, eq. (6.9), (6.10)).

    SA: 2(1-gamma)((n-1)gamma+1)/(e^{beta(1-gamma)}+n-1).
    USA: (2/n) e^{beta gamma}(1-gamma)((n-1)gamma+1), times e^{-beta} in "metastability".
    Valid for -1/(n-1) < gamma <= 1 and beta >= 0; the paper states it from gamma(0) = 0.
    Overflows for perspective USA beyond beta ~ 709.
    """
    n, beta = _tokens(n), inverse_temperature(beta)
    gamma = _inner_product("gamma", gamma, n)
    shape = (1 - gamma) * ((n - 1) * gamma + 1)
    return shape * np.exp(_log_speed(1 - gamma, n, beta, kind)) / n


def log_w_rate(gamma: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: Kind = SA) -> Array:
    """d log w/dt = -2n/(e^{beta(1-gamma)}+n-1) (SA) or -2e^{beta gamma} (USA).

    Equation (6.9)/(6.10) of 2312.10794 in the stable variable; its limit at gamma = 1 is minus
    `tail_rate`.
    """
    n, beta = _tokens(n), inverse_temperature(beta)
    gamma = _inner_product("gamma", gamma, n)
    return -np.exp(_log_speed(1 - gamma, n, beta, kind))


def tail_rate(beta: ArrayLike, kind: Kind = SA) -> Array:
    """Terminal rate of 1 - gamma: 2 for SA, 2e^beta for USA (2 in "metastability").

    Linearisation of 2312.10794, eq. (6.9), (6.10) at gamma = 1. Reached to a relative 1e-3 once
    1 - gamma < 1e-4.
    """
    beta = inverse_temperature(beta)
    if averages(kind):
        return np.full_like(beta, 2.0)[()]
    return 2 * np.exp(log_speed(kind, beta))


def flat_attention_gamma(t: ArrayLike, n: ArrayLike, gamma0: ArrayLike = 0.0) -> Array:
    """gamma(t) at beta = 0, where w = w_0 e^{-2t} for both models.

    From gamma0 = 0: (e^{2t}-1)/(e^{2t}+n-1), i.e. tanh t for n = 2 (2312.10794, eq. (6.9), beta=0).
    """
    t = bounded("t", t, 0, np.inf, advice="the flow runs forward")
    return gamma_from_w(w_from_gamma(gamma0, n) * np.exp(-2 * t), n)


def equiangular_time(
    gamma: ArrayLike,
    n: ArrayLike,
    beta: ArrayLike,
    gamma0: ArrayLike = 0.0,
    kind: Kind = SA,
    method: Method = "closed",
) -> Array:
    """Time at which the common inner product, started at gamma0, reaches gamma.

    Separation of variables in 2312.10794, eq. (6.9), (6.10). With v(u) = u + 1/(n-1) and
    B(u) = e^{-x}Ei(x)|_{x=beta(1-u)} + e^{y}E_1(y)|_{y=beta v(u)},
    t_USA = (e^{-beta gamma0} B(gamma0) - e^{-beta gamma} B(gamma))/2   ("perspective"),
    t_SA = (e^beta/n) t_USA + (n-1)/(2n) log(w_0/w).
    method="quadrature" integrates dt/d log w instead (Gauss-Legendre, relative 1e-12).
    Needs -1/(n-1) < gamma0 <= gamma < 1 and beta >= 0. The closed form subtracts, so its error is
    about 1e-15 times the longest time scale when gamma is close to gamma0. Overflows (inf) past
    e^709: use `log_equiangular_time`.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_equiangular_time(gamma, n, beta, gamma0, kind, method))


def log_equiangular_time(
    gamma: ArrayLike,
    n: ArrayLike,
    beta: ArrayLike,
    gamma0: ArrayLike = 0.0,
    kind: Kind = SA,
    method: Method = "closed",
) -> Array:
    """log of `equiangular_time`, finite for any beta (the time itself grows like e^{beta})."""
    n, beta = _tokens(n), inverse_temperature(beta)
    gamma0 = _inner_product("gamma0", gamma0, n)
    gamma = bounded("gamma", gamma, gamma0, 1, closed="low", advice="use gamma0 <= gamma < 1")
    start, stop = np.log(w_from_gamma(gamma0, n)), np.log(w_from_gamma(gamma, n))
    if chosen("method", method, Method) == "closed":
        return _log_time(stop, start, n, beta, kind)
    return _log_time_quadrature(stop, start, n, beta, kind)


def equiangular_gap(
    t: ArrayLike, n: ArrayLike, beta: ArrayLike, gamma0: ArrayLike = 0.0, kind: Kind = SA
) -> Array:
    """1 - gamma(t), with full relative accuracy at late times.

    Inverts the closed-form time of `equiangular_time` by bisection in log w.
    Valid for t >= 0, beta >= 0, gamma0 in (-1/(n-1), 1).
    """
    n, beta = _tokens(n), inverse_temperature(beta)
    t = bounded("t", t, 0, np.inf, closed="low", advice="the flow runs forward")
    gamma0 = _inner_product("gamma0", gamma0, n, closed="neither")
    start = np.log(w_from_gamma(gamma0, n))
    t, n, beta, start = np.broadcast_arrays(t, n, beta, start)
    stop = _log_w_at(t, start, n, beta, kind)
    return np.exp(_log_gap(stop, n))[()]


def equiangular_gamma(
    t: ArrayLike, n: ArrayLike, beta: ArrayLike, gamma0: ArrayLike = 0.0, kind: Kind = SA
) -> Array:
    """gamma_beta(t), solution of 2312.10794, eq. (6.9) (SA) or (6.10) (USA).

    Absolute error about 1e-14; for 1 - gamma near 0 use `equiangular_gap`. When beta(1-gamma0) is
    large, gamma jumps at one time (it leaves gamma0 only after e^{beta(1-gamma0)}), and past the
    jump an error of 1e-16 in t is magnified by e^{beta(gamma-gamma0)}.
    """
    return 1 - equiangular_gap(t, n, beta, gamma0, kind)


def _tokens(n: ArrayLike) -> Array:
    return whole("n", n, 2, advice="an inner product needs at least two tokens")


def _inner_product(
    name: str, gamma: ArrayLike, n: Array, closed: Literal["high", "neither"] = "high"
) -> Array:
    advice = "n unit vectors can only share an inner product in (-1/(n-1), 1]"
    return bounded(name, gamma, -1 / (n - 1), 1, closed=closed, advice=advice)


def _log_speed(gap: Array, n: Array, beta: Array, kind: Kind) -> Array:
    """log of -d log w/dt."""
    if averages(kind):
        return np.log(2 * n) - np.logaddexp(beta * gap, np.log(n - 1))
    return np.log(2.0) + log_speed(kind, beta) - beta * gap


def _log_gap(log_w: Array, n: Array) -> Array:
    return np.log(n) - np.logaddexp(-log_w, np.log(n - 1))


def _log_time(stop: Array, start: Array, n: Array, beta: Array, kind: Kind) -> Array:
    """log of the time from log w = start down to log w = stop, in closed form."""
    positive = np.where(beta > 0, beta, 1.0)
    log_gap0, log_gap = _log_gap(start, n), _log_gap(stop, n)
    gap0, gap = np.exp(log_gap0), np.exp(log_gap)
    before = _bracket(log_gap0, n, positive)
    after = _bracket(log_gap, n, positive) * np.exp(positive * (gap - gap0))
    half_log_ratio = np.maximum(start - stop, 0) / 2
    with np.errstate(divide="ignore"):
        log_slow = positive * gap0 + np.log(np.maximum(before - after, 0) / 2)
        log_flat = np.log(half_log_ratio)
        log_fast = np.log((n - 1) / n * half_log_ratio)
    if averages(kind):
        slow = np.logaddexp(log_slow - np.log(n), log_fast)
    else:
        slow = log_slow - log_speed(kind, positive)
    return np.where(beta > 0, slow, log_flat)[()]


def _bracket(log_gap: Array, n: Array, beta: Array) -> Array:
    """B(u) of `equiangular_time` at 1 - u = e^{log_gap}."""
    shifted = n / (n - 1) - np.exp(log_gap)  # u + 1/(n-1)
    return scaled_ei(np.log(beta) + log_gap) + scaled_e1(beta * shifted)


def _log_time_quadrature(stop: Array, start: Array, n: Array, beta: Array, kind: Kind) -> Array:
    stop, start, n, beta = np.broadcast_arrays(stop, start, n, beta)
    tokens, temperature = n[..., None], beta[..., None]

    def log_integrand(log_w: Array) -> Array:
        gap = np.exp(_log_gap(log_w, tokens))
        return -_log_speed(gap, tokens, temperature, kind)

    stiffness = float(np.max((start - stop) * (1 + beta / 8), initial=1.0))
    return log_integral(log_integrand, stop, start, panels=int(np.ceil(8 + stiffness)))


def _log_w_at(t: Array, start: Array, n: Array, beta: Array, kind: Kind) -> Array:
    """log w at time t: invert `_log_time`, monotone in log w, bracketed by the extreme speeds."""
    with np.errstate(divide="ignore"):
        target = np.log(t)
    top = _log_speed(np.zeros_like(start), n, beta, kind)
    fastest = np.exp(np.minimum(target + top, 12.0))  # e^{-e^{12}} is 0 in float64
    low, high = start - fastest, start
    for _ in range(70):
        middle = (low + high) / 2
        late = _log_time(middle, start, n, beta, kind) > target
        low, high = np.where(late, middle, low), np.where(late, high, middle)
    return np.where(t > 0, (low + high) / 2, start)
