r"""Attention with a perceptron on the circle: where K = e^{beta cos} is concave, and what that bounds.

A critical point of E[mu] = (1/(2 beta)) iint e^{beta <x,y>} dmu dmu + (1/2) int v dmu whose second
variation is not negative ("SOPD", 2601.21366) cannot hold much mass in an arc on which K is concave. The
perceptron v(x) = sum_j omega_j phi(a_j . x), phi' = 2 sigma, enters by its size W = sum_j |omega_j| |a_j|^2.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ._checks import Array, bounded, chosen, inverse_temperature
from ._kinds import USA, Kind, log_speed

Sigma = Literal["relu", "gelu"]
# sup |sigma'|: |v''| <= 2 L W on the circle, since sigma(0) = 0 makes |sigma(s) s| <= L s^2.
LIPSCHITZ = {"relu": 1.0, "gelu": 1.12891}
# c1: K'' <= -c1 beta e^beta on |theta| <= theta_c/2; c2: K'' <= c2 beta e^beta on |theta| >= theta_c.
INNER_CURVATURE = 3 / 8 * np.exp(-1 / 8)
OUTER_CURVATURE = 2 * np.exp(-3 / 2)
# Limit beta -> infinity of the bound on the mass of a cluster: the 0.5742 of 2601.21366.
CLUSTER_MASS = OUTER_CURVATURE / (INNER_CURVATURE + OUTER_CURVATURE)
# c1/2: the 0.16547 of 2601.21366, the size of a perceptron below which one cluster is not SOPD.
SMALL_PERCEPTRON = INNER_CURVATURE / 2
# The outer bound fails below: e^z (2 z + 1) = 2 beta e^{beta-3/2}, z = (sqrt(5 + 4 beta^2) - 3)/2.
OUTER_BOUND_BETA = 0.42296

# Two antipodal atoms are SOPD without a perceptron at every beta, and lie in one arc of length
# 1/(2 sqrt beta) up to here: they refute that no SOPD state is one cluster "for any beta > 0" (2601.21366).
ANTIPODES_BETA = 1 / (4 * np.pi**2)


def kernel_curvature(theta: ArrayLike, beta: ArrayLike) -> Array:
    """K''(theta)/(beta e^beta) = e^{beta (cos theta - 1)} (beta sin^2 theta - cos theta), K = e^{beta cos}.

    In [-1, 1): the value -1 is taken at theta = 0. 2601.21366, lemma on concavity.
    """
    theta, beta = np.asarray(theta, dtype=float), inverse_temperature(beta)
    fall = -2 * np.sin(theta / 2) ** 2
    return np.exp(beta * fall) * (beta * np.sin(theta) ** 2 - np.cos(theta))


def concavity_angle(beta: ArrayLike) -> Array:
    """theta_c = arccos((sqrt(1 + 4 beta^2) - 1)/(2 beta)): K is concave exactly on |theta| <= theta_c.

    In (0, pi/2); theta_c^2 = 1/beta - 1/(6 beta^2) + O(beta^{-3}), and pi/2 at beta = 0. Written with
    1 - cos theta_c = 2/(sqrt(1 + 4 beta^2) + 1 + 2 beta) (2 sin^2 of half of it), so that nothing cancels.
    """
    beta = inverse_temperature(beta)
    return 2 * np.arcsin(np.sqrt(1 / (np.hypot(1, 2 * beta) + 1 + 2 * beta)))


def inner_curvature_bound(part: ArrayLike) -> Array:
    """-e^{-l^2/2} (1 - l^2)/2: K''/(beta e^beta) is at most this on |theta| <= l theta_c, 0 <= l <= 1.

    2601.21366, for every beta > 0. The factor 1/2 is lossy for large beta, where -e^{-l^2/2} (1 - l^2) is
    the limit.
    """
    part = bounded("part", part, 0, 1, advice="it is a part of the angle theta_c")
    return -np.exp(-(part**2) / 2) * (1 - part**2) / 2


def outer_curvature_bound() -> float:
    """2 e^{-3/2}: K''/(beta e^beta) is at most this on |theta| >= theta_c, for beta >= 0.423.

    2601.21366 (there for every beta; below 0.423 it fails: at theta = pi the value is e^{-2 beta}).
    """
    return float(OUTER_CURVATURE)


def perceptron_size(omega: ArrayLike, a: ArrayLike) -> float:
    """W = sum_j |omega_j| |a_j|^2 of the weights omega (width,) and a (width, d)."""
    omega, a = np.asarray(omega, dtype=float), np.asarray(a, dtype=float)
    if a.ndim != 2 or omega.shape != a.shape[:1]:
        raise ValueError(
            f"omega must have one number per row of a, got {omega.shape} and {a.shape}; "
            "pass omega (width,) and a (width, d)"
        )
    return float(np.sum(np.abs(omega) * np.sum(a**2, axis=-1)))


def mass_bound(
    beta: ArrayLike,
    size: ArrayLike = 0.0,
    kind: Kind = USA,
    sigma: Sigma = "relu",
) -> Array:
    """(c2 + L W e^{-beta})/(c1 + c2): most mass of a cluster of an SOPD state.

    A cluster is two or more atoms in an arc of length 1/(2 sqrt beta).

    c1 = 3 e^{-1/8}/8, c2 = 2 e^{-3/2}; W = `size` is `perceptron_size`, L = sup |sigma'|. Derived from
    directions with sum_S m_i xi_i = 0 (the theorem of 2601.21366 gives the limit 0.5742 and hides W in
    O(e^{-beta})). In "metastability" the perceptron weighs e^beta times more: L W for L W e^{-beta}.
    Needs beta >= 0.423; says nothing where it is >= 1. The circle only.
    """
    beta = bounded(
        "beta", beta, OUTER_BOUND_BETA, np.inf, advice="below it the bound on K'' is false"
    )
    size = bounded("size", size, 0, np.inf, closed="low", advice="pass W = sum |omega_j| |a_j|^2")
    chosen("sigma", sigma, Sigma)
    strength = np.exp(-log_speed(kind, beta))
    push = LIPSCHITZ[sigma] * size * strength
    return (OUTER_CURVATURE + push) / (INNER_CURVATURE + OUTER_CURVATURE)


def atom_count_bound(
    beta: ArrayLike,
    least_mass: ArrayLike,
    size: ArrayLike = 0.0,
    kind: Kind = USA,
    sigma: Sigma = "relu",
    arcs: int = 1,
    length: float = 2 * np.pi,
) -> Array:
    """M (floor(2 L sqrt beta) + 1) max(1, floor(bound/eps)): most atoms of mass >= eps on M arcs of length L.

    2601.21366, corollary: (M/eps)(1 + 2 L sqrt beta)(0.5742 + O(e^{-beta})), here with `mass_bound` and whole
    numbers. An arc is covered by floor(2 L sqrt beta) + 1 arcs of length 1/(2 sqrt beta); each holds one atom
    of any mass, or atoms of mass eps up to the bound. For SOPD states on the circle, beta >= 0.423.
    """
    beta = inverse_temperature(beta)
    mass = np.minimum(1.0, mass_bound(beta, size, kind, sigma))
    least = bounded("least_mass", least_mass, 0, 1, closed="high", advice="a mass lies in (0, 1]")
    pieces = np.floor(2 * length * np.sqrt(beta)) + 1
    return arcs * pieces * np.maximum(1.0, np.floor(mass / least))


def strict_spacing(kappa: ArrayLike, third: ArrayLike, fourth: ArrayLike) -> Array:
    """2 (sqrt(D^2 + Q kappa) - D)/Q: atoms of a strict SOPD state with constant kappa are no closer.

    2601.21366 proves that analytic activations have finitely many; this number is ours. D = `third` bounds
    |F''|, Q = `fourth` bounds |K^(4)|/beta, F the field along the circle (all in units of e^beta: form B).
    Between two atoms delta apart F' has a zero, so |F'| <= D delta at both; the direction m_1 xi_1 =
    -m_2 xi_2 gives kappa (1/m_1 + 1/m_2) <= F'_1/m_1 + F'_2/m_2 + 2 (1 + K''(delta)/beta), whose last term
    is at most Q delta^2. With m_1 m_2/(m_1 + m_2) <= 1/4: kappa <= D delta + Q delta^2/4.
    """
    kappa = bounded("kappa", kappa, 0, np.inf, advice="pass the smallest eigenvalue, if positive")
    third = bounded("third", third, 0, np.inf, closed="neither", advice="pass a bound on |F''|")
    fourth = bounded("fourth", fourth, 0, np.inf, closed="neither", advice="pass max |K^(4)|/beta")
    return 2 * kappa / (np.sqrt(third**2 + fourth * kappa) + third)
