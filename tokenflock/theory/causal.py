r"""Causal attention on the circle: interaction kernel, and how many centres a sequence leaves.

Token k feels -sum_{j<=k} h(phi_k - phi_j)/Z_k with h(x) = e^{beta(cos x - 1)} sin x (2411.04990).
Centres are tokens farther than delta (geodesic) from earlier centres (Renyi centres) or from all
earlier tokens (strong centres).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ._checks import Array, bounded, inverse_temperature, real, sphere_dimension

RENYI_CONSTANT = 0.747597920253411
"""Jamming density int_0^inf exp(-2 int_0^t (1-e^{-u})/u du) dt of Renyi's parking (1958)."""


def interaction_kernel(x: ArrayLike, beta: ArrayLike) -> Array:
    """h(x) = e^{beta(cos x - 1)} sin x: the pull at angle x, odd, >= 0 on [0, pi] (2411.04990).

    For 0 < x < pi: e^{-beta x^2/2}(x - x^3/6) < h < x e^{-beta x^2/2 + beta x^4/24}.
    """
    x, beta = real("x", x), inverse_temperature(beta)
    return np.exp(-2 * beta * np.sin(x / 2) ** 2) * np.sin(x)


def interaction_slope(x: ArrayLike, beta: ArrayLike) -> Array:
    """g(x) = h'(x) = e^{beta(cos x - 1)}(cos x - beta sin^2 x) (2411.04990; 2312.10794, sec. 7)."""
    x, beta = real("x", x), inverse_temperature(beta)
    return np.exp(-2 * beta * np.sin(x / 2) ** 2) * (np.cos(x) - beta * np.sin(x) ** 2)


def kernel_peak(beta: ArrayLike, d: ArrayLike = 2) -> Array:
    """Angle tau* in (0, pi/2] with beta sin^2(tau) = (d-1) cos(tau).

    d = 2: the maximum of h, cos tau* = (-1+sqrt(4 beta^2+1))/(2 beta) (2411.04990), with
    (beta+1/2)^{-1/2} < tau* < beta^{-1/2} for beta >= 1. General d: 2312.10794, proof of Thm 5.1.
    Evaluated as 2 arcsin sqrt(m/(2 beta+m+sqrt(m^2+4 beta^2))), m = d-1, which does not cancel.
    """
    beta = inverse_temperature(beta)
    m = sphere_dimension(d) - 1
    return 2 * np.arcsin(np.sqrt(m / (2 * beta + m + np.hypot(m, 2 * beta))))


def cap_mass(delta: ArrayLike, d: ArrayLike) -> Array:
    """Uniform probability of a geodesic ball of radius delta in S^{d-1}, 0 <= delta <= pi.

    (1/2) I_{sin^2 delta}((d-1)/2, 1/2) up to a quarter turn; d=2: delta/pi; d=3: sin^2(delta/2).
    (2411.04990 prints 3 sin^2(delta/2) for d=3, a misprint.)
    """
    delta = bounded("delta", delta, 0, np.pi, advice="a geodesic radius lies in [0, pi]")
    d = sphere_dimension(d)
    small = special.betainc((d - 1) / 2, 0.5, np.sin(delta) ** 2) / 2
    return np.where(delta <= np.pi / 2, small, 1 - small)[()]


def expected_strong_centres(delta: ArrayLike, d: ArrayLike, n: ArrayLike = np.inf) -> Array:
    """Expected number of strong centres among n independent uniform tokens.

    (1-(1-m)^n)/m, m = `cap_mass`; n = inf gives 1/m: pi/delta (d=2), 1/sin^2(delta/2) (d=3)
    (2411.04990, Lemma C.1 for n = inf). delta > 0.
    """
    delta = bounded("delta", delta, 0, np.pi, closed="high", advice="use a radius delta > 0")
    n = bounded("n", n, 1, np.inf, advice="count the tokens")
    mass = cap_mass(delta, d)
    with np.errstate(divide="ignore"):
        return -np.expm1(n * np.log1p(-mass)) / mass


def expected_renyi_centres(delta: ArrayLike) -> Array:
    """Expected number 0.7476 * 2 pi/delta of Renyi centres on the circle, infinite sequence.

    Random sequential parking of arcs delta on a circle of length 2 pi (Renyi 1958, quoted in
    2411.04990); the error is super-exponentially small in 2 pi/delta. Needs delta <= 1 or so; a
    finite sequence gives fewer, since the last gaps fill slowly.
    """
    delta = bounded("delta", delta, 0, np.pi, closed="high", advice="use a radius delta > 0")
    return RENYI_CONSTANT * 2 * np.pi / delta
