"""Checks P6c-1 to P6c-5 of Sinkformers (2110.11773), and the closed forms behind them."""

import jax
import numpy as np
import pytest
from scipy import integrate, special

import tokenflock as flock
from tokenflock.ledger.measure import field, read
from tokenflock.papers.gaussian import closed_forms as gaussian_forms
from tokenflock.papers.sinkformers import closed_forms as sinkhorn_forms
from tokenflock.papers.sinkformers.claims.shared import attention, random_symmetric, random_tokens

N, D = 12, 2


def random_case(seed=0):
    rng = np.random.default_rng(seed)
    return random_tokens(rng, N, D), rng.normal(size=(D, D)), rng.normal(size=(D, D))


# --- the five checks ---


def test_p6c_1_rows_and_columns_sum_to_one():
    tokens, B, V = random_case()
    matrix = read(flock.observables.attention_matrix, attention("sinkhorn", B, V), tokens)[0]
    masses = np.asarray(tokens.weights)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-10)
    np.testing.assert_allclose(masses @ matrix, masses, atol=1e-10)
    softmax = read(flock.observables.attention_matrix, attention("softmax", B, V), tokens)[0]
    assert np.abs(masses @ softmax / masses - 1).max() > 0.1


def test_p6c_2_the_field_is_minus_the_gradient_of_the_energy():
    """Token by token: w_i v_i = -dF_inf/dx_i by differences; F falls at the rate sum w |v|^2."""
    rng = np.random.default_rng(3)
    tokens, B = random_tokens(rng, N, D), random_symmetric(rng, D)
    points, masses = np.asarray(tokens.points), np.asarray(tokens.weights)
    velocity = field(attention("sinkhorn", B, -B), tokens)

    def energy(x):
        scores = x @ B @ x.T
        return sinkhorn_forms.coupling_energy((scores + scores.T) / 2, masses)

    step = 1e-5
    for i, k in ((0, 0), (5, 1), (11, 0)):
        away = np.zeros_like(points)
        away[i, k] = step
        slope = (energy(points + away) - energy(points - away)) / (2 * step)
        # Rounding 1e-15/step and step^2.
        assert slope == pytest.approx(-masses[i] * velocity[i, k], abs=1e-8)


@pytest.mark.parametrize("bandwidth", [0.1, 0.01, 0.001])
def test_p6c_3_slopes_of_a_gaussian(bandwidth):
    """-eps/S against -eps/(2S) as eps -> 0; the 1-D formula of P6b.3 with a = 1/eps."""
    S = 0.7
    half, full = (
        sinkhorn_forms.sinkhorn_shift(S, bandwidth),
        sinkhorn_forms.softmax_shift(S, bandwidth),
    )
    slope = gaussian_forms.sinkhorn_slope([[S]], [[1 / bandwidth]])[0, 0]
    assert half == pytest.approx(slope - 1, abs=1e-12)
    u = bandwidth / S
    assert abs(half + u / 2) <= u**2 / 8
    assert abs(full + u) <= u**2
    x = np.linspace(-9, 9, 4001) * np.sqrt(S)
    seen = np.exp(-(x**2) / (2 * S) - (x - 1.0) ** 2 / (2 * bandwidth))
    assert x @ seen / seen.sum() - 1 == pytest.approx(full, abs=1e-10)


def test_p6c_4_permutations_pass_through():
    tokens, B, V = random_case(4)
    order = np.random.default_rng(5).permutation(N)
    points, masses = np.asarray(tokens.points), np.asarray(tokens.weights)
    shuffled = flock.Measure(flock.Euclidean(D), points[order], masses[order])
    model = attention("sinkhorn", B, V)
    np.testing.assert_allclose(field(model, shuffled), field(model, tokens)[order], atol=1e-10)


def test_p6c_5_the_mean_is_moved_by_v_alone():
    tokens, B, V = random_case(6)
    points, masses = np.asarray(tokens.points), np.asarray(tokens.weights)
    expected = V @ (masses @ points)
    sinkhorn = masses @ field(attention("sinkhorn", B, V), tokens)
    np.testing.assert_allclose(sinkhorn, expected, atol=1e-10)
    softmax = masses @ field(attention("softmax", B, V), tokens)
    assert np.abs(softmax - expected).max() > 0.01


# --- no energy for softmax ---


def test_the_jacobian_of_softmax_is_not_symmetric():
    """Its antisymmetric part for two tokens is the closed form; for K^0 it is zero."""

    def jacobian(kind, pair):
        model = attention(kind, np.array([[1.3]]), np.array([[-1.3]]))
        term = model.parts()[0]

        def velocity(x):
            mu = flock.Measure(flock.Euclidean(1), x[:, None])
            return term.field(0.0, mu.points, mu, flock.Dense())[:, 0]

        return np.asarray(jax.jacfwd(velocity)(jax.numpy.asarray(pair)))

    pair = np.array([0.8, -0.3])
    softmax = jacobian("softmax", pair)
    assert softmax[1, 0] - softmax[0, 1] == pytest.approx(
        float(sinkhorn_forms.softmax_curl(*pair, 1.3)), abs=1e-12
    )
    assert abs(softmax[1, 0] - softmax[0, 1]) > 0.05
    kernel = jacobian("unnormalised", pair)
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-14)


