r"""Two tokens, two clusters, plateaus of the energy, and the pairing phase.

Clusters are point masses p, q at angle phi on a great circle; y = log tan(phi/2) turns
phi' = -R(phi) sin(phi) into y' = -R, and 1 - cos(phi) = 2/(1+e^{-2y}), so nothing cancels.
`kind` is SA or USA with its clock (see `tokenflock.theory.equiangular`).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ._checks import Array, bounded, inverse_temperature, real
from ._kinds import SA, Kind, averages, log_speed
from ._special import log_integral


def two_token_rate(phi: ArrayLike, beta: ArrayLike, kind: Kind = SA) -> Array:
    """d phi/dt of the angle between two tokens.

    SA: -2 sin(phi)/(1+e^{beta(1-cos phi)}); USA: -e^{beta cos phi} sin(phi) ("perspective").
    n = 2 of 2312.10794, eq. (6.9), (6.10) with gamma = cos(phi); any d >= 2.
    """
    return two_cluster_rate(phi, 0.5, 0.5, beta, kind)


def two_cluster_rate(
    phi: ArrayLike, p: ArrayLike, q: ArrayLike, beta: ArrayLike, kind: Kind = SA
) -> Array:
    """d phi/dt of the angle between two point clusters of masses p and q.

    SA: -sin(phi)[q/(pE+q) + p/(qE+p)], E = e^{beta(1-cos phi)} (only p/q matters);
    USA: -(p+q) e^{beta cos phi} sin(phi) ("perspective"; times e^{-beta} in "metastability").
    Exact reduction of the flows of 2312.10794 to repeated tokens; 0 <= phi <= pi.
    """
    phi = bounded("phi", phi, 0, np.pi, advice="an angle between unit vectors is in [0, pi]")
    p, q, beta = _mass("p", p), _mass("q", q), inverse_temperature(beta)
    separation = 2 * np.sin(phi / 2) ** 2
    return -np.sin(phi) * np.exp(_log_pull(separation, p, q, beta, kind))


def antipodal_growth_rate(p: ArrayLike, q: ArrayLike, beta: ArrayLike, kind: Kind = SA) -> Array:
    """Rate at which two antipodal clusters leave each other's antipode: (pi-phi)' = rate (pi-phi).

    Linearisation of `two_cluster_rate` at phi = pi: for p = q, 2/(1+e^{2beta}) (SA) and
    e^{-beta} (USA, p+q = 1, "perspective"). Positive: the antipodal pair is unstable
    (2312.10794, section 6; 2504.14697).
    """
    p, q, beta = _mass("p", p), _mass("q", q), inverse_temperature(beta)
    return np.exp(_log_pull(np.asarray(2.0), p, q, beta, kind))


def log_two_cluster_lifetime(
    phi0: ArrayLike, phi1: ArrayLike, p: ArrayLike, q: ArrayLike, beta: ArrayLike, kind: Kind = SA
) -> Array:
    """log of the time for two clusters to close from angle phi0 to phi1, by quadrature.

    T = int_{phi1}^{phi0} d phi/|phi'| with `two_cluster_rate`; log-space Gauss-Legendre in
    log tan(phi/2), relative error of T about 1e-12, any beta. Asymptotically
    log T = beta(1-cos phi0) + O(log beta), the metastable time scale of 2410.06833.
    Needs 0 < phi1 <= phi0 < pi (at phi0 = pi the pair is stationary).
    """
    phi0 = bounded("phi0", phi0, 0, np.pi, closed="neither", advice="antipodal pairs never meet")
    phi1 = bounded("phi1", phi1, 0, phi0, closed="high", advice="use 0 < phi1 <= phi0")
    p, q, beta = _mass("p", p), _mass("q", q), inverse_temperature(beta)
    upper, lower = np.log(np.tan(phi0 / 2)), np.log(np.tan(phi1 / 2))
    upper, lower, p, q, beta = np.broadcast_arrays(upper, lower, p, q, beta)
    masses, wide = (p[..., None], q[..., None]), beta[..., None]

    def log_integrand(y: Array) -> Array:
        return -_log_pull(2 * special.expit(2 * y), *masses, wide, kind)

    stiffness = float(np.max((upper - lower) * (1 + beta / 8), initial=1.0))
    return log_integral(log_integrand, lower, upper, panels=int(np.ceil(8 + stiffness)))


def two_cluster_lifetime(
    phi0: ArrayLike, phi1: ArrayLike, p: ArrayLike, q: ArrayLike, beta: ArrayLike, kind: Kind = SA
) -> Array:
    """exp of `log_two_cluster_lifetime`; inf where the time exceeds 1e308."""
    with np.errstate(over="ignore"):
        return np.exp(log_two_cluster_lifetime(phi0, phi1, p, q, beta, kind))


def plateau_energy(masses: ArrayLike, axis: int = -1) -> Array:
    """Energy level sum_q p_q^2 of separated point clusters with masses p_q summing to 1.

    Value of n^{-2} sum_ij e^{beta(<x_i,x_j>-1)} as beta -> inf: the steps of the staircase of
    2410.06833. (That paper prints the energy with a prefactor 1/(2beta), which would send every
    level to 0; the statement needs the form used here, with maximum 1.)
    """
    masses = _mass("masses", masses)
    total = masses.sum(axis=axis)
    if not np.allclose(total, 1, rtol=0, atol=1e-9):
        worst = np.asarray(total).flat[np.abs(np.asarray(total) - 1).argmax()]
        raise ValueError(f"masses must sum to 1, got a sum of {worst:.12g}; divide by the sum")
    return (masses**2).sum(axis=axis)


def plateau_levels(masses: ArrayLike, merges: Iterable[tuple[int, int]]) -> Array:
    """Successive `plateau_energy` levels when clusters merge: entry 0 before any merge.

    `merges` lists pairs of indices into `masses`; the second joins the first and its index is then
    spent. Each merge raises the level by 2 p_i p_j (2410.06833, staircase).
    """
    left = np.array(_mass("masses", masses))
    levels = [plateau_energy(left)]
    for first, second in merges:
        if first == second or left[first] == 0 or left[second] == 0:
            raise ValueError(f"merge {(first, second)} needs two living clusters; check the order")
        levels.append(levels[-1] + 2 * left[first] * left[second])
        left[first], left[second] = left[first] + left[second], 0.0
    return np.array(levels)


def pairing_rate(
    p: ArrayLike, q: ArrayLike, beta: ArrayLike | None = None, kind: Kind = SA
) -> Array:
    """Rate R of the closest pair in the slow clock ds = e^{-beta(1-<x_i,x_j>)} dt, beta -> inf.

    phi' = -R sin(phi) with R = q/p + p/q (SA) or p + q (USA, "metastability" weights; times
    e^beta in "perspective", the only case that uses beta). 2509.25040, pairing phase, as restated
    in 2512.01868; the clock must use the running inner product, and SA with unequal masses
    carries the mass ratios, both missing from the restatement. Exact SA at finite beta:
    `two_cluster_rate`; the limit needs phi >> beta^{-1/2}.
    """
    p, q = _mass("p", p), _mass("q", q)
    if averages(kind):
        return q / p + p / q
    if beta is None and log_speed(kind, np.ones(())) != 0:
        raise ValueError(f"the clock of {kind} depends on beta, got beta=None; pass beta")
    beta = inverse_temperature(0.0 if beta is None else beta)
    return (p + q) * np.exp(log_speed(kind, beta))


def pairing_angle(s: ArrayLike, phi0: ArrayLike, rate: ArrayLike) -> Array:
    """Angle of the closest pair: tan(phi/2) = tan(phi0/2) e^{-rate s} (2509.25040, 2512.01868).

    Solution of phi' = -rate sin(phi), with the rate of `pairing_rate`.
    """
    phi0 = bounded("phi0", phi0, 0, np.pi, closed="low", advice="antipodal pairs never meet")
    return 2 * np.arctan(np.tan(phi0 / 2) * np.exp(-real("rate", rate) * real("s", s)))


def merge_fraction(p: ArrayLike, q: ArrayLike, kind: Kind = SA) -> Array:
    """Where on the arc from the first to the second cluster they meet, as a fraction in (0, 1).

    USA conserves p theta_1 + q theta_2, so q/(p+q), at any beta; SA conserves
    p^2 theta_1 + q^2 theta_2 as beta -> inf, so q^2/(p^2+q^2). Pairing law of 2509.25040.
    """
    p, q = _mass("p", p), _mass("q", q)
    power = 2 if averages(kind) else 1
    return q**power / (p**power + q**power)


def merge_point(x: ArrayLike, y: ArrayLike, p: ArrayLike, q: ArrayLike, kind: Kind = SA) -> Array:
    """Unit vector where clusters at x (mass p) and y (mass q) merge, at `merge_fraction`.

    x, y: (..., d) unit vectors, not antipodal (the arc is then undefined).
    """
    x, y = real("x", x), real("y", y)
    plus = np.linalg.norm(x + y, axis=-1, keepdims=True)
    minus = np.linalg.norm(x - y, axis=-1, keepdims=True)
    if (plus < 1e-12).any():
        raise ValueError("x and y are antipodal, so no shortest arc joins them; perturb one")
    angle = np.atleast_1d(2 * np.arctan2(minus, plus) * merge_fraction(p, q, kind)[..., None])
    tangent = y - x * (x * y).sum(axis=-1, keepdims=True)
    norm = np.linalg.norm(tangent, axis=-1, keepdims=True)
    return np.cos(angle) * x + np.sin(angle) * tangent / np.where(norm > 0, norm, 1.0)


def descent_angle(t: ArrayLike, u0: ArrayLike, c: ArrayLike, beta: ArrayLike) -> Array:
    """Solution of u' = -c log(beta) sin(u): tan(u/2) = tan(u0/2) beta^{-ct}, beta > 1.

    Scalar lemma behind the staircase theorem of 2410.06833.
    """
    beta = bounded("beta", beta, 1, np.inf, closed="neither", advice="log(beta) must be positive")
    return pairing_angle(t, u0, bounded("c", c, 0, np.inf, advice="c is a rate") * np.log(beta))


def descent_time(u0: ArrayLike, c: ArrayLike, beta: ArrayLike) -> Array:
    """Time for `descent_angle` to fall from u0 to sqrt(log(beta)/beta); tends to 1/(2c).

    Exact: log(tan(u0/2)/tan(u1/2))/(c log beta). 2410.06833 prints the limit 2/c, a misprint.
    Negative when u0 is already below the radius.
    """
    beta = bounded("beta", beta, 1, np.inf, closed="neither", advice="log(beta) must be positive")
    u0 = bounded("u0", u0, 0, np.pi, closed="neither", advice="use an angle in (0, pi)")
    c = bounded("c", c, 0, np.inf, closed="neither", advice="c is a rate > 0")
    radius = np.sqrt(np.log(beta) / beta)
    return np.log(np.tan(u0 / 2) / np.tan(radius / 2)) / (c * np.log(beta))


def _mass(name: str, value: ArrayLike) -> Array:
    return bounded(name, value, 0, np.inf, closed="neither", advice="every cluster has mass > 0")


def _log_pull(separation: Array, p: Array, q: Array, beta: Array, kind: Kind) -> Array:
    """log of -phi'/sin(phi) at separation = 1 - cos(phi)."""
    contrast = beta * separation
    log_p, log_q = np.log(p), np.log(q)
    if averages(kind):
        first = log_q - np.logaddexp(log_p + contrast, log_q)
        second = log_p - np.logaddexp(log_q + contrast, log_p)
        return np.logaddexp(first, second)
    return np.log(p + q) + log_speed(kind, beta) - contrast
