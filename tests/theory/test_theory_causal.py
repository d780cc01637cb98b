import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import exp1

from tokenflock import theory


def test_K4_5_peak_golden():
    peak = theory.kernel_peak([1, 4, 100])
    expected = [0.9045568943, 0.4890443303, 0.0999164797]
    np.testing.assert_allclose(peak, expected, rtol=0, atol=5.1e-11)
    np.testing.assert_allclose(theory.interaction_slope(peak, [1, 4, 100]), 0, atol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 0.7, 9.0, 1e4])
def test_K4_5_peak_by_search(beta):
    top = minimize_scalar(
        lambda x: -theory.interaction_kernel(x, beta),
        bounds=(1e-4, min(2.5, 5 / np.sqrt(beta + 0.1))),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert theory.kernel_peak(beta) == pytest.approx(top.x, rel=1e-6)


def test_peak_in_any_dimension_and_without_cancellation():
    beta, d = np.array([0.5, 6.0, 80.0])[:, None], np.array([2, 5, 40])
    tau = theory.kernel_peak(beta, d)
    np.testing.assert_allclose(beta * np.sin(tau) ** 2, (d - 1) * np.cos(tau), rtol=1e-12)
    assert theory.kernel_peak(1e16) == pytest.approx(1e-8, rel=1e-12)
    beta = np.array([1.0, 7.0, 300.0])
    assert ((beta + 0.5) ** -0.5 < theory.kernel_peak(beta)).all()
    assert (theory.kernel_peak(beta) < beta**-0.5).all()


def test_kernel_and_slope():
    x, beta, h = np.array([-1.1, 0.3, 2.0, 3.0]), 2.4, 1e-5
    direct = np.exp(beta * (np.cos(x) - 1)) * np.sin(x)
    np.testing.assert_allclose(theory.interaction_kernel(x, beta), direct, rtol=1e-13)
    difference = theory.interaction_kernel(x + h, beta) - theory.interaction_kernel(x - h, beta)
    np.testing.assert_allclose(theory.interaction_slope(x, beta), difference / (2 * h), atol=1e-9)
    x = np.array([0.1, 0.5, 1.3])
    value = theory.interaction_kernel(x, beta)
    assert (np.exp(-beta * x**2 / 2) * (x - x**3 / 6) < value).all()
    assert (value < x * np.exp(-beta * x**2 / 2 + beta * x**4 / 24)).all()


def test_cap_mass():
    delta = np.array([0.0, 0.2, 1.5, 2.0, np.pi])
    np.testing.assert_allclose(theory.cap_mass(delta, 2), delta / np.pi, atol=1e-15)
    np.testing.assert_allclose(theory.cap_mass(delta, 3), np.sin(delta / 2) ** 2, atol=1e-15)
    for d in (4, 9):
        total = quad(lambda u, d=d: np.sin(u) ** (d - 2), 0, np.pi)[0]
        expected = [quad(lambda u, d=d: np.sin(u) ** (d - 2), 0, r)[0] / total for r in delta]
        np.testing.assert_allclose(theory.cap_mass(delta, d), expected, atol=1e-12)


def test_K4_4_expected_centres_golden():
    assert theory.expected_strong_centres(0.1, 2, 600) == pytest.approx(31.42, abs=5e-3)
    assert theory.expected_strong_centres(0.1, 2) == pytest.approx(np.pi / 0.1)
    assert theory.expected_strong_centres(0.3, 3) == pytest.approx(1 / np.sin(0.15) ** 2)
    assert theory.expected_renyi_centres(0.1) == pytest.approx(46.97, abs=5e-3)
    assert theory.expected_strong_centres(np.pi, 4, 7) == 1


@pytest.mark.parametrize(("d", "delta", "n"), [(2, 0.5, 10), (3, 0.6, 40)])
def test_K4_4_strong_centres_by_monte_carlo(d, delta, n):
    rng, runs = np.random.default_rng(8), 3000
    x = rng.normal(size=(runs, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    close = x @ x.transpose(0, 2, 1) >= np.cos(delta)
    earlier = np.tril(np.ones((n, n), bool), -1)
    counts = (~(close & earlier).any(axis=2)).sum(axis=1)
    error = counts.std() / np.sqrt(runs)
    assert abs(counts.mean() - theory.expected_strong_centres(delta, d, n)) < 3 * error
    assert error < 0.05


def test_renyi_constant():
    def integrand(t):
        return np.exp(-2 * (exp1(t) + np.log(t) + np.euler_gamma))

    head = quad(integrand, 0, 50, epsabs=1e-14, epsrel=1e-13, limit=500, points=[1, 5])[0]
    # beyond 50 the inner integral is log t + gamma up to e^{-50}: integrand e^{-2 gamma}/t^2
    value = head + np.exp(-2 * np.euler_gamma) / 50
    assert pytest.approx(value, abs=1e-12) == theory.RENYI_CONSTANT


def test_renyi_centres_by_parking():
    rng, delta, runs = np.random.default_rng(9), 0.45, 4000
    counts = np.zeros(runs)
    for run in range(runs):
        gaps, count = [2 * np.pi / delta - 2], 1  # allowed left ends after the first arc
        while gaps:
            room = gaps.pop()
            if room >= 0:
                left = rng.uniform(0, room)
                count += 1
                gaps += [left - 1, room - left - 1]
        counts[run] = count
    error = counts.std() / np.sqrt(runs)
    assert abs(counts.mean() - theory.expected_renyi_centres(delta)) < 3 * error
    assert error < 0.02
