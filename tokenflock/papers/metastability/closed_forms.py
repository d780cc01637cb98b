r"""The window in which separated caps stay apart (2410.06833).

Caps S_q(eps) = {x : <x, w_q> >= 1 - eps} around unit centres w_q; theta_min is the smallest angle
between two centres (`smallest_angle`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...theory._checks import Array, bounded, real, whole


@dataclass(frozen=True)
class MetastabilityWindow:
    """Constants of the metastability theorem of 2410.06833.

    alpha: largest inner product across caps of size 2 eps; gamma: separation, must be > 0;
    collapse_time: upper bound of T1; log_lifetime: log of the lower bound of T2;
    lambda_bounds: the two strict upper bounds on lambda; holds: all hypotheses are met.
    On [T1, T2] tokens of one cap satisfy |x_i - x_j|^2 <= 2 e^{-lambda beta}, and no token leaves
    its cap S_q(2 eps) before T2, for SA and for USA with "metastability" weights.
    """

    alpha: Array
    gamma: Array
    collapse_time: Array
    log_lifetime: Array
    lambda_bounds: tuple[Array, Array]
    holds: NDArray[np.bool_]


def smallest_angle(centres: ArrayLike) -> float:
    """Smallest angle between two rows of `centres` (k, d), k >= 2, by atan2(|x-y|, |x+y|)."""
    centres = real("centres", centres)
    if centres.ndim != 2 or len(centres) < 2:
        raise ValueError(f"centres needs shape (k, d) with k >= 2, got {centres.shape}; stack them")
    rows, columns = np.triu_indices(len(centres), 1)
    x = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    minus = np.linalg.norm(x[rows] - x[columns], axis=1)
    plus = np.linalg.norm(x[rows] + x[columns], axis=1)
    return float(2 * np.arctan2(minus, plus).min())


def cap_alpha(eps: ArrayLike, theta_min: ArrayLike) -> Array:
    """alpha(eps): largest <x,y> with x, y in two different caps S_q(2 eps) (2410.06833).

    Closed form cos(max(0, theta_min - 2 arccos(1-2 eps))); at orthogonal centres
    4(1-2eps)sqrt(eps(1-eps)) while the caps are disjoint. 0 <= eps <= 1.
    """
    eps = bounded("eps", eps, 0, 1, advice="a cap has 0 <= eps <= 1")
    theta_min = bounded("theta_min", theta_min, 0, np.pi, advice="use smallest_angle(centres)")
    cap_angle = 2 * np.arcsin(np.sqrt(eps))  # arccos(1 - 2 eps) without loss for small eps
    return np.cos(np.maximum(0.0, theta_min - 2 * cap_angle))


def separation(eps: ArrayLike, theta_min: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Array:
    """gamma(beta) = 1 - alpha(eps) - 8 eps - log(2 n^2/eps)/beta (2410.06833).

    n tokens are (beta, eps)-separated when all lie in the caps S_q(eps) and this is > 0.
    """
    n = whole("n", n, 1, advice="count the tokens")
    beta = bounded("beta", beta, 0, np.inf, closed="neither", advice="the theorem needs beta > 1")
    eps = bounded("eps", eps, 0, 1, closed="high", advice="the theorem needs 0 < eps < 1/16")
    return 1 - cap_alpha(eps, theta_min) - 8 * eps - np.log(2 * n**2 / eps) / beta


def metastability_window(
    eps: ArrayLike, theta_min: ArrayLike, n: ArrayLike, beta: ArrayLike, rate: ArrayLike
) -> MetastabilityWindow:
    """All constants of the metastability theorem of 2410.06833 for lambda = `rate`.

    T1 <= 2n e^{8 eps beta} + e n lambda beta^2/(beta-1),  T2 >= (eps/n) e^{(1-alpha)beta},
    lambda < e^{(1-alpha)beta} (beta-1) eps (1-e^{-gamma beta})/(beta^2 n^2 e)  (this is T1 < T2),
    lambda < 1 - alpha - 8 eps - log(2n^2/(1-8 eps))/beta.
    The first bound is printed with a sign error in the logarithm; the form here is the one the
    proof gives. Needs beta > 1 and 0 < eps < 1/16; `holds` is False elsewhere or when a bound
    fails. The bounds are loose: use them as inequalities, never as predictions.
    """
    eps = bounded("eps", eps, 0, 1 / 16, closed="neither", advice="the theorem needs eps < 1/16")
    beta = bounded("beta", beta, 1, np.inf, closed="neither", advice="the theorem needs beta > 1")
    rate = bounded("rate", rate, 0, np.inf, closed="neither", advice="the theorem needs lambda > 0")
    n = whole("n", n, 1, advice="count the tokens")
    alpha, gamma = cap_alpha(eps, theta_min), separation(eps, theta_min, n, beta)
    with np.errstate(over="ignore"):
        collapse = 2 * n * np.exp(8 * eps * beta) + np.e * n * rate * beta**2 / (beta - 1)
        log_lifetime = np.log(eps / n) + (1 - alpha) * beta
        slack = np.maximum(-np.expm1(-gamma * beta), 0.0)
        first = np.exp(log_lifetime) * (beta - 1) / (beta**2 * n * np.e) * slack
    second = 1 - alpha - 8 * eps - np.log(2 * n**2 / (1 - 8 * eps)) / beta
    holds = (gamma > 0) & (rate < first) & (rate < second)
    return MetastabilityWindow(alpha, gamma, collapse, log_lifetime, (first, second), holds)
