"""Tokens against the limit: distances of the start in closed form, rates, and a million tokens."""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.errors import InputError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.laws import cosine, uniform
from tokenflock.meanfield.limit import LimitError, limit_error, start_error

LAW = cosine(0.5, phase=0.7)


def quantile_distance(density, n):
    """(pi/sqrt 3) sqrt(mean of 1/rho)/n: every quantile in the middle of a cell of width 2 pi/(n rho)."""
    return np.pi / np.sqrt(3) * np.sqrt(np.mean(1 / np.asarray(density.values))) / n


def test_independent_tokens_of_the_uniform_law():
    """n E W2^2 = (2 pi)^2 (1/6 - 1/12) = pi^2/3: a Brownian bridge without its mean, within 4 errors."""
    draws = start_error(uniform(), (200,), range(60), modes=8).distances[0]
    squares = 200 * draws**2
    error = np.std(squares) / np.sqrt(60)
    assert np.mean(squares) == pytest.approx(np.pi**2 / 3, abs=4 * error)


@pytest.fixture(scope="module")
def many_draws():
    return start_error(uniform(), (16, 32), range(200), modes=8).distances


def test_draws_are_independent_between_sizes(many_draws):
    """Uncorrelated within 4/sqrt(200) = 0.28. Half of 32 tokens drawn as the 16 would correlate by 1/2.

    (The bridge of 32 is then (b + b')/sqrt 2, b that of the 16: its square has half of b's.)
    """
    assert abs(np.corrcoef(many_draws**2)[0, 1]) < 4 / np.sqrt(200)


def test_the_error_of_a_rate_is_its_spread(many_draws):
    """Rates of 50 groups of 4 draws spread as far as they say, in the mean over groups.

    50 slopes know their spread to 10 %, and 4 draws their own to some 40 %, over 50 groups to 6 %; what
    4 draws leave out of the logarithm at second order is another 10 %.
    """
    ns = np.array([16.0, 32.0])
    rates = [LimitError(ns, group).rate for group in np.split(many_draws, 50, axis=1)]
    slopes, errors = np.array(rates).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.std(slopes), rel=0.4)


def test_quantiles_of_a_law():
    """Correct to the next order, 1/n^2 relative to the closed form (a sum for an integral)."""
    found = start_error(LAW, (50, 200), (0,), start="quantiles", modes=8)
    density = Density.from_law(Fourier(64), LAW)
    for n, distance in zip((50, 200), found.sizes, strict=True):
        assert distance == pytest.approx(quantile_distance(density, n), rel=20 / n**2)
    assert found.rate[0] == pytest.approx(-1.0, abs=1e-2)


@pytest.mark.slow
def test_quantiles_follow_the_density():
    """Without noise quantiles stay quantiles: the distance at t is the closed form of the density at t."""
    model, t = flock.SA(2.0), 0.7
    found = limit_error(model, LAW, (32, 64, 128), t, (0,), start="quantiles", modes=48)
    run = flock.solve(
        model,
        Density.from_law(Fourier(48), LAW),
        t,
        rtol=1e-9,
        atol=1e-12,
        save=flock.Save(at=[t], states=True),
    )
    density = Density(Fourier(48), jnp.asarray(run.states)[-1])
    for n, distance in zip((32, 64, 128), found.sizes, strict=True):
        # Quantiles move with the field of n tokens, which errs by O(1/n^2).
        assert distance == pytest.approx(quantile_distance(density, n), rel=200 / n**2)
    assert found.rate[0] == pytest.approx(-1.0, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [flock.SA(2.0), flock.USA(1.0), flock.NoisyUSA(1.0, 0.2)], ids=["SA", "USA", "noisy"]
)
def test_independent_tokens_err_like_the_square_root(model):
    """Slope -1/2 over a factor 16 in n, 16 draws: each size is known to some 15 %, the slope to 0.07."""
    found = limit_error(model, LAW, (64, 256, 1024), 0.5, range(16), modes=48, dt=1 / 128)
    assert found.rate[0] == pytest.approx(-0.5, abs=0.2)


@pytest.mark.slow
def test_a_million_tokens():
    """The O(n) sums against the equation: quantiles of a million tokens are pi/sqrt3/n from it.

    The sums err by 1e-10 and the solver by 1e-7 times t; both below the 2e-6 that is measured.
    """
    model, t, n = flock.SA(2.0), 0.2, 1_000_000
    more = {"modes": 32, "rtol": 1e-8, "atol": 1e-10}
    found = limit_error(model, LAW, (n,), t, (0,), start="quantiles", **more)
    start = Density.from_law(Fourier(32), LAW)
    save = flock.Save(at=[t], states=True)
    run = flock.solve(model, start, t, rtol=1e-9, atol=1e-12, save=save)
    expected = quantile_distance(Density(Fourier(32), jnp.asarray(run.states)[-1]), n)
    assert found.sizes[0] == pytest.approx(expected, rel=0.1)


def test_refusals():
    with pytest.raises(InputError, match="whole and at least 2"):
        limit_error(flock.SA(1.0), LAW, (1, 10), 1.0, (0,))
    with pytest.raises(InputError, match="at least one seed"):
        limit_error(flock.SA(1.0), LAW, (10,), 1.0, ())
    with pytest.raises(InputError, match="'iid' or 'quantiles'"):
        limit_error(flock.SA(1.0), LAW, (10,), 1.0, (0,), start="grid")
    with pytest.raises(InputError, match="deterministic limit"):
        limit_error(flock.StochasticSA(1.0, 0.1), LAW, (10,), 1.0, (0,))
