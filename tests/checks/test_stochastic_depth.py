"""P6a-1 to P6a-4: two tokens, hybrid noise and many tokens under random value matrices (2601.21942).

Monte Carlo with fixed seeds: bounds are four standard errors plus a stated bias.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_banded

import tokenflock as flock
from tokenflock.dynamics import Particles
from tokenflock.papers.stochastic import closed_forms
from tokenflock.papers.stochastic.claims import chain, hybrid
from tokenflock.papers.stochastic.claims.formations import formations, group_pull, measured_bend
from tokenflock.papers.stochastic.claims.two_tokens import absorption_error, undecided
from tokenflock.random_depth.chains import overlaps, random_chains
from tokenflock.random_depth.laws import AmongTokens, FixedScores, HeadLaw, Signs, Values
from tokenflock.reduce import Dense


def absorbed_by_finite_differences(overlap, d, beta, far=9.0, cells=3600):
    """P(R -> -1) from the backward equation of R, from drift and variance alone.

    In z = artanh R: drift P' + variance P''/2 = 0 on [-far, far], second order, with the exponential
    ends P' = -(d-1) P and (1-P)' = L (1-P), L = -exponent/(variance/4) of 1 + R at -1.
    """
    z, h = np.linspace(-far, far, cells + 1, retstep=True)
    r = np.tanh(z)
    shrink = 1 - r**2
    spread = closed_forms.overlap_variance(r, d, beta) / shrink**2
    push = closed_forms.overlap_drift(r, d, beta) / shrink + r * spread
    bands = np.zeros((3, z.size))
    right = np.zeros(z.size)
    bands[1] = -spread / h**2
    bands[0, 1:] = (spread / (2 * h**2) + push / (2 * h))[:-1]
    bands[2, :-1] = (spread / (2 * h**2) - push / (2 * h))[1:]
    # Ghost points beyond both ends, eliminated by the exponential conditions.
    low, high = (
        (spread / (2 * h**2) - push / (2 * h))[0],
        (spread / (2 * h**2) + push / (2 * h))[-1],
    )
    rate = -2 * push[0] / spread[0]
    bands[0, 1] += low
    bands[1, 0] -= 2 * h * rate * low
    right[0] = -2 * h * rate * low
    bands[2, -2] += high
    bands[1, -1] -= 2 * h * (d - 1) * high
    return np.interp(np.arctanh(overlap), z, solve_banded((1, 1), bands, right))


@pytest.mark.parametrize(
    ("overlap", "d", "beta"),
    [(0.0, 3, 1.0), (-0.5, 3, 1.0), (0.0, 8, 2.0), (0.0, 8, 1.5), (0.6, 5, 1.2)],
)
def test_P6a_1_probability_by_finite_differences(overlap, d, beta):
    coarse, fine = (absorbed_by_finite_differences(overlap, d, beta, cells=n) for n in (1800, 3600))
    assert abs(fine - coarse) < 2e-4
    extrapolated = (4 * fine - coarse) / 3  # second order
    assert closed_forms.antipodal_probability(overlap, d, beta) == pytest.approx(
        extrapolated, abs=1e-6
    )


def test_probability_near_the_ends_and_far_away():
    """P ~ (1-R)^{(d-1)/2} at 1 and 1 - P ~ (1+R)^{(1-(d-2)/cosh(2 beta))/2} at -1."""
    gaps = np.array([1e-9, 1e-11])
    near, far = (closed_forms.antipodal_probability(s * (1 - gaps), 5, 1.5) for s in (1, -1))
    assert np.diff(np.log(near)) / np.diff(np.log(gaps)) == pytest.approx(2.0, abs=1e-5)
    power = (1 - 3 / np.cosh(3.0)) / 2
    assert np.diff(np.log(1 - far)) / np.diff(np.log(gaps)) == pytest.approx(power, abs=1e-5)
    assert closed_forms.antipodal_probability(0.0, 3000, 6.0) == pytest.approx(
        absorbed_by_finite_differences(0.0, 3000, 6.0, 3.0, 400_000), rel=1e-2
    )


def test_probability_at_d_3_and_small_beta():
    """cosh(2 beta) > 1 always: P = beta^2 int_0^inf e^{-z}/cosh z dz = beta^2 log 2 to leading order."""
    beta = np.array([1e-3, 1e-5])
    value = closed_forms.antipodal_probability(0.0, 3, beta)
    assert value / beta**2 == pytest.approx(np.log(2), rel=1e-5)


def test_the_layer_is_the_layer_of_the_engine():
    rng = np.random.default_rng(3)
    n, d, beta, eta = 5, 4, 1.7, 0.15
    x = chain.uniform(rng, n, d, 1)
    values = chain.random_values(rng, d, 1)
    assert set(np.abs(values).ravel()) == {0.5}
    model = flock.SA(beta, flock.Weights(V=values[0, ..., 0]))
    start = flock.from_array(flock.Sphere(d), x[..., 0])
    engine = model.layer(0.0, Particles(start.points), start, jnp.asarray(eta), Dense())
    np.testing.assert_allclose(
        chain.layer(x, beta, eta * values)[..., 0], engine.points, atol=1e-14
    )


def assert_absorbed_as_foretold(found, start, d, beta):
    expected = float(closed_forms.antipodal_probability(start, d, beta))
    doubt = undecided(found, d, beta)
    allowed = doubt + absorption_error(max(expected, 1 / found.size), found.size)
    assert np.mean(found < 0) == pytest.approx(expected, abs=allowed)
    assert doubt < 0.02


def test_P6a_1_absorption_of_a_short_chain():
    assert_absorbed_as_foretold(chain.final_overlaps(0.0, 3, 1.0, 3000, 1500, 9), 0.0, 3, 1.0)


@pytest.mark.parametrize(("start", "d", "beta"), [(0.0, 3, 1.0), (-0.5, 8, 2.0)])
def test_P6a_1_absorption_of_the_limit(start, d, beta):
    """The scalar Ito equation of R, its step a bias of 0.1 dt as that of the layers."""
    found = chain.limit_overlaps(np.full(4000, start), d, beta, t=60.0, dt=0.05, seed=6)
    assert_absorbed_as_foretold(found, start, d, beta)


CASES = [
    (0.0, 3, 1.0, "signs"),
    (0.0, 3, 1.0, "gaussian"),
    (-0.5, 3, 1.0, "signs"),
    (0.0, 8, 2.0, "signs"),
    (0.0, 8, 1.5, "signs"),
    (0.0, 8, 1.0, "signs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("start", "d", "beta", "entries"), CASES)
def test_P6a_1_absorption_of_the_chain(start, d, beta, entries):
    """2000 paths, 6000 layers, eta = .15, bounded entries, and Gaussian ones in one case."""
    found = chain.final_overlaps(start, d, beta, 2000, 6000, 17, entries)
    assert_absorbed_as_foretold(found, start, d, beta)


@pytest.mark.slow
def test_P6a_1_absorption_of_the_sde():
    """The limit itself, by the engine: Ito, common noise; its step is a bias of 0.1 dt as for layers."""
    start, d, beta, runs = 0.0, 3, 1.0, 800
    points = np.moveaxis(chain.pairs(np.full(runs, start), d), -1, 0)
    tokens = flock.from_array(flock.Sphere(d), points)
    end = flock.solve(flock.StochasticSA(beta, d**-0.5), tokens, t1=45.0, dt=0.05, seed=2).final
    found = np.sum(np.prod(np.asarray(end.points), axis=1), axis=-1)
    assert_absorbed_as_foretold(found, start, d, beta)


@pytest.mark.slow
def test_P6a_1_absorption_of_random_chains():
    """The same layers by the chains of 2604.01978: fixed scores A = I and random signs as V."""
    start, d, beta = 0.0, 3, 1.0
    law = HeadLaw(Values(d**-0.5, entries=Signs()), FixedScores(1.0), AmongTokens(beta))
    pair = flock.from_array(flock.Sphere(d), chain.pairs(np.array([start]), d)[..., 0])
    run = random_chains(law, pair, 2500, chain.ETA, chains=1500, seed=5, observe=[overlaps])
    assert_absorbed_as_foretold(run.array("overlaps")[:, -1, 0], start, d, beta)


def test_P6a_2_the_zero_level_of_the_exponent_is_the_curve():
    """On a grid of (beta, d): the sign of the measured exponent changes in the cell of the curve."""
    betas = np.linspace(0.2, 2.6, 13)
    for d in (3, 4, 6, 8, 12, 16):
        exponents = np.array([chain.measured_exponent(d, b, -1, 2000, d)[0] for b in betas])
        threshold = float(closed_forms.antipodal_threshold(d))
        signs = np.sign(exponents)
        assert np.sum(np.diff(signs) != 0) <= 1
        if d == 3:
            assert np.all(signs < 0)
            continue
        change = int(np.argmax(signs < 0))
        cell = betas[1] - betas[0]
        assert betas[change - 1] - cell <= threshold <= betas[change] + cell


def test_P6a_3_the_hybrid_switch_lies_at_two():
    """eps^2 e^beta = 2 within 5 % at both ends; read after Stratonovich there is none."""
    ratios = np.linspace(1.0, 3.0, 9)
    for beta in (0.5, 1.0, 2.0):
        found = hybrid.measured_exponents(ratios, beta, 20_000, 1e-4, 1)
        assert hybrid.crossings(ratios, found) == pytest.approx(2.0, rel=0.05)
        flat = hybrid.measured_exponents(ratios, beta, 20_000, 1e-4, 1, "stratonovich")
        assert np.all(np.isnan(hybrid.crossings(ratios, flat)))
        # dt + eps dB with the normal numbers and their opposites has mean dt.
        expected = np.broadcast_to([-np.exp(beta), np.exp(-beta)], flat.shape)
        np.testing.assert_allclose(flat, expected, rtol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "merged", "apart"), [(0.3, 1.0, 0.0), (1.4, 0.0, 1.0)])
def test_P6a_3_attractors_of_the_hybrid_model(noise, merged, apart):
    """beta = 1, threshold .7358, dt = .002, T = 60: all at R = 1 below, all at -1 above."""
    found = hybrid.final_overlaps(noise * np.e, 1.0, 300, 60.0, 0.002, 4)
    assert np.mean(found > 0.99) == pytest.approx(merged, abs=0.01)
    assert np.mean(found < -0.99) == pytest.approx(apart, abs=0.01)


@pytest.mark.slow
def test_P6a_3_close_to_the_threshold():
    """The numbers of the derivation: 90 % merged at eps^2 = .55, 97 % at antipodes at .95 (four SE)."""
    low, high = (hybrid.final_overlaps(s * np.e, 1.0, 300, 60.0, 0.002, 5) for s in (0.55, 0.95))
    assert np.mean(low > 0.99) == pytest.approx(0.90, abs=4 * np.sqrt(0.9 * 0.1 / 300))
    assert np.mean(high < -0.99) == pytest.approx(0.97, abs=4 * np.sqrt(0.97 * 0.03 / 300))
    assert not np.any(low < -0.99)
    assert not np.any(high > 0.99)


@pytest.mark.slow
def test_P6a_4_eight_tokens_gather_at_two_points():
    """n=8, d=3, beta=2, eta=.15, 6000 layers: 85 % gathered; two-sided runs are there, and fewer later."""
    found = formations(8, 3, 2.0, 200, (2000, 4000, 6000), 3)
    assert found.gathered[-1].mean() > 0.85
    assert np.all(np.diff(found.two_sided) <= 0)
    assert found.two_sided[-1] > 0.1
    halves = found.gathered & (found.smaller == 4)
    assert np.all(np.sum(halves, axis=1) == np.sum(halves[0])), "equal halves stay for ever"


@pytest.mark.parametrize("side", [1, 3, 4, 5])
def test_P6a_4_only_equal_halves_are_invariant(side):
    """One layer bends opposite groups by eta^2 (c_+ + c_-)^2 (d-1)/d in the mean; bias of order eta^2."""
    n, d, beta, eta = 8, 3, 0.8, 0.05
    measured, error = measured_bend(n, side, d, beta, 20_000, side, eta)
    expected = sum(group_pull(n, side, beta)) ** 2 * (d - 1) / d
    assert measured == pytest.approx(expected, abs=4 * error + eta**2 * expected + 1e-25)
    assert (expected < 1e-25) == (side == 4)
