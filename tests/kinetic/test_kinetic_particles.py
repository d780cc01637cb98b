"""The particle system of the kinetic theory: the paper's equation, causality, and linear time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special
from scipy.signal import lfilter

import tokenflock as flock
from tokenflock.reduce import Dense, Spectral

RNG = np.random.default_rng(5)
BETA, SLOPE = 1.4, 0.8


def angular_speed(model, angles, reduction=None):
    tokens = flock.from_angles(angles)
    force = model.terms.tangent_field(0.0, tokens.points, tokens, reduction or Dense())
    points = np.asarray(tokens.points)
    return points[:, 0] * np.asarray(force[:, 1]) - points[:, 1] * np.asarray(force[:, 0])


def by_the_paper(angles, beta, slope):
    """theta_j' = Z_j^{-1} sum_{k<j} e^{-slope (j-k)/N} w'(theta_j - theta_k), token by token."""
    n, speeds = len(angles), np.zeros(len(angles))
    for j in range(1, n):
        weights = np.exp(-slope * (j - np.arange(j)) / n)
        gaps = angles[j] - angles[:j]
        speeds[j] = weights @ (-beta * np.sin(gaps) * np.exp(beta * np.cos(gaps))) / weights.sum()
    return speeds


def by_prefix_moments(angles, beta, slope, modes):
    """The same in O(N): w' = -2 sum_n n I_n sin(n .), and exponential weights are a linear filter."""
    q = np.exp(-slope / len(angles))
    masses = lfilter([0, q], [1, -q], np.ones(len(angles)))
    total = np.zeros(len(angles))
    for n in range(1, modes + 1):
        before = lfilter([0, q], [1, -q], np.exp(-1j * n * angles))
        total += n * special.iv(n, beta) * np.imag(np.exp(1j * n * angles) * before)
    return -2 * total / np.where(masses > 0, masses, 1.0)


@pytest.mark.parametrize("slope", [0.0, 0.8, -1.5])
def test_the_field_is_the_papers(slope):
    angles = RNG.uniform(0, 2 * np.pi, 9)
    speeds = angular_speed(flock.KineticFlow(BETA, slope), angles)
    assert speeds[0] == 0.0
    np.testing.assert_allclose(speeds, by_the_paper(angles, BETA, slope), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("slope", [700.0, -700.0])
def test_the_steepest_bias_still_counts_every_token(slope):
    """Two tokens: the slope cancels. With e^{-slope/2} = 0 the second one would rest."""
    angles = np.array([0.0, 2.0])
    speeds = angular_speed(flock.KineticFlow(BETA, slope), angles)
    np.testing.assert_allclose(speeds, by_the_paper(angles, BETA, 0.0), rtol=1e-12)


@pytest.mark.parametrize("slope", [2000.0, -800.0, np.nan, np.inf])
def test_slopes_beyond_the_range_are_refused(slope):
    with pytest.raises(flock.errors.InputError, match="slope between -700 and 700"):
        flock.KineticFlow(1.0, slope)


@pytest.fixture(scope="module")
def two_runs():
    """Twelve tokens, and the same with the last five moved; equal fixed steps."""
    angles = RNG.uniform(0, 2 * np.pi, 12)
    angles[0], angles[1] = 0.3, 2.5
    moved = np.concatenate([angles[:7], angles[7:] + 1.0])
    model = flock.KineticFlow(BETA, SLOPE)
    save = flock.Save(every=0.5, states=True)
    return [
        np.asarray(flock.solve(model, flock.from_angles(start), 2.0, dt=0.02, save=save).states)
        for start in (angles, moved)
    ]


def test_p2_1_the_first_token_rests_and_the_second_sees_it_alone(two_runs):
    """P2-1: theta_1 is constant, and phi = theta_2 - theta_1 solves phi' = -beta sin phi e^{beta cos phi}."""
    states = two_runs[0]
    assert np.all(states[:, 0] == states[0, 0])
    expected = integrate.solve_ivp(
        lambda t, phi: -BETA * np.sin(phi) * np.exp(BETA * np.cos(phi)),
        (0, 2.0),
        [2.2],
        t_eval=np.arange(5) / 2,
        rtol=1e-12,
        atol=1e-13,
    ).y[0]
    first, second = states[:, 0], states[:, 1]
    cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    phi = np.arctan2(cross, np.sum(first * second, axis=-1))
    np.testing.assert_allclose(phi, expected, atol=1e-10)


def test_p2_2_earlier_tokens_do_not_know_the_later_ones(two_runs):
    """P2-2: the first seven tokens of two prompts that differ later; and a prompt cut after them."""
    np.testing.assert_allclose(two_runs[0][:, :7], two_runs[1][:, :7], atol=1e-12)
    assert np.max(np.abs(two_runs[0][:, 7:] - two_runs[1][:, 7:])) > 0.1
    angles = RNG.uniform(0, 2 * np.pi, 12)
    whole = angular_speed(flock.KineticFlow(BETA, SLOPE), angles)[:7]
    # A prompt of 7 tokens divides its slope by 7: the same weights need slope 7/12.
    cut = angular_speed(flock.KineticFlow(BETA, SLOPE * 7 / 12), angles[:7])
    np.testing.assert_allclose(whole, cut, atol=1e-12)


def test_linear_time_sums_agree_with_all_pairs():
    angles = RNG.uniform(0, 2 * np.pi, 400)
    direct = by_the_paper(angles, 2.0, 1.0)
    fast = angular_speed(flock.KineticFlow(2.0, 1.0), angles, Spectral(1e-12))
    # The tolerance is relative to beta e^beta, the largest force of a pair.
    np.testing.assert_allclose(fast, direct, atol=1e-12 * 2 * np.exp(2.0))
    np.testing.assert_allclose(by_prefix_moments(angles, 2.0, 1.0, 30), direct, atol=1e-12)


@pytest.mark.slow
def test_a_hundred_thousand_tokens_by_prefix_moments():
    """The field of 1e5 tokens against scipy's linear filter of their moments."""
    angles = RNG.uniform(0, 2 * np.pi, 100_000)
    fast = angular_speed(flock.KineticFlow(1.0, 1.0), angles, Spectral(1e-10))
    np.testing.assert_allclose(fast, by_prefix_moments(angles, 1.0, 1.0, 20), atol=1e-9)


@pytest.mark.slow
def test_a_run_of_a_hundred_thousand_tokens_costs_less_than_one_sum_over_pairs():
    """A run to t = 10 at rtol 1e-6 makes fewer operations than all pairs once.

    Operations are those XLA counts in the compiled field. A pair costs at least four multiplications, four
    additions and an exponential.
    """
    n = 100_000
    x0 = flock.uniform(flock.Sphere(2), n, seed=0)
    model, reduction = flock.KineticFlow(1.0, 1.0), Spectral(1e-8)
    run = flock.solve(model, x0, 10.0, rtol=1e-6, atol=1e-8, reduction=reduction, save=flock.Save())
    assert run.outcome == "finished"
    assert run.health["norm_drift"] < 1e-14
    assert bool(jnp.all(run.initial.points[0] == run.final.points[0]))

    def field(points):
        return model.terms.tangent_field(0.0, points, x0.at(points), reduction)

    compiled = jax.jit(field).lower(x0.points).compile()
    evaluations = 7 * run.health["steps"]  # six stages a step of Tsit5, and one for a rejected step
    assert 0 < evaluations * compiled.cost_analysis()["flops"] < 9 * n**2
