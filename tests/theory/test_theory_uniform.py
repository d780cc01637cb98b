from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from named_kinds import named_kind
from scipy.optimize import linprog
from scipy.special import eval_gegenbauer, gammaln, ive, logsumexp, roots_legendre

from tokenflock import theory
from tokenflock.theory import _special
from tokenflock.theory._special import log_ive


def funk_hecke(k, d, beta, shift=0.0):
    """Degree-k eigenvalue of e^{beta(t-shift)}/beta against the uniform measure of S^{d-1}."""
    theta, weight = roots_legendre(400)
    theta, weight = np.pi * (theta + 1) / 2, weight * np.sin(np.pi * (theta + 1) / 2) ** (d - 2)
    t = np.cos(theta)
    if d == 2:
        harmonic = np.cos(k * theta)
    else:
        harmonic = eval_gegenbauer(k, d / 2 - 1, t) / eval_gegenbauer(k, d / 2 - 1, 1.0)
    return (weight * harmonic * np.exp(beta * (t - shift))).sum() / weight.sum() / beta


def test_K1_19_uniform_energy():
    energy = theory.energy_uniform([2, 2, 3, 3], [1, 4, 1, 4])
    expected = [0.6330329389, 1.4127402440, 0.5876005968, 0.8528099124]
    np.testing.assert_allclose(energy, expected, rtol=0, atol=5.1e-11)
    iid = theory.energy_iid(32, [2, 3], [1, 4])
    np.testing.assert_allclose(iid, [0.6557238131, 1.0394336262], rtol=0, atol=5.1e-11)


@pytest.mark.parametrize("d", [2, 3, 5, 12])
def test_K1_19_uniform_energy_by_quadrature(d):
    for beta in (0.3, 4.0, 30.0):
        assert theory.energy_uniform(d, beta) == pytest.approx(
            funk_hecke(0, d, beta) / 2, rel=1e-11
        )
        hat = theory.energy_uniform(d, beta, "metastability")
        assert hat == pytest.approx(beta * funk_hecke(0, d, beta, 1.0), rel=1e-11)
    assert theory.log_partition(3, 900.0) == pytest.approx(900 - np.log(1800), rel=1e-14)


