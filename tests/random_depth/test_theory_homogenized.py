"""Closed forms of random depth against quadrature, other libraries, and simulation."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp
from scipy.linalg import expm

from tokenflock import random_depth as rd
from tokenflock import theory
from tokenflock.theory.homogenized import correlation_log_density

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("d", [4, 10, 40])
def test_fishers_law_is_a_density_with_the_mean_of_one_factor(d):
    """Two formulas that do not know each other: Fisher's density and Olkin and Pratt's 2F1."""

    def density(r):
        return np.exp(correlation_log_density(r, 0.3, d))

    assert quad(density, -1, 1)[0] == pytest.approx(1, abs=1e-9)
    mean = quad(lambda r: r * density(r), -1, 1)[0]
    assert mean == pytest.approx(float(theory.direction_overlap(0.3, d, 1)), abs=1e-9)


def test_p3_7_directions_lose_overlap_twice_as_fast_under_two_factors():
    """P3-7 as corrected: d (E cos - R) at d = 40 for R = .3, .6; one factor -.1363, -.1946.

    The two-factor values are now exact: -.2628 (a Monte Carlo gave -.2623) and -.3800.
    """
    R, d = np.array([0.3, 0.6]), 40
    single = d * (theory.direction_overlap(R, d, 1) - R)
    double = d * (theory.direction_overlap(R, d, 2) - R)
    np.testing.assert_allclose(single, [-0.1363, -0.1946], atol=1e-4)
    np.testing.assert_allclose(double, [-0.2628, -0.3800], atol=1e-4)
    # d = 400 is within O(1/d) of the limits R^3 - R and half of it.
    far = 400 * (theory.direction_overlap(R, 400, 2) - R)
    np.testing.assert_allclose(far, R**3 - R, rtol=0.01)
    for factors, exact in ((1, single), (2, double)):
        for overlap, value in zip(R, exact, strict=True):
            found = rd.measured_direction_overlap(overlap, d, 20_000, seed=3, factors=factors)
            assert d * (found.value - overlap) == pytest.approx(value, abs=4 * d * found.error)
            assert d * found.error < 0.02


def slowly(overlap, d):
    """E cos(Ax, Ay) for A = W W'^T by mpmath: rho_d over Fisher's density in r, 30 digits."""
    with mpmath.workdps(30):
        R, half = mpmath.mpf(overlap), mpmath.mpf(1) / 2
        ratio = 2 * (mpmath.gamma((d + 1) * half) / mpmath.gamma(d * half)) ** 2 / d
        scale = (d - 1) * mpmath.gamma(d) / mpmath.gamma(d + half) / mpmath.sqrt(2 * mpmath.pi)

        def weighed(z):
            r = mpmath.tanh(z)
            law = mpmath.sech(z) ** (d - 1) * (1 - R * r) ** (half - d)
            law *= mpmath.hyp2f1(half, half, d + half, (1 + R * r) / 2)
            return law * r * ratio * mpmath.hyp2f1(half, half, (d + 2) * half, r * r)

        centre, reach = mpmath.atanh(R), mpmath.mpf(60) / (d - 1)
        total = mpmath.quad(
            weighed, [centre - reach, centre - 1, centre, centre + 1, centre + reach]
        )
        return float(scale * (1 - R * R) ** (d * half) * total)


@pytest.mark.parametrize(("overlap", "d"), [(0.3, 2), (0.3, 3), (0.9999, 4), (1e-3, 7)])
def test_direction_overlaps_hold_at_small_d_and_near_the_ends(overlap, d):
    assert theory.direction_overlap(overlap, d) == pytest.approx(slowly(overlap, d), rel=1e-10)
    assert theory.direction_overlap(-overlap, d) == -theory.direction_overlap(overlap, d)


def test_the_slow_coefficient_has_its_limits_at_both_ends():
    """R -> 1: 1 + (d-1)(slope - 1)/2, slope = ((d-1)/(d-2))^factors; R -> 0: continuous; d -> infinity: 2."""
    for d in (4, 40, 61, 500):
        for factors in (1, 2):
            end = 1 + (d - 1) * (((d - 1) / (d - 2)) ** factors - 1) / 2
            found = theory.slow_coefficient(1 - 1e-12, d, factors)
            assert found == pytest.approx(end, rel=1e-4)
            middle = theory.slow_coefficient([0.0, 1e-3], d, factors)
            assert middle[0] == pytest.approx(middle[1], abs=1e-5)
    assert theory.slow_coefficient(0.0, 40) == pytest.approx(1.906426, abs=1e-6)
    assert theory.slow_coefficient(0.5, 10**5) == pytest.approx(2, abs=1e-4)
    assert np.isfinite(theory.slow_coefficient(np.linspace(-0.99, 0.99, 9), 2)).all()
    np.testing.assert_array_equal(theory.direction_overlap([-1, 0, 1], 2), [-1, 0, 1])


@pytest.mark.parametrize("start", [2.0, 1.0, -1.0, np.nan])
def test_a_simplex_starts_between_its_ends(start):
    with pytest.raises(ValueError, match="gamma0"):
        theory.simplex_overlap([0, 1], start, lambda _: (0.1, 0.1))


def test_the_slow_coefficient_is_two_not_one():
    """P3.b 8: k_d = -d D/(R(1-R^2)) tends to 2 (3/2 for one matrix) like 1/d; measured within 4 errors."""
    dims = np.array([20, 40, 80, 160])
    for factors, limit in ((2, 2.0), (1, 1.5)):
        gap = limit - np.array([theory.slow_coefficient(0.5, d, factors) for d in dims])
        np.testing.assert_allclose(np.log2(gap[:-1] / gap[1:]), 1, atol=0.05)
        found = rd.measured_slow_coefficient(20, 0.5, 40_000, seed=1, factors=factors)
        exact = float(theory.slow_coefficient(0.5, 20, factors))
        assert found.value == pytest.approx(exact, abs=4 * found.error)
        low, high = found.interval(5)
        assert low > 1
        assert high - low < 0.25


@pytest.mark.parametrize("factors", [1, 2])
def test_the_zero_temperature_exponent_is_the_slope_of_direction_overlaps(factors):
    """slope = -ds/d(1-R) at R = 1 by finite differences; exponents -(d-1)/(d(d-2)^2) and -(d-1)/(d(d-2))."""
    d, gap = 12, 1e-5
    slope = (1 - theory.direction_overlap(1 - gap, d, factors)) / gap
    assert slope == pytest.approx(((d - 1) / (d - 2)) ** factors, rel=1e-3)
    exact = -(d - 1) / (d * (d - 2) ** factors)
    assert theory.zero_temperature_exponent(d, factors) == pytest.approx(exact)
    assert theory.two_point_exponent(d, slope) == pytest.approx(exact, abs=2e-3)


def test_p3_8_absorption_solves_its_boundary_value_problem():
    """P3-8: 1/2 + arcsin(u0)/pi at k = 1, .6667 from u0 = .5; other k against scipy's solve_bvp."""
    u = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(
        theory.slow_probability(u, 1.0), 0.5 + np.arcsin(u) / np.pi, atol=1e-12
    )
    assert theory.slow_probability(0.5, 1.0) == pytest.approx(2 / 3)
    k = 0.4
    inner = np.linspace(-0.9, 0.9, 41)
    ends = theory.slow_probability([-0.9, 0.9], k)
    found = solve_bvp(
        lambda u, y: np.stack([y[1], k * u * y[1] / (1 - u**2)]),
        lambda a, b: np.array([a[0] - ends[0], b[0] - ends[1]]),
        inner,
        np.zeros((2, inner.size)),
        tol=1e-8,
    )
    np.testing.assert_allclose(found.sol(0.5)[0], theory.slow_probability(0.5, k), atol=1e-6)
    with pytest.raises(ValueError, match="nothing is absorbed"):
        theory.slow_probability(0.5, 2.0)


