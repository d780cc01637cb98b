import numpy as np
import pytest
from named_kinds import named_kind
from scipy.integrate import quad, solve_ivp

from tokenflock import theory
from tokenflock.kinds import Hardmax
from tokenflock.theory._special import scaled_e1, scaled_ei

BETAS = np.array([0.0, 1, 2, 4, 6, 8, 9])
TABLE = {
    (2, "SA"): [3.800201, 4.271068, 5.163265, 10.831207, 39.162563, 196.716190, 466.710653],
    (32, "SA"): [5.186261, 5.270284, 5.458394, 6.953502, 15.995314, 73.445676, 178.730930],
    (32, "USA"): [5.186261, 2.897049, 1.880417, 1.130770, np.nan, 0.734491, np.nan],
}
MODELS = [("SA", "perspective"), ("USA", "perspective"), ("USA", "metastability")]


def reference_rate(g, n, beta, model, convention):
    """Equations (6.9) and (6.10) of 2312.10794, copied as printed."""
    numerator = 2 * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1)
    if model == "SA":
        return numerator / (np.exp(beta) + (n - 1) * np.exp(beta * g))
    return numerator / n * (np.exp(-beta) if convention == "metastability" else 1)


@pytest.mark.parametrize(("n", "model"), TABLE)
@pytest.mark.parametrize("method", ["closed", "quadrature"])
def test_K1_8_time_table(n, model, method):
    times = theory.equiangular_time(0.999, n, BETAS, kind=named_kind(model), method=method)
    expected = np.array(TABLE[n, model])
    known = np.isfinite(expected)
    np.testing.assert_allclose(times[known], expected[known], rtol=0, atol=5.1e-7)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_K1_8_closed_form_agrees_with_adaptive_quadrature_from_any_start(model, convention):
    for n, beta, start, stop in [(2, 3.0, -0.6, 0.7), (5, 0.4, -0.2, 0.95), (9, 7.0, 0.1, 0.9)]:
        arguments = (n, beta, model, convention)
        expected = quad(lambda g, a=arguments: 1 / reference_rate(g, *a), start, stop)[0]
        for method in ("closed", "quadrature"):
            time = theory.equiangular_time(
                stop, n, beta, start, named_kind(model, convention), method
            )
            assert time == pytest.approx(expected, rel=1e-9)


