r"""Long context: what one attention layer does to equiangular tokens when beta = gamma log n.

n unit tokens with common inner product rho are replaced by their attention averages (no residual)
and normalised; the new common inner product has three limits as n -> inf (2512.01868).
"""

import numpy as np
from numpy.typing import ArrayLike

from ...theory._checks import Array, bounded, real, whole


def attention_correlation(rho: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """Inner product of normalised attention averages of n equiangular tokens, exact.

    With e = e^{-beta(1-rho)} and s = 1+(n-1)rho,
    1 - corr = (1-e)^2 (1-rho)/((1-e)^2 + 2(1-e)es + e^2 n s). Any real beta;
    -1/(n-1) < rho < 1. Two tokens' averages (2512.01868, long-context section).
    """
    n = whole("n", n, 2, advice="two tokens at least")
    advice = "n unit vectors can only share an inner product in (-1/(n-1), 1)"
    rho = bounded("rho", rho, -1 / (n - 1), 1, closed="neither", advice=advice)
    exponent = -real("beta", beta) * (1 - rho)
    other = np.exp(np.minimum(exponent, 0.0))  # e and 1-e, over max(e, 1)
    own = np.where(exponent > 0, 1.0, -1.0) * np.expm1(-np.abs(exponent))
    spread = other * (1 + (n - 1) * rho)
    with np.errstate(over="ignore"):  # n^2 may pass 1e308: the correlation is then 1
        return 1 - own**2 * (1 - rho) / (own**2 + 2 * own * spread + spread * (other * n))


def long_context_correlation(rho: ArrayLike, gamma: ArrayLike, n: ArrayLike) -> Array:
    """`attention_correlation` at beta = gamma log n, for comparison with the limit at finite n.

    Convergence to `long_context_limit` is slow near gamma_c = 1/(1-rho): errors of order
    n^{-2(gamma_c-gamma)(1-rho)} below, 1/n at, n^{-(gamma-gamma_c)(1-rho)} above.
    """
    n = whole("n", n, 2, advice="two tokens at least")
    return attention_correlation(rho, n, real("gamma", gamma) * np.log(n))


def critical_gamma(rho: ArrayLike) -> Array:
    """gamma_c = 1/(1-rho): attention averages everything below, copies the token above."""
    return 1 / (1 - bounded("rho", rho, 0, 1, closed="low", advice="use 0 <= rho < 1"))


def long_context_limit(rho: ArrayLike, gamma: ArrayLike) -> Array:
    """Limit n -> inf at beta = gamma log n (2512.01868): 1 | 4 rho/(1+3 rho) | rho.

    For gamma below | at | above `critical_gamma`; "at" means equal to within 1e-12, rho in (0, 1).
    """
    rho = bounded("rho", rho, 0, 1, closed="neither", advice="the limit is stated for 0 < rho < 1")
    ratio = real("gamma", gamma) * (1 - rho)
    critical = np.abs(ratio - 1) <= 1e-12
    return np.where(critical, 4 * rho / (1 + 3 * rho), np.where(ratio < 1, 1.0, rho))[()]
