"""Quantiles on the circle: inverted laws, second order, atoms, noise, order, observables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError, SolveError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.laws import cosine, uniform
from tokenflock.meanfield.quantiles import Quantiles, gaps
from tokenflock.terms import Drift

HALF = cosine(0.5, 1)


def test_quantiles_invert_the_distribution_function():
    """F(theta) = (theta + pi + 0.5 sin theta)/(2 pi) for 1 + 0.5 cos: scipy's roots."""
    found = np.asarray(Quantiles(101).project(HALF))
    for m in (0, 17, 50, 83, 100):
        mass = (m + 0.5) / 101
        exact = brentq(
            lambda x, mass=mass: (x + np.pi + 0.5 * np.sin(x)) / (2 * np.pi) - mass,
            -4,
            4,
            xtol=1e-15,
        )
        assert found[m] == pytest.approx(exact, abs=1e-12)
    # Symmetric about 0, since the cut is at pi.
    np.testing.assert_allclose(found, -found[::-1], atol=1e-12)
    np.testing.assert_allclose(gaps(Quantiles(7).project(uniform())), 2 * np.pi / 7, atol=1e-12)


def test_a_law_that_vanishes_on_arcs_is_inverted_too():
    def spikes(x):
        theta = jnp.arctan2(x[:, 1], x[:, 0])
        return jnp.exp(400 * (jnp.cos(theta - 1.0) - 1)) + jnp.exp(400 * (jnp.cos(theta + 2.0) - 1))

    theta = np.asarray(Quantiles(200).project(spikes))
    assert np.all(np.diff(theta) > 0)
    # Half the mass in each, which has a width of 1/sqrt(400).
    assert np.mean(np.abs(theta - 1.0) < 0.3) == 0.5
    assert np.std(theta[theta > 0]) == pytest.approx(400**-0.5, rel=0.02)


@pytest.mark.parametrize("model", [flock.SA(4.0), flock.USA(4.0)], ids=["SA", "USA"])
def test_second_order_in_the_number_of_quantiles(model):
    """K1.20: |a_m - (b_2m + b_2m+1)/2| falls by 4 per doubling (a: N quantiles, b: 2N), at t = 0.2."""

    def moved(n):
        scheme = Quantiles(n).scheme()
        step = 0.2 / 100

        @jax.jit
        def integrate(theta):
            def advance(y, _):
                middle = y + step / 2 * scheme.transport(model, 0.0, y)
                return y + step * scheme.transport(model, 0.0, middle), None

            return jax.lax.scan(advance, theta, None, length=100)[0]

        return np.asarray(integrate(Quantiles(n).project(HALF)))

    paths = {n: moved(n) for n in (50, 100, 200)}
    away = [np.abs(paths[n] - paths[2 * n].reshape(-1, 2).mean(1)).max() for n in (50, 100)]
    assert 3.8 <= away[0] / away[1] <= 4.1


@pytest.mark.slow
def test_a_spread_measure_collapses_at_the_rate_of_its_antipode():
    """K6.1: W2 to one point falls like e^{-e^{-beta} t/2} at beta = 0.1, from 1 + 0.5 cos, at t = 6."""
    t1, every = 7.0, 0.5
    start = Density.from_law(Quantiles(2000), HALF)
    run = flock.solve(
        flock.USA(0.1), start, t1, rtol=1e-8, atol=1e-10, save=flock.Save(every=every, states=True)
    )
    theta = np.asarray(run.array("states"))
    # The limit is the mean direction, 0 by symmetry; W2 to a point is the root mean square.
    distance = np.sqrt(np.mean(theta**2, axis=1))
    slope = np.gradient(np.log(distance), every)
    assert slope[12] == pytest.approx(-np.exp(-0.1) / 2, abs=0.02)
    assert np.all(slope[4:] <= -0.01)
    assert run.health["dissipation_defect"] < 1e-6
    assert run.health["largest_tail"] == 0


@pytest.mark.slow
def test_quantiles_follow_a_density_until_it_is_atoms():
    """USA at beta = 5 from 1 + 0.01 cos 3 theta: three atoms of mass 1/3, long after modes give up."""
    start = Density.from_law(Quantiles(300), cosine(0.01, 3))
    watch = flock.Save(
        every=0.5, observe=[flock.clusters(angle=0.1), flock.observables.fourier_moments(3)]
    )
    run = flock.solve(flock.USA(5.0), start, 0.5, rtol=1e-9, atol=1e-11, save=watch)
    assert run.outcome == "finished"
    # Three quantiles start on the points half-way between atoms and leave them late.
    assert run.array("fourier_moments")[-1, 2] > 0.97
    assert run.array("clusters")[-1] <= 6
    assert run.health["largest_tail"] <= 1e-12
    assert run.health["mass_drift"] == 0
    assert run.health["lowest_density"] >= 0


