"""Noisy attention in time: growth, free energy, hysteresis and tokens (the checks of the theory file).

All slow: every one compiles a solver. The seed of a sweep is 1e-3 on the first harmonic, as small
against 1 as it is large against the solver's error.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import theory
from tokenflock.density import Density
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.laws import cosine, uniform
from tokenflock.meanfield.stationary import branch, stationary_state, sweep_temperature
from tokenflock.meanfield.zonal import Zonal

pytestmark = pytest.mark.slow


def test_a_small_harmonic_grows_at_the_linear_rate():
    """lambda_1 - T on the circle, within 1e-4: the perturbation 1e-6 squared is far below."""
    model, start = flock.NoisyUSA(4.0, 2.0), Density.from_law(Fourier(24), cosine(1e-6))
    run = flock.solve(
        model, start, 4.0, rtol=1e-9, atol=1e-14,
        save=flock.Save(at=[0.0, 2.0, 4.0], observe=[flock.order_parameter]),
    )  # fmt: skip
    order = run.array("order_parameter")
    rate = np.log(order[2] / order[1]) / 2
    assert rate == pytest.approx(theory.noisy_growth_rate(1, 2, 4.0, 2.0), abs=1e-4)


def sharp(x):
    """A law without symmetry, sharper than the stationary states below."""
    return jnp.exp(3 * x[:, 0] + 0.4 * x[:, 0] * x[:, 1])


@pytest.mark.parametrize(
    ("make", "temperature", "sign"), [(flock.USA, 0.8, 1), (flock.SA, 0.3, -1)]
)
def test_free_energy_rises_for_usa_and_falls_for_sa(make, temperature, sign):
    model = make(2.0, noise=flock.Brownian(temperature))
    start = Density.from_law(Fourier(32), sharp)
    run = flock.solve(model, start, 2.0, rtol=1e-7, atol=1e-10, save=flock.Save(every=0.1))
    change = np.diff(run.array("free_energy"))
    assert np.all(sign * change > 0)
    # A itself moves as the dissipation identity says, for both
    assert run.health["dissipation_defect"] < 1e-6


@pytest.mark.parametrize(("beta", "loop"), [(2.0, False), (4.0, True)])
def test_hysteresis_on_the_circle_above_beta_star_only(beta, loop):
    """Down and up between 1.1 and 0.9 T_1: beta = 2 < 2.447 retraces its path, beta = 4 does not."""
    on, threshold = Zonal(2, 48), float(theory.critical_temperature(1, 2, beta))
    warmth = np.array([1.1, 1.04, 1.02, 0.97, 0.9])
    rest = 1000 / threshold
    still = Density.from_law(on, uniform())
    down, states = sweep_temperature(
        flock.USA(beta), still, list(threshold * warmth), rest, seed=1e-3
    )
    up, _ = sweep_temperature(
        flock.USA(beta), states[-1], list(threshold * warmth[::-1]), rest, seed=1e-3
    )
    up = up[::-1]
    found = branch(flock.USA(beta), on, (0.85 * threshold, 2 * threshold))
    scheme = on.scheme()

    def stable(temperature):
        states = found.at(float(temperature))
        return float(scheme.order_parameter(states[-1].state)) if states else 0.0

    ordered = np.array([stable(t) for t in threshold * warmth])
    # 1000/T_1 leaves e^{-1000 (0.02)} of what decays; the solver's atol is 1e-9
    np.testing.assert_allclose(up, ordered, atol=1e-4)
    np.testing.assert_allclose(down[3:], ordered[3:], atol=1e-4)
    np.testing.assert_allclose(down[:3], 0.0, atol=1e-4)
    assert (np.max(up - down) > 0.6) == loop
    if loop:
        assert found.folds()[0] / threshold == pytest.approx(1.05888, abs=1e-5)
        assert ordered[1] > 0.69


def test_tokens_keep_the_order_of_the_branch():
    """|mean X| of n tokens within 3/sqrt(n) of the stationary state, away from the threshold."""
    n, beta = 2000, 2.0
    temperature = 0.85 * float(theory.critical_temperature(1, 2, beta))
    model = flock.NoisyUSA(beta, temperature)
    state = stationary_state(model, Density.from_law(Fourier(40), cosine(0.9)))
    order = float(jnp.hypot(state.state[1], state.state[41])) / np.sqrt(2)
    run = flock.solve(
        model, flock.starts.cap(flock.Sphere(2), n, 0, 1.2), 24.0, dt=0.02, seed=1,
        save=flock.Save(at=np.linspace(12.0, 24.0, 25), observe=[flock.order_parameter]),
    )  # fmt: skip
    measured = float(np.mean(run.array("order_parameter")[1:]))
    assert measured == pytest.approx(order, abs=3 / np.sqrt(n))
