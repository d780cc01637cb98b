r"""Six placements of layer normalisation on equiangular tokens (2510.22026), and one exact layer.

A token is x = r theta; with A the attention output of the directions (Q = K = V = I),

    rho' = F(rho)/s,   r' as below,   F = the SA rate of 2312.10794, eq. (6.9),

| scheme | s                        | r'            | 1 - rho at late times |
| post   | 1                        | 0             | e^{-2t}               |
| pre    | r                        | <theta,A>     | t^{-2}                |
| mix    | post until tau, then pre |               | t^{-2}                |
| peri   | r abs(A)                 | <theta,A>/abs(A) | t^{-2}             |
| ngpt   | abs(A)/alpha(t)          | 0             | e^{-2 int alpha}      |
| sqrt   | sqrt(t+1)                | 0             | e^{-4 sqrt(t+1)}      |

All six follow the same orbit of rho with another clock: dt/s is the time of "post".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ._checks import Array, bounded, chosen, inverse_temperature, whole
from .equiangular import equiangular_rate, gamma_from_w, gap_from_w, log_w_rate, w_from_gamma

Scheme = Literal["post", "pre", "mix", "peri", "ngpt", "sqrt"]
Alpha = float | Callable[[float], float]


@dataclass(frozen=True)
class EquiangularPath:
    """Solution of a scheme: times t, inner product rho, gap = 1 - rho (full accuracy), radius r."""

    t: Array
    rho: Array
    gap: Array
    radius: Array


def attention_projection(rho: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """<theta_i, A_i> = (e^beta + (n-1) rho e^{beta rho})/(e^beta + (n-1) e^{beta rho}).

    The radial velocity of pre-LN in 2510.22026 for equiangular directions.
    """
    rho, n, beta, ratio = _weights(rho, n, beta)
    return (1 + (n - 1) * rho * ratio) / (1 + (n - 1) * ratio)


def attention_norm(rho: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """|A_i| of equiangular directions, with e = e^{beta(rho-1)}:

    |A|^2 = (1 + 2(n-1) rho e + (n-1)(1+(n-2) rho) e^2)/(1+(n-1)e)^2. Appears in peri-LN and nGPT
    (2510.22026). Tends to 0 only for beta -> 0 and rho -> -1/(n-1).
    """
    rho, n, beta, ratio = _weights(rho, n, beta)
    square = 1 + 2 * (n - 1) * rho * ratio + (n - 1) * (1 + (n - 2) * rho) * ratio**2
    return np.sqrt(square) / (1 + (n - 1) * ratio)


def scheme_speed(
    scheme: Scheme,
    t: ArrayLike,
    rho: ArrayLike,
    radius: ArrayLike,
    n: ArrayLike,
    beta: ArrayLike,
    *,
    alpha: Alpha = 1.0,
    tau: float | None = None,
) -> Array:
    """The factor s of the table above (2510.22026): directions move with velocity P A/s.

    `alpha` matters for "ngpt" only (a number, or a function of t), `tau` for "mix" only.
    """
    t = bounded("t", t, 0, np.inf, closed="low", advice="the flow runs forward")
    radius = bounded("radius", radius, 0, np.inf, closed="neither", advice="use radius=1")
    norm = attention_norm(rho, n, beta)
    one = np.ones_like(norm)
    match chosen("scheme", scheme, Scheme):
        case "pre":
            return radius * one
        case "mix":
            return np.where(t <= _switch(tau), one, radius * one)[()]
        case "peri":
            return radius * norm
        case "ngpt":
            return norm / _alpha_at(alpha, t)
        case "sqrt":
            return np.sqrt(t + 1) * one
        case _:
            return one


def scheme_rates(
    scheme: Scheme,
    t: ArrayLike,
    rho: ArrayLike,
    radius: ArrayLike,
    n: ArrayLike,
    beta: ArrayLike,
    *,
    alpha: Alpha = 1.0,
    tau: float | None = None,
) -> tuple[Array, Array]:
    """(d rho/dt, d r/dt) of the scheme: the closed system of 2510.22026 on equiangular tokens."""
    speed = scheme_speed(scheme, t, rho, radius, n, beta, alpha=alpha, tau=tau)
    return equiangular_rate(rho, n, beta) / speed, _radial_rate(scheme, t, rho, n, beta, tau)


def solve_scheme(
    scheme: Scheme,
    t: ArrayLike,
    n: int,
    beta: float,
    *,
    rho0: float = 0.0,
    radius0: float = 1.0,
    alpha: Alpha = 1.0,
    tau: float | None = None,
    rtol: float = 1e-11,
) -> EquiangularPath:
    """Integrate a scheme of 2510.22026 from (rho0, radius0) and read it at the times t >= 0.

    Integrates (log w, r) with DOP853, stopping at tau for "mix" where the field jumps, so `gap`
    has relative accuracy of about 1e3 * rtol. A Gaussian start in dimension d has
    radius0 ~ sqrt(d), not 1. n and beta are numbers here; t is any increasing sequence.
    """
    chosen("scheme", scheme, Scheme)
    times = np.atleast_1d(bounded("t", t, 0, np.inf, closed="low", advice="the flow runs forward"))
    if times.ndim != 1 or (np.diff(times) < 0).any():
        raise ValueError(f"t must be one increasing sequence, got shape {times.shape}; sort it")
    bounded("radius0", radius0, 0, np.inf, closed="neither", advice="use radius0=1")
    bounded("rho0", rho0, -1, 1, closed="low", advice="identical tokens do not move")
    start = np.log(w_from_gamma(rho0, n))

    def field(stage: Scheme) -> Callable[[float, Array], tuple[Array, Array]]:
        def velocity(time: float, state: Array) -> tuple[Array, Array]:
            rho = gamma_from_w(np.exp(state[0]), n)
            speed = scheme_speed(stage, time, rho, state[1], n, beta, alpha=alpha)
            radial = _radial_rate(stage, time, rho, n, beta, None)
            return log_w_rate(rho, n, beta) / speed, radial

        return velocity

    state, states, begin, seen = np.array([start, radius0]), [], 0.0, -1.0
    for stage, end in _stages(scheme, tau, float(times[-1])):
        wanted = times[(times > seen) & (times <= end)]
        values, state = _advance(field(stage), begin, end, state, wanted, rtol)
        states.append(values)
        begin = seen = end
    log_w, radius = np.concatenate(states, axis=1)
    w = np.exp(log_w)
    return EquiangularPath(times, gamma_from_w(w, n), gap_from_w(w, n), radius)


def _advance(
    field: Callable[[float, Array], tuple[Array, Array]],
    begin: float,
    end: float,
    state: Array,
    wanted: Array,
    rtol: float,
) -> tuple[Array, Array]:
    """States at the `wanted` times of [begin, end], and the state at the end."""
    if end == begin:
        return np.tile(state, (wanted.size, 1)).T, state
    path = solve_ivp(field, (begin, end), state, "DOP853", dense_output=True, rtol=rtol, atol=1e-13)
    if not path.success or path.sol is None:
        raise ValueError(
            f"the scheme could not be integrated: {path.message}; check alpha and rtol"
        )
    values = path.sol(np.append(wanted, end))
    return values[:, :-1], values[:, -1]


def initial_slope(
    scheme: Scheme,
    n: ArrayLike,
    beta: ArrayLike,
    *,
    radius0: ArrayLike = 1.0,
    alpha: ArrayLike = 1.0,
) -> Array:
    """d rho/dt at t = 0 from orthonormal directions (2510.22026, initial velocity theorem).

    post, mix (tau > 0), sqrt: 2/(e^beta+n-1); pre: that over r0;
    peri: 2/(r0 sqrt(e^{2beta}+n-1)); ngpt: 2 alpha(0)/sqrt(e^{2beta}+n-1).
    """
    n, beta = whole("n", n, 2, advice="two tokens at least"), inverse_temperature(beta)
    radius = bounded("radius0", radius0, 0, np.inf, closed="neither", advice="use radius0=1")
    plain = 2 * np.exp(-np.logaddexp(beta, np.log(n - 1)))
    normed = 2 * np.exp(-np.logaddexp(2 * beta, np.log(n - 1)) / 2)
    match chosen("scheme", scheme, Scheme):
        case "pre":
            return plain / radius
        case "peri":
            return normed / radius
        case "ngpt":
            return np.asarray(alpha, float) * normed
        case _:
            return plain


def layer_map(gamma: ArrayLike, step: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """One discrete post-LN layer x <- N(x + step * Attention(x)) on the inner product gamma.

    Exact: e = e^{beta(gamma-1)}, a = 1/(1+(n-1)e), p = 1 + step a(1-e), q = step a e,
    s = 1+(n-1)gamma, c = 2pqs + q^2 n s, gamma' = (p^2 gamma + c)/(p^2 + c).
    The discrete counterpart of 2312.10794, eq. (6.9); as step -> 0, (gamma'-gamma)/step -> (6.9),
    but the layer clock runs slower by about 1/(1+step) near clusters.
    """
    gamma = np.asarray(gamma, float)
    return 1 - (1 - gamma) * _layer_contraction(1 - gamma, step, n, beta)


def layer_steps(
    gamma: float, step: float, n: int, beta: float, gamma0: float = 0.0, most: int = 10_000_000
) -> int:
    """Number of post-LN layers (`layer_map`) needed to bring gamma0 to at least gamma < 1."""
    bounded("gamma", gamma, gamma0, 1, closed="low", advice="use gamma0 <= gamma < 1")
    gap, count = np.asarray(1 - gamma0), 0
    while gap > 1 - gamma:
        if count == most:
            raise ValueError(f"gamma={gamma} not reached in {most} layers; raise `most` or `step`")
        gap, count = gap * _layer_contraction(gap, step, n, beta), count + 1
    return count


def _layer_contraction(gap: ArrayLike, step: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """(1-gamma')/(1-gamma) = p^2/(p^2+c)."""
    step = bounded("step", step, 0, np.inf, closed="low", advice="a layer adds step * attention")
    gap = np.asarray(gap, float)
    gamma, n, beta, ratio = _weights(1 - gap, n, beta)
    attention = 1 / (1 + (n - 1) * ratio)
    own = 1 + step * attention * -np.expm1(-beta * gap)
    other = step * attention * ratio
    total = 1 + (n - 1) * gamma
    return own**2 / (own**2 + 2 * own * other * total + other**2 * n * total)


def _weights(rho: ArrayLike, n: ArrayLike, beta: ArrayLike) -> tuple[Array, Array, Array, Array]:
    n, beta = whole("n", n, 2, advice="two tokens at least"), inverse_temperature(beta)
    advice = "n unit vectors can only share an inner product in (-1/(n-1), 1]"
    rho = bounded("rho", rho, -1 / (n - 1), 1, closed="high", advice=advice)
    return rho, n, beta, np.exp(beta * (rho - 1))


def _radial_rate(
    scheme: Scheme, t: ArrayLike, rho: ArrayLike, n: ArrayLike, beta: ArrayLike, tau: float | None
) -> Array:
    projection = attention_projection(rho, n, beta)
    match scheme:
        case "pre":
            return projection
        case "mix":
            return np.where(np.asarray(t) <= _switch(tau), 0.0, projection)[()]
        case "peri":
            return projection / attention_norm(rho, n, beta)
        case _:
            return np.zeros_like(projection)


def _stages(scheme: Scheme, tau: float | None, end: float) -> list[tuple[Scheme, float]]:
    if scheme != "mix":
        return [(scheme, end)]
    switch = min(_switch(tau), end)
    return [("post", switch), ("pre", end)]


def _switch(tau: float | None) -> float:
    if tau is None or not tau >= 0:
        raise ValueError(f"scheme 'mix' needs a switching time tau >= 0, got {tau}; pass tau=...")
    return float(tau)


def _alpha_at(alpha: Alpha, t: Array) -> Array:
    value = np.vectorize(alpha, otypes=[float])(t) if callable(alpha) else alpha
    return bounded("alpha", value, 0, np.inf, closed="neither", advice="alpha is a step size > 0")