def test_K1_8_gamma_values():
    low = theory.equiangular_gamma([0.5, 1, 2, 3, 5], 32, 1)
    high = theory.equiangular_gamma([1, 2, 3, 5], 32, 4)
    expected_low = [0.04725593, 0.15184934, 0.58977282, 0.91420701, 0.99828425]
    np.testing.assert_allclose(low, expected_low, rtol=0, atol=5.1e-9)
    expected_high = [0.03544140, 0.11806565, 0.33298670, 0.95277485]
    np.testing.assert_allclose(high, expected_high, rtol=0, atol=5.1e-9)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_K1_8_gamma_solves_the_ode(model, convention):
    n, beta, start, times = 7, 2.5, -0.12, np.linspace(0, 1.5, 7)
    path = solve_ivp(
        lambda t, g: reference_rate(g, n, beta, model, convention),
        (0, times[-1]),
        [start],
        "DOP853",
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
    )
    gamma = theory.equiangular_gamma(times, n, beta, start, named_kind(model, convention))
    np.testing.assert_allclose(gamma, path.y[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("model", "convention"), MODELS)
@pytest.mark.parametrize("rho", [-0.17, 0.0, 0.35])
def test_rate_is_the_particle_field(particles, model, convention, rho):
    n, beta = 6, 1.7
    x = particles.equiangular(n, rho)
    v = particles.field(x, beta, model, convention)
    gram_rate = v @ x.T + x @ v.T
    off_diagonal = gram_rate[~np.eye(n, dtype=bool)]
    expected = theory.equiangular_rate(rho, n, beta, named_kind(model, convention))
    np.testing.assert_allclose(off_diagonal, expected, rtol=0, atol=1e-13)


def test_K1_7_orthogonal_particles_follow_gamma(particles):
    n, beta, times = 5, 3.0, np.array([0.5, 2.0, 5.0])
    x0 = particles.equiangular(n, 0.0)

    def velocity(t, y):
        return particles.field(y.reshape(x0.shape), beta).ravel()

    path = solve_ivp(velocity, (0, 5), x0.ravel(), "DOP853", t_eval=times, rtol=1e-11, atol=1e-12)
    for t, y in zip(times, path.y.T, strict=True):
        gram = y.reshape(x0.shape) @ y.reshape(x0.shape).T
        inner = gram[np.triu_indices(n, 1)]
        np.testing.assert_allclose(inner, theory.equiangular_gamma(t, n, beta), atol=1e-9)


def test_K1_8_flat_attention():
    t = np.array([0.0, 0.3, 1.0, 4.0])
    np.testing.assert_allclose(theory.flat_attention_gamma(t, 2), np.tanh(t), atol=1e-15)
    expected = (np.exp(2 * t) - 1) / (np.exp(2 * t) + 31)
    for model in ("SA", "USA"):
        gamma = theory.equiangular_gamma(t, 32, 0, kind=named_kind(model))
        np.testing.assert_allclose(gamma, expected, rtol=0, atol=1e-12)
    tiny = theory.equiangular_gamma(t, 32, 1e-9, 0.2)
    np.testing.assert_allclose(tiny, theory.flat_attention_gamma(t, 32, 0.2), atol=1e-8)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_K1_9_tail_slope(model, convention):
    n, beta = 32, 3.0
    start = theory.equiangular_time(1 - 1e-4, n, beta, kind=named_kind(model, convention))
    times = start + np.array([0, 1.0]) / theory.tail_rate(beta, named_kind(model, convention))
    gap = theory.equiangular_gap(times, n, beta, kind=named_kind(model, convention))
    slope = -np.diff(np.log(gap))[0] / np.diff(times)[0]
    assert slope == pytest.approx(theory.tail_rate(beta, named_kind(model, convention)), rel=1e-3)
    assert theory.tail_rate(beta, named_kind(model, convention)) == pytest.approx(
        2 * np.exp(beta) if (model, convention) == ("USA", "perspective") else 2
    )


def test_gap_keeps_relative_accuracy_at_late_times():
    gap = theory.equiangular_gap([20.0, 30.0, 300.0], 8, 2.0)
    assert np.log(gap[1] / gap[0]) == pytest.approx(-20, abs=1e-10)
    assert np.log(gap[2] / gap[1]) == pytest.approx(-540, abs=1e-9)


def test_time_inverts_gamma_on_a_grid():
    t, beta = np.array([0.01, 0.5, 3.0, 20.0])[:, None], np.array([0.0, 0.7, 5.0])
    gamma = theory.equiangular_gamma(t, 11, beta, -0.05)
    assert gamma.shape == (4, 3)
    np.testing.assert_allclose(
        theory.equiangular_time(gamma[:3], 11, beta, -0.05), np.broadcast_to(t[:3], (3, 3)), 1e-9
    )


def test_log_time_at_extreme_beta():
    beta = np.array([50.0, 400.0, 700.0, 3000.0])
    for model in ("SA", "USA"):
        closed = theory.log_equiangular_time(0.6, 5, beta, 0.1, named_kind(model))
        numeric = theory.log_equiangular_time(
            0.6, 5, beta, 0.1, named_kind(model), method="quadrature"
        )
        np.testing.assert_allclose(closed, numeric, rtol=1e-12, atol=1e-12)
    assert theory.equiangular_time(0.6, 5, 3000.0) == np.inf
    # Laplace: the start dominates, t ~ e^{beta(1-g0)}/(2 beta (1-g0)((n-1)g0+1)) for SA
    leading = 0.9 * beta - np.log(2 * beta * 0.9 * 1.4)
    closed = theory.log_equiangular_time(0.6, 5, beta, 0.1)
    np.testing.assert_allclose(closed - leading, 0, atol=3 / beta[0])


def test_gap_at_extreme_beta():
    gap = theory.equiangular_gap([0.0, 1.0], 4, 1000.0, kind=named_kind("USA"))
    assert gap == pytest.approx([1, 0], abs=1e-15)
    for model in ("SA", "USA"):
        time = theory.equiangular_time(1e-3, 4, 500.0, kind=named_kind(model))
        gamma = theory.equiangular_gamma(time, 4, 500.0, kind=named_kind(model))
        assert gamma == pytest.approx(1e-3, abs=1e-12)


def test_conventions_differ_by_the_clock_only():
    slow = theory.equiangular_time(0.8, 4, 2.5, kind=named_kind("USA", "metastability"))
    fast = theory.equiangular_time(0.8, 4, 2.5, kind=named_kind("USA", "perspective"))
    assert slow == pytest.approx(np.exp(2.5) * fast, rel=1e-13)


def test_stable_variable():
    n, gamma = 6, np.array([-0.19, 0.0, 0.4, 1.0])
    w = theory.w_from_gamma(gamma, n)
    np.testing.assert_allclose(theory.gamma_from_w(w, n), gamma, atol=1e-15)
    np.testing.assert_allclose(theory.gap_from_w(w, n), 1 - gamma, atol=1e-15)
    assert theory.gap_from_w(1e-40, n) == pytest.approx(6e-40, rel=1e-14)
    g, h = 0.4, 1e-6
    slope = np.diff(np.log(theory.w_from_gamma([g - h, g + h], n)))[0] / (2 * h)
    for model, convention in MODELS:
        rate = theory.equiangular_rate(g, n, 2.0, named_kind(model, convention))
        expected = theory.log_w_rate(g, n, 2.0, named_kind(model, convention))
        assert slope * rate == pytest.approx(expected, rel=1e-9)


def test_scaled_exponential_integrals_against_quadrature():
    for x in (0.3, 7.0, 49.9, 50.1, 400.0):
        # e^x E_1(x) = int_0^inf e^{-u}/(x+u) du
        expected = quad(lambda u, x=x: np.exp(-u) / (x + u), 0, np.inf, epsabs=0, epsrel=1e-12)[0]
        assert scaled_e1(np.asarray(x)) == pytest.approx(expected, rel=1e-11)
        # Ei by its principal value: -int_0^1-type split, Cauchy weight 1/(u-x)
        near = -quad(lambda u: np.exp(-u), 0, 2 * x, weight="cauchy", wvar=x, epsabs=1e-14)[0]
        far = quad(lambda u, x=x: np.exp(-u) / (x - u), 2 * x, np.inf, epsabs=1e-14)[0]
        assert scaled_ei(np.log(np.asarray(x))) == pytest.approx(near + far, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.2, 4, 1.0), "gamma must lie in"),
        ((-0.4, 4, 1.0), "-0.333333"),
        ((0.1, 1, 1.0), "n must lie in"),
        ((0.1, 4.5, 1.0), "whole number"),
        ((0.1, 4, -1.0), "beta must lie in"),
        ((0.1, 4, np.nan), "NaN"),
        ((0.1, 4, 1.0, "SA"), "got 'SA'; pass kinds.Softmax"),
        ((0.1, 4, 1.0, Hardmax()), "that of weights e.*got Hardmax"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        theory.equiangular_rate(*arguments)