@pytest.mark.slow
def test_noise_is_the_heat_equation_to_second_order():
    """d/dt of mode k of the quantiles is -T k^2 muhat_k + O(n^{-2}), and the entropy is that of rho."""
    model = Dynamics(None, Drift(0.0), noise=flock.Brownian(0.3))
    errors = []
    for n in (100, 200, 400):
        scheme, theta = Quantiles(n).scheme(), Quantiles(n).project(cosine(0.5, 1, 0.4))
        velocity = np.asarray(scheme.transport(model, 0.0, theta))
        wave = np.exp(-1j * np.outer(np.arange(1, 4), theta))
        change = np.mean(-1j * np.arange(1, 4)[:, None] * wave * velocity, axis=1)
        known = -0.3 * np.arange(1, 4) ** 2 * np.mean(wave, axis=1)
        errors.append(np.abs(change - known).max())
    ratios = np.array(errors)[:-1] / np.array(errors)[1:]
    np.testing.assert_allclose(ratios, 4, atol=0.2)
    series = Fourier(64).scheme()
    entropy = float(series.entropy(Fourier(64).project(cosine(0.5, 1, 0.4))))
    assert float(scheme.entropy(theta)) == pytest.approx(entropy, abs=1e-4)


@pytest.mark.slow
def test_stiff_noise_follows_the_series():
    """Noisy USA by an implicit solver on quantiles against the Fourier series."""
    model, t1 = flock.NoisyUSA(1.0, 0.4), 1.0
    tolerances = {
        "rtol": 1e-8,
        "atol": 1e-10,
        "save": flock.Save(every=t1, observe=[flock.observables.fourier_moments(2)]),
    }
    found = flock.solve(
        model, Density.from_law(Quantiles(60), HALF), t1, method=flock.Stiff(), **tolerances
    )
    exact = flock.solve(model, Density.from_law(Fourier(16), HALF), t1, **tolerances)
    # Second order in the gap: (2 pi/60)^2 = 0.011, times the moments' own size of 0.1.
    np.testing.assert_allclose(
        found.array("fourier_moments"), exact.array("fourier_moments"), atol=1.5e-3
    )
    assert found.health["dissipation_defect"] < 1e-5
    assert found.health["steps"] < 100


def test_a_run_that_loses_the_order_of_its_quantiles_stops():
    """A far too large fixed step throws quantiles past one another."""
    start = Density.from_law(Quantiles(50), HALF)
    with pytest.raises(
        SolveError, match=r"quantiles have passed one another by 1e-06.*lower rtol and atol"
    ):
        flock.solve(flock.USA(6.0), start, 1.0, dt=0.25)


def test_many_quantiles_take_the_fast_sums():
    """The field of 20 000 quantiles in O(n) is that of all pairs."""
    on = Quantiles(20_000)
    model, theta = flock.SA(3.0), on.project(HALF)
    fast = on.scheme().settled(model, theta, implicit=False)
    found = np.asarray(fast.transport(model, 0.0, theta))
    some = np.arange(0, 20_000, 1999)
    apart = np.asarray(theta)[some, None] - np.asarray(theta)
    weight = np.exp(3.0 * (np.cos(apart) - 1))
    exact = -np.sum(weight * np.sin(apart), 1) / np.sum(weight, 1)
    np.testing.assert_allclose(found[some], exact, atol=1e-11)


def test_sentences():
    with pytest.raises(InputError, match="whole number n >= 2 of quantiles, got 1"):
        Quantiles(1)
    with pytest.raises(InputError, match="overlap at which to stop must be positive"):
        Quantiles(5, overlap=0.0)
    with pytest.raises(InputError, match="finite and non-negative"):
        Quantiles(5).project(lambda x: x[:, 0])
    with pytest.raises(InputError, match="need an order of the tokens"):
        Quantiles(5).check(flock.CausalSA(1.0))
    values = Density.from_law(Quantiles(400), HALF).values
    assert values.max() == pytest.approx(1.5, rel=1e-4)
    assert values.min() == pytest.approx(0.5, rel=1e-4)
