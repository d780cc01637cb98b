"""Concavity of e^{beta cos} and the bounds on masses and atoms, against brute force (P1-4, P1-5)."""

import numpy as np
import pytest
from named_kinds import named_kind
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from tokenflock.theory import perceptron as theory

BETAS = np.array([1.0, 4.0, 16.0, 64.0, 256.0])


def second_difference(theta, beta, h=1e-4):
    """K''/(beta e^beta) from K itself."""
    kernel = lambda angle: np.exp(beta * (np.cos(angle) - 1))  # noqa: E731
    return (kernel(theta + h) - 2 * kernel(theta) + kernel(theta - h)) / h**2 / beta


def largest(beta, low, high):
    theta = np.linspace(low, high, 200_001)
    return theory.kernel_curvature(theta, beta).max()


def test_curvature_is_the_second_derivative():
    """h^2 K''''/12 is below 2e-6 at beta = 9 (K'''' <= 3 beta^2 of its size); rounding eps/h^2 = 2e-8."""
    theta = np.linspace(-3, 3, 31)
    np.testing.assert_allclose(
        theory.kernel_curvature(theta, 9.0), second_difference(theta, 9.0), atol=1e-6
    )


def test_P1_4_concavity_angle():
    printed = [0.90456, 0.97809, 0.99472, 0.99869, 0.99967]
    np.testing.assert_allclose(theory.concavity_angle(BETAS) * np.sqrt(BETAS), printed, atol=6e-6)
    angle = theory.concavity_angle(BETAS)
    np.testing.assert_allclose(theory.kernel_curvature(angle, BETAS), 0.0, atol=1e-12)
    assert theory.concavity_angle(0.0) == pytest.approx(np.pi / 2, abs=1e-15)
    next_term = (1 / BETAS - theory.concavity_angle(BETAS) ** 2) * 6 * BETAS**2
    assert next_term[-1] == pytest.approx(1.0, abs=2 / BETAS[-1])


def test_P1_5_inner_and_outer_bounds():
    inner = [largest(b, 0.0, theory.concavity_angle(b) / 2) for b in (1.0, 256.0)]
    outer = [largest(b, theory.concavity_angle(b), np.pi) for b in (1.0, 256.0, 0.1)]
    np.testing.assert_allclose(inner, [-0.64070, -0.66172], atol=1e-5)
    np.testing.assert_allclose(outer, [0.36788, 0.44561, 0.8187], atol=5e-5)
    for beta in np.geomspace(0.01, 1e4, 25):
        for part in (0.0, 0.3, 0.5, 0.9):
            bound = theory.inner_curvature_bound(part)
            assert largest(beta, 0.0, part * theory.concavity_angle(beta)) <= bound + 1e-12
    assert theory.inner_curvature_bound(0.5) == pytest.approx(-theory.INNER_CURVATURE, rel=1e-15)


def test_outer_bound_holds_exactly_from_its_threshold():
    gap = lambda b: largest(b, theory.concavity_angle(b), np.pi) - theory.outer_curvature_bound()  # noqa: E731
    threshold = brentq(gap, 0.34, 0.6)
    assert threshold == pytest.approx(theory.OUTER_BOUND_BETA, abs=1e-5)
    assert all(gap(b) < 0 for b in np.geomspace(theory.OUTER_BOUND_BETA + 1e-4, 1e3, 20))


def test_lipschitz_constant_of_gelu():
    steepest = minimize_scalar(lambda s: -(norm.cdf(s) + s * norm.pdf(s)), bracket=(1.0, 2.0)).fun
    assert 0 <= theory.LIPSCHITZ["gelu"] + steepest < 1e-5


def test_P1_b8_constants():
    assert pytest.approx(0.574192, abs=1e-6) == theory.CLUSTER_MASS
    assert pytest.approx(0.165468, abs=1e-6) == theory.SMALL_PERCEPTRON
    np.testing.assert_allclose(theory.mass_bound(60.0, 3.0), theory.CLUSTER_MASS, rtol=1e-12)
    size = theory.perceptron_size([1.0, -2.0], [[3.0, 4.0], [0.0, 1.0]])
    assert size == 27.0
    c1, c2 = 0.330936, 0.446260
    found = theory.mass_bound(2.0, size, named_kind("USA", "metastability"), "gelu")
    assert found == pytest.approx((c2 + 1.12891 * size) / (c1 + c2), rel=1e-5)
    assert theory.mass_bound(2.0, size) == pytest.approx(
        (c2 + size * np.exp(-2)) / (c1 + c2), rel=1e-5
    )


def test_atom_count():
    """An arc of length 2 pi at beta = 4 takes 26 pieces of length 1/4; each holds 5 atoms of mass 0.1."""
    assert theory.atom_count_bound(4.0, 0.1) == 26 * 5
    assert theory.atom_count_bound(4.0, 0.9, arcs=2, length=0.1) == 2
    with pytest.raises(ValueError, match="least_mass"):
        theory.atom_count_bound(4.0, 0.0)
    with pytest.raises(ValueError, match="beta"):
        theory.mass_bound(0.3)