def share_above(level, t, k, reach=30.0, size=481):
    """P(|u(t)| > level | u(0) = 0): the generator on a grid of z = artanh u, exponentiated by scipy."""
    z = np.linspace(-reach, reach, size)
    h = z[1] - z[0]
    drift = (2 - k) * np.tanh(z)
    up, down = 1 / h**2 + drift / (2 * h), 1 / h**2 - drift / (2 * h)
    generator = np.diag(up[:-1], 1) + np.diag(down[1:], -1)
    generator -= np.diag(generator.sum(axis=1))
    beyond = np.clip((np.abs(z) - np.arctanh(level)) / h + 0.5, 0, 1)
    return float((expm(t * generator) @ beyond)[size // 2])


def test_p3_9_two_is_critical():
    """P3-9: P(|u| > .99) from 0 at k = 2 is closed; at k = 1 a grid gives the stated shares."""
    closed = theory.slow_share(0.99, [5.0, 10.0, 30.0], 2)
    np.testing.assert_allclose(closed, [0.4026, 0.5540, 0.7326], atol=5e-5)
    assert share_above(0.99, 5.0, 2) == pytest.approx(closed[0], abs=2e-3)
    assert share_above(0.99, 5.0, 0) == pytest.approx(
        float(theory.slow_share(0.99, 5.0, 0)), abs=2e-3
    )
    for t, share in ((5.0, 0.8494), (10.0, 0.9761), (30.0, 1.0)):
        assert share_above(0.99, t, 1) == pytest.approx(share, abs=2e-3)
    with pytest.raises(ValueError, match="closed at k = 0 and k = 2"):
        theory.slow_share(0.9, 1.0, 1)


@pytest.mark.slow
def test_p3_8_and_9_paths_of_the_slow_limit():
    """1e4 paths: absorption from u0 = .5 at k = 1, shares beyond .99 at k = 1, 2; 4 standard errors."""
    times = [5.0, 10.0, 30.0]
    expected = {
        1.0: [0.8494, 0.9761, 1.0],
        2.0: theory.slow_share(0.99, times, 2),
    }
    for k, shares in expected.items():
        found = np.mean(np.abs(np.tanh(rd.slow_paths(times, k, seed=4))) > 0.99, axis=0)
        assert np.all(np.abs(found - shares) < 4 * np.sqrt(0.25 / 1e4) + 2e-3)
    absorbed = np.mean(rd.slow_paths(times, 1.0, 0.5, seed=5)[:, -1] > 0)
    assert absorbed == pytest.approx(2 / 3, abs=4 * np.sqrt(2 / 9 / 1e4))


@pytest.mark.parametrize("beta", [0.1, 0.2])
def test_p3_12_small_beta_expands_as_predicted(beta):
    """P3-12: s_ij to second order in beta; 2 % of the correction plus 4 standard errors, A -> -A."""
    n, d, draws = 5, 6, 20_000
    x = RNG.normal(size=(n, d)) + 0.5
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    W, other = RNG.normal(size=(2, draws, d, d)) / np.sqrt(d)
    half = np.einsum("id,rdk->rik", x, other) @ np.einsum("id,rdk->rik", x, W).transpose(0, 2, 1)
    total = 0
    for sign in (1, -1):
        p = np.exp(sign * beta * half)
        m = p / p.sum(axis=-1, keepdims=True) @ x
        total = total + m @ m.transpose(0, 2, 1) / 2
    flat = x.mean(axis=0) @ x.mean(axis=0)
    predicted = theory.high_temperature_moments(x, beta, d**-0.5)
    correction = np.abs(predicted - flat).max()
    error = 4 * total.std(axis=0) / np.sqrt(draws) + 0.02 * correction
    assert np.all(np.abs(total.mean(axis=0) - predicted) < error)
    assert error.max() < 0.2 * correction


@pytest.mark.slow
def test_p3_13_moments_on_the_simplex():
    """P3-13: f and g for d = 16, n = 8, 2e4 draws; 3 % as stated, and 1/n at beta = 0."""
    golden = {
        1.0: [(0.1319, 0.1250), (0.1284, 0.1267), (0.1257, 0.1256)],
        3.0: [(0.1867, 0.1255), (0.1563, 0.1400), (0.1312, 0.1306)],
        10.0: [(0.498, 0.131), (0.379, 0.228), (0.193, 0.185)],
        30.0: [(0.805, 0.137), (0.729, 0.315), (0.479, 0.422)],
    }
    for beta, values in golden.items():
        found = rd.simplex_moments([0.0, 0.5, 0.9], 8, 16, beta)
        np.testing.assert_allclose(np.stack([found.f, found.g], axis=1), values, rtol=0.03)
        assert np.all(found.f_error < 0.01 * found.f)
    flat = rd.simplex_moments([0.0, 0.5, 0.9], 8, 16, 0.0)
    np.testing.assert_allclose([flat.f, flat.g], 1 / 8, atol=1e-14)


def test_the_simplex_equation_at_beta_zero_is_the_exact_mean_overlap_equation():
    """f = g = 1/n: with m = gamma + (1-gamma)/n the limit of large d is m' = m(1-m), the logistic."""
    n, tau = 8, np.linspace(0, 4, 9)
    gamma = theory.simplex_overlap(tau, 0.1, lambda _: (1 / n, 1 / n))
    m = gamma + (1 - gamma) / n
    np.testing.assert_allclose(m, theory.logistic_overlap(tau, m[0]), atol=1e-7)
    drift = theory.simplex_drift(0.3, 0.2, 0.15, d=50)
    gap = drift - theory.simplex_drift(0.3, 0.2, 0.15)
    own, cross = 0.3 + 0.7 * 0.2, 0.3 + 0.7 * 0.15
    assert gap == pytest.approx((0.3 * own - (2 - 0.09) * cross) / 50)
    assert theory.logistic_depth(0.9, 1 / n) == pytest.approx(np.log(9 * (n - 1)))
    assert theory.logistic_overlap(theory.logistic_depth(0.9, 0.2), 0.2) == pytest.approx(0.9)


@pytest.mark.parametrize(("step", "heads"), [(0.5, 1), (0.35, 1), (0.5, 4)])
def test_layers_of_finite_step_need_more_depth_than_the_logistic_law(step, heads):
    """The expectation of one layer at beta = 0 and d = infinity, iterated token pair by token pair."""
    n, unit = 8, step**2 / heads
    R, layers = np.eye(n), 0.0
    while (u := R.mean()) < 0.9:
        before = u
        R = (R + unit * u) / (1 + unit * u)
        np.fill_diagonal(R, 1.0)
        layers += 1
    part = np.log(0.9 / 0.1 * (1 - before) / before) / np.log1p(unit)
    exact = unit * (layers - 1 + part)
    assert theory.layered_depth(0.9, n, step=step, heads=heads) == pytest.approx(exact, rel=1e-12)
    assert exact > 1.0 * theory.logistic_depth(0.9, 1 / n)


def test_depth_at_finite_dimension_follows_its_own_drift():
    n = 8
    tau = theory.layered_depth(0.9, n, 32)
    common = theory.simplex_overlap(tau, 0.0, lambda gamma: (1 / n, 1 / n), 32)
    assert 1 / n + (1 - 1 / n) * float(common) == pytest.approx(0.9, abs=1e-7)
    flat = float(theory.logistic_depth(0.9, 1 / n))
    assert theory.layered_depth(0.9, n, 10**7) == pytest.approx(flat, rel=1e-5)
    # To first order in 1/d the excess is c/d.
    excess = [theory.layered_depth(0.9, n, d) - flat for d in (400, 800)]
    assert excess[0] / excess[1] == pytest.approx(2.0, rel=0.02)


def test_variance_proxy_is_the_tangent_noise():
    """varsig^2 = sigma_V^2 (d-1): E|P_x V m|^2 for |m| = 1, and alpha = eta varsig^2/H."""
    d = 7
    V = RNG.normal(size=(4000, d, d)) / np.sqrt(d)
    m = RNG.normal(size=d)
    push = V @ (m / np.linalg.norm(m))
    tangent = np.sum(push[:, 1:] ** 2, axis=1)
    expected = float(theory.variance_proxy(d))
    assert tangent.mean() == pytest.approx(expected, abs=4 * tangent.std() / np.sqrt(4000))
    assert theory.noise_strength(0.1, 4, d) == pytest.approx(0.1 * expected / 4)
