"""Coefficients of zonal series on S^{d-1}, their tails, and the degree a tolerance asks for.

    e^{x (u - 1)} = sum_l p_l(x) C_l(u),   p_l(x) = N_l Gamma(d/2) (2/x)^{d/2-1} I_{l+d/2-1}(x) e^{-x},

with C_l the Gegenbauer polynomial scaled to C_l(1) = 1 (T_l for d = 2, P_l for d = 3) and N_l the
number of harmonics of degree l. u = 1 shows that p(x) is a probability law; I' in terms of its
neighbours shows that it is the law at time x of the chain that jumps at rate 1 from l to l + 1 with
probability (l + d - 2)/(2l + d - 2) (1 at l = 0) and to l - 1 otherwise, from l = 0. The chain is
stochastically monotone and starts at its least state, so every tail sum_{l > L} p_l(x) increases with
x. As |C_l| <= 1, that tail bounds the truncation error at every u, for every argument up to x; at
u = 1 it is the error.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...kinds import Kind

# Share of tol left to the truncation where tokens are spread evenly: a row that meets 20 times fewer
# tokens than that is still within tol.
RESERVE = 1 / 40
# Where the downward recurrence starts: beyond this the law is nothing in double precision.
NOTHING = 1e-18
# Degree at which the tail of a computed series must have fallen below the tolerance.
LONGEST_COMPUTED = {2: 512, 3: 128}


def multiplicity(degrees: np.ndarray, d: int) -> np.ndarray:
    """N_l on the circle (1, 2, 2, ...) and on S^2 (2l + 1)."""
    return np.where(degrees == 0, 1.0, 2.0) if d == 2 else 2.0 * degrees + 1.0


def law(x: Float[Array, "*rows"], d: int, degree: int, top: int) -> Float[Array, " degrees *rows"]:
    """p_0(x), ..., p_degree(x) for every row (Miller's algorithm).

    The ratios rho_l = I_{l+nu}/I_{l+nu-1} = x / (2(l + nu) + x rho_{l+1}) run down from `top`, where p
    is below rounding; the sum of p being 1 gives the scale. All ratios lie in (0, 1): nothing cancels,
    nothing overflows.
    """
    degrees = np.arange(1, top + 1)
    orders = jnp.asarray(2.0 * degrees + (d - 2), x.dtype)

    def down(ratio: Array, order: Array) -> tuple[Array, Array]:
        above = x / (order + x * ratio)
        return above, above

    def up(term: Array, ratio: Array) -> tuple[Array, Array]:
        return term * ratio, term * ratio

    _, ratios = jax.lax.scan(down, jnp.zeros_like(x), orders, reverse=True)
    _, terms = jax.lax.scan(up, jnp.ones_like(x), ratios)
    many = jnp.asarray(multiplicity(degrees, d), x.dtype).reshape(-1, *[1] * x.ndim)
    terms = many * terms
    every = jnp.concatenate([jnp.ones_like(x)[None], terms[:degree]])
    return every / (1.0 + jnp.sum(terms, axis=0))


@functools.lru_cache(maxsize=1024)
def reference_law(x: float, d: int) -> np.ndarray:
    """p_0(x), p_1(x), ... until nothing is left, by scipy's Bessel functions."""
    from scipy.special import gamma, ive

    if x == 0.0:
        return np.array([1.0])
    # p_l(x) < NOTHING long before this: the chain makes about x jumps of either sign.
    degrees = np.arange(int(12.0 * np.sqrt(x) + 40.0))
    order = d / 2 - 1
    return multiplicity(degrees, d) * gamma(d / 2) * (2.0 / x) ** order * ive(degrees + order, x)


def evenly_spread(x: float, d: int) -> float:
    """p_0(x): the mean of e^{x(u-1)} over the sphere, the scaled partition of evenly spread tokens."""
    return float(reference_law(x, d)[0])


def tail(x: float, d: int, degree: int) -> float:
    """sum_{l > degree} p_l(x): bound of the truncation error for all arguments up to x."""
    return float(np.sum(reference_law(x, d)[degree + 1 :][::-1]))


def smallest_degree(x: float, d: int, bound: float) -> int:
    """The first degree, at least 1, whose tail at x is below `bound`."""
    tails = np.cumsum(reference_law(x, d)[::-1])[::-1]
    return max(1, int(np.sum(tails[1:] > bound)))


def needed_degree(x: float, d: int, tol: float) -> int:
    """The degree that keeps evenly spread tokens well within tol."""
    return smallest_degree(x, d, RESERVE * tol * evenly_spread(x, d))


def largest_argument(degree: int, d: int, tol: float) -> float:
    """The largest x that a degree serves, by bisection."""
    low, high = 0.0, 1.0
    while needed_degree(high, d, tol) <= degree:
        low, high = high, 2.0 * high
    for _ in range(40):
        middle = (low + high) / 2.0
        fits = needed_degree(middle, d, tol) <= degree
        low, high = (middle, high) if fits else (low, middle)
    return low


def computed(
    kind: Kind, beta: Array, reach: float, d: int, degree: int
) -> tuple[Float[Array, " degrees"], Float[Array, ""], Float[Array, ""]]:
    """Coefficients of f(beta reach u) in C_0, ..., C_degree by quadrature, the error of the cut, max |f|.

    The error is twice the coefficients of degrees up to 2 degree + 1, which the same nodes give: a
    bound of the truncation of any series that decays from there on.
    """
    nodes, matrix = _quadrature(d, degree)
    weights = kind.weight(beta * jnp.asarray(reach * nodes, beta.dtype)[None, :], beta)[0]
    every = jnp.asarray(matrix, weights.dtype) @ weights
    left_out = 2.0 * jnp.sum(jnp.abs(every[degree + 1 :]))
    return every[: degree + 1], left_out, jnp.max(jnp.abs(weights))


@functools.lru_cache(maxsize=64)
def _quadrature(d: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, and the matrix from values there to coefficients of degrees up to 2 degree + 1."""
    count = 2 * degree + 2
    degrees = np.arange(count)
    if d == 2:
        angles = np.pi * (np.arange(count) + 0.5) / count
        cosines = np.cos(degrees[:, None] * angles)
        return np.cos(angles), multiplicity(degrees, 2)[:, None] * cosines / count
    nodes, weights = np.polynomial.legendre.leggauss(count)
    table = np.polynomial.legendre.legvander(nodes, count - 1).T
    return nodes, (degrees[:, None] + 0.5) * table * weights


def computed_degree(kind: Kind, beta: float, reach: float, d: int, tol: float) -> int | None:
    """The degree a kind's own series needs, or None where it decays too slowly."""
    longest = 8
    while longest <= LONGEST_COMPUTED[d]:
        nodes, matrix = _quadrature(d, longest)
        with jax.ensure_compile_time_eval():
            scores = jnp.asarray(beta * reach * nodes)[None, :]
            weights = np.asarray(kind.weight(scores, jnp.asarray(beta)))[0]
        sizes = np.abs(matrix @ weights) / max(np.max(np.abs(weights)), np.finfo(float).tiny)
        tails = 2.0 * np.cumsum(sizes[::-1])[::-1]
        degree = int(np.sum(tails[1:] > tol / 8.0))
        if degree <= longest:
            return max(1, degree)
        longest *= 4
    return None