def test_K1_19_iid_energy_by_monte_carlo():
    rng, n, d, beta = np.random.default_rng(5), 6, 4, 2.0
    x = rng.normal(size=(4000, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    for convention, scale, shift in [("perspective", 1 / (2 * beta), 0), ("metastability", 1, 1)]:
        energies = np.exp(beta * (x @ x.transpose(0, 2, 1) - shift)).mean((1, 2)) * scale
        error = energies.std() / np.sqrt(len(x))
        expected = theory.energy_iid(n, d, beta, convention)
        assert abs(energies.mean() - expected) < 3.5 * error
        assert error < 0.005 * expected
    assert theory.energy_dirac(2.0) == pytest.approx(np.exp(2) / 4)
    assert theory.energy_dirac(2.0, "metastability") == 1


def test_K1_11_wendel_golden():
    value = theory.wendel_probability(32, [2, 8, 12, 16, 20, 24, 32, 40])
    expected = [0, 0.0016634464, 0.0748063922, 0.5, 0.9251936078, 0.9983365536, 1, 1]
    np.testing.assert_allclose(value, expected, rtol=0, atol=5.1e-8)
    np.testing.assert_allclose(value[1:7], expected[1:7], rtol=0, atol=5.1e-11)
    assert value[0] == pytest.approx(1.4901161e-8, rel=2e-8)
    d = np.arange(1, 32)
    total = theory.wendel_probability(32, d) + theory.wendel_probability(32, 32 - d)
    np.testing.assert_allclose(total, 1, atol=1e-13)


@pytest.mark.parametrize(("n", "d"), [(7, 3), (900, 430), (3000, 1450), (5000, 2600), (4000, 3)])
def test_K1_11_wendel_exact_integers(n, d):
    total = sum(comb(n - 1, k) for k in range(d))
    probability = float(Fraction(total, 2 ** (n - 1)))
    assert theory.wendel_probability(n, d) == pytest.approx(probability, rel=1e-9, abs=0)
    shift = max(total.bit_length() - 900, 0)
    exact = log(total >> shift) + (shift - (n - 1)) * log(2)
    assert theory.log_wendel_probability(n, d) == pytest.approx(exact, rel=1e-11, abs=1e-11)


def test_K1_11_wendel_by_linear_programming():
    rng, n, d, runs = np.random.default_rng(1), 9, 4, 400
    hits = 0
    for _ in range(runs):
        x = rng.normal(size=(n, d))
        constraints = np.hstack([-x, np.ones((n, 1))])  # <x_i, w> >= s, maximise s
        bounds = [(-1, 1)] * d + [(None, 1)]
        objective = np.r_[np.zeros(d), -1]
        hits += linprog(objective, constraints, np.zeros(n), bounds=bounds).x[-1] > 1e-9
    p = float(theory.wendel_probability(n, d))
    assert abs(hits / runs - p) < 3 * np.sqrt(p * (1 - p) / runs)


def test_K5_1_circle_rates_golden():
    k = np.arange(1, 6)
    expected = [4.86713, 14.00449, 18.59607, 16.34635, 10.78987]
    np.testing.assert_allclose(theory.growth_rate(k, 2, 5.0), expected, atol=5.1e-6)
    expected = [22.2913, 70.86361, 109.51134, 116.58000, 96.01959]
    np.testing.assert_allclose(theory.growth_rate(k, 2, 7.0), expected, atol=5.1e-6)
    soft = theory.growth_rate([3, 4], 2, [5.0, 7.0], named_kind("SA"))
    np.testing.assert_allclose(soft, [0.6826783336, 0.6914840633], rtol=0, atol=5.1e-11)


@pytest.mark.parametrize(("k", "beta"), [(1, 2.0), (3, 5.0), (4, 7.0)])
@pytest.mark.parametrize("model", ["SA", "USA"])
def test_K5_1_rates_of_particles_on_the_circle(k, beta, model):
    count, eps = 600, 1e-4
    grid = 2 * np.pi * np.arange(count) / count
    theta = grid - eps * np.sin(k * grid) / k
    difference = theta[:, None] - theta
    kernel = np.exp(beta * np.cos(difference))
    normaliser = kernel.sum(axis=1) if model == "SA" else count
    velocity = -(kernel * np.sin(difference)).sum(axis=1) / normaliser
    moment = np.exp(-1j * k * theta).mean()
    moment_rate = (-1j * k * velocity * np.exp(-1j * k * theta)).mean()
    expected = theory.growth_rate(k, 2, beta, named_kind(model))
    assert (moment_rate / moment).real == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("k", "model"), [(1, "SA"), (2, "USA"), (3, "SA"), (3, "USA")])
def test_K5_1_rates_of_a_density_on_the_sphere(particles, k, model):
    beta, eps = 3.0, 1e-5
    z, weight = roots_legendre(24)
    phi = 2 * np.pi * np.arange(30) / 30
    z, phi, weight = (a.ravel() for a in np.broadcast_arrays(z[:, None], phi, weight[:, None]))
    x = np.stack([np.sqrt(1 - z**2) * np.cos(phi), np.sqrt(1 - z**2) * np.sin(phi), z], 1)
    legendre = np.polynomial.legendre.Legendre.basis(k)
    weight = weight / weight.sum()
    masses = weight * (1 + eps * legendre(z))
    velocity = particles.field(x, beta, model, weights=masses)
    moment_rate = (masses * legendre.deriv()(z) * velocity[:, 2]).sum()
    rate = moment_rate / (eps * (weight * legendre(z) ** 2).sum())
    assert rate == pytest.approx(theory.growth_rate(k, 3, beta, named_kind(model)), rel=1e-4)


def test_K5_2_funk_hecke_golden():
    eigenvalue = theory.kernel_eigenvalue([1, 2, 3], 3, 4.0)
    expected = [1.2803595960, 0.7453501278, 0.3486719363]
    np.testing.assert_allclose(eigenvalue, expected, rtol=0, atol=5.1e-11)
    growth = theory.growth_rate([1, 2, 3], 3, 4.0)
    np.testing.assert_allclose(growth, [2.5607192, 4.4721008, 4.1840632], rtol=0, atol=5.1e-8)


@pytest.mark.parametrize("d", [2, 3, 6, 15])
def test_K5_2_funk_hecke_by_quadrature(d):
    for k in range(5):
        for beta in (0.7, 5.0, 40.0):
            expected = funk_hecke(k, d, beta, 1.0)
            value = theory.kernel_eigenvalue(k, d, beta, kind=named_kind("USA", "metastability"))
            assert value == pytest.approx(expected, rel=1e-9)
            soft = theory.kernel_eigenvalue(k, d, beta, named_kind("SA"))
            assert soft == pytest.approx(expected / funk_hecke(0, d, beta, 1.0) / beta, rel=1e-9)


def test_K5_3_transition_betas():
    expected = [1.044457, 3.165434, 6.211298, 10.228483, 15.236277, 21.240452]
    np.testing.assert_allclose(theory.transition_beta(np.arange(1, 7)), expected, atol=5.1e-7)
    for k, d in [(1, 3), (2, 8), (5, 4)]:
        beta = theory.transition_beta(k, d)
        low, high = funk_hecke(k, d, beta), funk_hecke(k + 1, d, beta)
        assert k * (k + d - 2) * low == pytest.approx((k + 1) * (k + d - 1) * high, rel=1e-10)


@pytest.mark.parametrize(
    ("d", "betas", "modes"),
    [
        (2, [1, 2, 4, 5, 7, 9, 16, 25, 50, 100, 200], [1, 2, 3, 3, 4, 4, 6, 7, 10, 14, 20]),
        (3, [1, 2, 4, 5, 7, 9, 16, 25, 50, 100, 200], [1, 2, 2, 3, 3, 4, 5, 7, 10, 14, 20]),
        (8, [1, 5, 6, 10, 16, 25, 50, 100, 200], [1, 1, 2, 2, 3, 5, 7, 11, 17]),
        (32, [1, 16, 25, 36, 50, 100, 200], [1, 1, 2, 2, 3, 6, 10]),
    ],
)
def test_U2_dominant_mode(d, betas, modes):
    assert theory.dominant_mode(d, betas).tolist() == modes


def test_U2_dominant_mode_by_exhaustion():
    for d, beta in [(2, 333.0), (5, 77.0), (64, 500.0)]:
        rates = theory.log_growth_rate(np.arange(1, 200), d, beta, named_kind("USA"))
        assert theory.dominant_mode(d, beta) == 1 + np.argmax(rates)
        guess = np.sqrt(2 * beta + (d / 2 - 1) ** 2) - d / 2 + 1
        assert abs(theory.dominant_mode(d, beta) - guess) < 1.5


def test_rates_at_extreme_and_zero_beta():
    log_rate = theory.log_growth_rate(2, 3, 700.0)
    assert log_rate == pytest.approx(np.log(6 * funk_hecke(2, 3, 700.0, 1.0)) + 700, rel=1e-9)
    assert theory.growth_rate(2, 3, 700.0, named_kind("USA", "metastability")) > 0
    # U4: backward heat, lambda_k -> k(k+d-2)/beta
    assert theory.growth_rate(3, 5, 1e5, named_kind("SA")) == pytest.approx(18 / 1e5, rel=1e-3)
    np.testing.assert_allclose(theory.growth_rate([1, 2], 7, 0.0), [6 / 7, 0], atol=1e-15)
    assert theory.growth_rate(1, 7, 1e-8) == pytest.approx(6 / 7, rel=1e-7)
    assert theory.growth_rate(1, 2, 50.0, named_kind("SA")) == pytest.approx(0.0198, abs=5e-5)


@pytest.mark.parametrize(
    ("nu", "x"),
    [(1.5, 3.0), (500, 1.0), (2047, 64.0), (80, 1e-3), (30, 1e-9), (5000, 5000.0), (600, 100.0)],
)
def test_log_ive_by_its_integral(nu, x):
    # I_nu(x) = (x/2)^nu/(sqrt(pi) Gamma(nu+1/2)) int_0^pi e^{x cos} sin^{2nu}; ratio to x = 0
    theta, weight = roots_legendre(1500)
    theta = np.pi * (theta + 1) / 2
    sine = 2 * nu * np.log(np.sin(theta)) + np.log(weight)
    log_ratio = logsumexp(sine + x * (np.cos(theta) - 1)) - logsumexp(sine)
    expected = nu * np.log(x / 2) - gammaln(nu + 1) + log_ratio
    assert log_ive(nu, x) == pytest.approx(expected, rel=1e-11)


def test_log_ive_branches_meet():
    nu, x = np.array([60.0, 200.0, 300.0]), np.array([20.0, 90.0, 700.0])
    expected = np.log(ive(nu, x))
    np.testing.assert_allclose(_special._log_ive_debye(nu, x), expected, rtol=1e-12)
    nu, x = np.array([0.5, 40.0]), np.array([0.3, 2.0])
    np.testing.assert_allclose(_special._log_ive_series(nu, x), np.log(ive(nu, x)), rtol=1e-12)


def test_K1_16_ngon_golden():
    assert theory.ngon_hessian_eigenvalues(3, 1.0).max() == pytest.approx(0.252721, abs=5.1e-7)
    assert theory.ngon_hessian_eigenvalues(4, 5.0).max() == pytest.approx(1.25, abs=1e-12)


@pytest.mark.parametrize(("n", "beta"), [(5, 3.0), (6, 0.8)])
def test_K1_16_ngon_hessian_by_finite_differences(n, beta):
    def energy(theta):
        return np.exp(beta * np.cos(theta[:, None] - theta)).sum() / (2 * beta * n**2)

    theta, h, unit = 2 * np.pi * np.arange(n) / n + 0.3, 1e-4, np.eye(n)
    hessian = np.array(
        [
            [
                sum(
                    a * b * energy(theta + h * (a * unit[i] + b * unit[j]))
                    for a in (1, -1)
                    for b in (1, -1)
                )
                / (4 * h * h)
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    expected = np.linalg.eigvalsh(hessian)
    values = theory.ngon_hessian_eigenvalues(n, beta)
    np.testing.assert_allclose(np.sort(values), expected, atol=3e-6)
    scaled = theory.ngon_hessian_eigenvalues(n, [beta, 2.0], "metastability")[0]
    np.testing.assert_allclose(scaled, values * 2 * beta * np.exp(-beta), rtol=1e-12, atol=1e-15)
    assert values.max() > 0


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="conserved mass"):
        theory.growth_rate(0, 2, 1.0)
    with pytest.raises(ValueError, match="d >= 2"):
        theory.energy_uniform(1, 1.0)
    with pytest.raises(ValueError, match="beta > 0"):
        theory.energy_uniform(3, 0.0)