# --- closed forms ---


def test_alternation_begins_with_softmax_and_nears_the_coupling():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(10, 2))
    scores = points @ points.T
    np.testing.assert_allclose(
        sinkhorn_forms.alternating(scores, 1), special.softmax(scores, axis=1)
    )
    np.testing.assert_allclose(sinkhorn_forms.alternating(scores, 0), np.exp(scores))
    gaps = [np.abs(sinkhorn_forms.alternating(scores, k).sum(axis=0) - 1).max() for k in (1, 3, 5)]
    assert gaps[0] > 0.3
    assert gaps[2] < gaps[1] < gaps[0]
    # The authors use five: here a tenth of softmax's error is left.
    assert gaps[2] < gaps[0] / 10
    masses = np.full(10, 0.1)
    phi = sinkhorn_forms.coupling_potential(scores, masses)
    plan = np.exp(scores - phi[:, None] - phi) * masses
    np.testing.assert_allclose(sinkhorn_forms.alternating(scores, 2001), plan, atol=1e-12)


def test_the_energy_is_what_the_paper_defines():
    """-(1/2) iint k log(k/k0) with random masses, and more than any other coupling's score less entropy."""
    rng = np.random.default_rng(1)
    tokens = random_tokens(rng, 9, 2)
    points, w = np.asarray(tokens.points), np.asarray(tokens.weights)
    scores = points @ random_symmetric(rng, 2) @ points.T
    scores = (scores + scores.T) / 2
    phi = sinkhorn_forms.coupling_potential(scores, w)
    density = np.exp(scores - phi[:, None] - phi)
    defined = -0.5 * w @ (density * (np.log(density) - scores)) @ w
    assert sinkhorn_forms.coupling_energy(scores, w) == pytest.approx(defined, abs=1e-13)
    assert defined > 0.5 * w @ scores @ w  # the product coupling has no entropy


@pytest.mark.parametrize("bandwidth", [0.02, 0.3, 2.0])
def test_variances_under_both_flows_solve_their_equations(bandwidth):
    def sinkhorn(t, S):
        return -2 * (2 / bandwidth) * sinkhorn_forms.sinkhorn_shift(S, bandwidth) * S

    def softmax(t, S):
        return -2 * (1 / bandwidth) * sinkhorn_forms.softmax_shift(S, bandwidth) * S

    pairs = (
        (sinkhorn, sinkhorn_forms.sinkhorn_heat_variance),
        (softmax, sinkhorn_forms.softmax_heat_variance),
    )
    for rate, closed in pairs:
        path = integrate.solve_ivp(rate, (0, 1), [0.7], method="LSODA", rtol=1e-11, atol=1e-13)
        assert float(closed(1.0, 0.7, bandwidth)) == pytest.approx(path.y[0, -1], rel=1e-8)
    assert float(sinkhorn_forms.sinkhorn_heat_variance(0.0, 0.7, bandwidth)) == 0.7
    lacking = 0.7 + 2 - sinkhorn_forms.sinkhorn_heat_variance(1.0, 0.7, bandwidth)
    assert 0 < lacking <= sinkhorn_forms.heat_deficit_bound(1.0, 0.7, bandwidth)


@pytest.mark.parametrize("start", [1e-12, 1e-15, 1e-18, 1e-300])
def test_tiny_variances_keep_their_digits(start):
    """S' = 4 S/eps + O(S^2) for S << eps: the start times e^{4t/eps}, up to S/eps."""
    grown = float(sinkhorn_forms.sinkhorn_heat_variance(1.0, start, 1.0))
    assert grown == pytest.approx(start * np.exp(4.0), rel=1e-13 + 100 * start, abs=0.0)


def test_tiny_bandwidths_are_the_heat_equation():
    for bandwidth in (1e-20, 1e-300, 5e-324):
        assert sinkhorn_forms.sinkhorn_heat_variance(1.0, 0.5, bandwidth) == pytest.approx(
            2.5, rel=1e-15
        )


def test_sinkhorn_is_four_times_closer_to_heat_than_a_gaussian_kernel():
    """S' = 2 - eps/(2S) against 2 - 2 eps/S, to first order."""
    lacking = [
        0.7 + 2 - closed(1.0, 0.7, 1e-4)
        for closed in (sinkhorn_forms.sinkhorn_heat_variance, sinkhorn_forms.softmax_heat_variance)
    ]
    assert lacking[1] / lacking[0] == pytest.approx(4.0, rel=1e-3)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="symmetric scores"):
        sinkhorn_forms.coupling_potential([[0.0, 1.0], [2.0, 0.0]], [0.5, 0.5])
    with pytest.raises(ValueError, match="n, n"):
        sinkhorn_forms.alternating([1.0, 2.0], 3)
    with pytest.raises(ValueError, match="bandwidth"):
        sinkhorn_forms.sinkhorn_shift(1.0, 0.0)
    with pytest.raises(ValueError, match="smaller bandwidth"):
        sinkhorn_forms.heat_deficit_bound(1.0, 0.1, 0.5)
