"""Stationary states of noisy attention and their spectra, against closed forms and direct sums."""

import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind
from scipy import special

import tokenflock as flock
from tokenflock import theory
from tokenflock.density import Density
from tokenflock.errors import InputError, SolveError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.laws import cosine, uniform
from tokenflock.meanfield.sphere import Harmonics
from tokenflock.meanfield.stationary import stability, stationary_state
from tokenflock.meanfield.stationary.equation import stationary_equation
from tokenflock.meanfield.stationary.states import _iterated
from tokenflock.meanfield.zonal import Zonal

ON = Fourier(24)
TILTED = Density.from_law(ON, cosine(0.9, 1, 0.7))


def noisy_sa(beta, temperature):
    return flock.SA(beta, noise=flock.Brownian(temperature))


@pytest.mark.parametrize(("kappa", "printed"), [(3.0, 0.7242), (4.0, 0.8315), (2.5, 0.5897)])
def test_noisy_kuramoto_is_von_mises(kappa, printed):
    """beta = 0: rho = e^{kappa r cos(theta - phase)}/I_0(kappa r), r = I_1/I_0 of kappa r (K6.11)."""
    found = stationary_state(flock.NoisyUSA(0.0, 1 / kappa), TILTED)
    mean = np.array([found.state[1], found.state[ON.modes + 1]]) / np.sqrt(2)
    r = np.linalg.norm(mean)
    assert r == pytest.approx(theory.order_parameter(kappa), abs=1e-12)
    assert r == pytest.approx(printed, abs=5e-5)
    angles = 2 * np.pi * np.arange(found.values.size) / found.values.size
    phase = np.arctan2(mean[1], mean[0])
    assert phase == pytest.approx(0.7, abs=1e-9)  # Newton takes the shortest step: nothing turns
    exact = np.exp(kappa * r * np.cos(angles - phase)) / special.i0(kappa * r)
    np.testing.assert_allclose(found.values, exact, atol=1e-10)


@pytest.mark.parametrize("model", [flock.NoisyUSA(2.0, 0.7), noisy_sa(2.0, 0.2)], ids=["USA", "SA"])
def test_nothing_moves_and_the_law_is_gibbs(model):
    """The weak form, which knows nothing of Gibbs laws, is at rest; a direct sum gives the same law."""
    found = stationary_state(model, TILTED)
    scheme = ON.scheme().prepared(model)
    rate = scheme.transport(model, 0.0, found.state) - scheme.damping(model) * found.state
    # 24^2 T times the residual 1e-12
    assert float(jnp.max(jnp.abs(rate))) < 1e-9
    nodes, masses = np.asarray(scheme.basis.nodes), np.asarray(found.values)
    partition = np.exp(2.0 * nodes @ nodes.T) @ masses / masses.size
    temperature = float(model.noise.temperature)
    power = partition ** (1 / (2.0 * temperature)) if model.label == "SA" else (
        np.exp((partition - partition.max()) / 2.0 / temperature)
    )  # fmt: skip
    np.testing.assert_allclose(masses, power / power.mean(), atol=1e-9)


@pytest.mark.slow
def test_conventions_differ_by_a_time_scale():
    reference = stationary_state(flock.NoisyUSA(2.0, 0.7), TILTED).state
    for convention, speed in (("metastability", np.exp(-2.0)), ("kinetic", 2.0)):
        other = stationary_state(flock.NoisyUSA(2.0, 0.7 * speed, convention), TILTED).state
        np.testing.assert_allclose(other, reference, atol=1e-11)


def test_zonal_state_in_three_dimensions_by_a_direct_sum():
    """On S^2 the kernel averaged about the axis is e^{beta u v} I_0(beta sqrt(1-u^2) sqrt(1-v^2))."""
    beta, temperature = 2.0, 0.45
    on = Zonal(3, 24)
    start = Density.from_law(on, lambda x: jnp.exp(2 * x[:, 0]))
    found = stationary_state(flock.NoisyUSA(beta, temperature), start)
    u, weights = np.polynomial.legendre.leggauss(60)
    s = np.sqrt(1 - u**2)
    kernel = np.exp(beta * np.outer(u, u)) * special.i0(beta * np.outer(s, s)) * weights / 2
    law = np.exp(2 * u)
    for _ in range(3000):
        law = np.exp(kernel @ (law / (law @ weights / 2)) / beta / temperature)
    law /= law @ weights / 2
    order = float(on.scheme().order_parameter(found.state))
    assert order == pytest.approx((law * u) @ weights / 2, abs=1e-10)
    assert order > 0.5


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("USA", flock.NoisyUSA(3.0, 0.7)),
        pytest.param("SA", noisy_sa(3.0, 0.7), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_spectrum_at_uniform_is_the_linear_theory(name, model):
    grid = np.arange(1, 25)
    for on, degrees in (
        (ON, np.repeat(grid, 2)),
        (Zonal(5, 24), grid),
        (Harmonics(6), np.repeat(grid[:6], 2 * grid[:6] + 1)),
    ):
        rates = stability(model, Density.from_law(on, uniform())).rates
        exact = np.sort(theory.noisy_growth_rate(degrees, on.space.d, 3.0, 0.7, named_kind(name)))[
            ::-1
        ]
        np.testing.assert_allclose(rates, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_perturbations_decay_at_the_slowest_rate_of_the_spectrum():
    model = flock.NoisyUSA(2.0, 0.7)
    still = stationary_state(model, Density.from_law(ON, cosine(0.9)))
    found = stability(model, still)
    assert found.stable
    assert found.unstable == 0
    kicked = still.at(still.state.at[1].add(1e-4))
    times = np.array([0.0, 3.0, 4.0])
    run = flock.solve(
        model, kicked, 4.0, rtol=1e-10, atol=1e-13, save=flock.Save(at=times, states=True)
    )
    away = np.linalg.norm(np.asarray(run.states) - np.asarray(still.state), axis=-1)
    # the next rate is far below: after t = 3 its share is e^{-3 gap}
    gap = found.growth - float(np.real(found.rates[1]))
    assert np.log(away[2] / away[1]) == pytest.approx(found.growth, abs=np.exp(-3 * gap) + 1e-4)


def test_saddles_are_found_and_counted():
    """Two opposite bumps: Newton stays on the symmetric state, which merging destabilises."""
    model = flock.NoisyUSA(2.0, 0.3)
    two = stationary_state(model, Density.from_law(ON, cosine(0.9, 2)))
    assert float(jnp.max(jnp.abs(two.state[1 : ON.modes + 1 : 2]))) < 1e-12
    assert abs(float(two.state[2])) > 0.1
    assert stability(model, two).unstable == 2
    assert not stability(model, two).stable


AXIS = np.array([0.36, 0.48, 0.8])


@pytest.mark.parametrize("aside", [0.0, 0.3], ids=["about an axis", "without one"])
@pytest.mark.slow
def test_on_the_whole_sphere_states_and_spectra_are_those_about_an_axis(aside):
    """Any start on S^2 leads to a turned zonal state; of three turns two move it, and are left out."""
    model = flock.NoisyUSA(1.0, 0.348)
    zonal = stationary_state(model, Density.from_law(Zonal(3, 14), lambda x: jnp.exp(2 * x[:, 0])))
    start = Density.from_law(
        Harmonics(14), lambda x: jnp.exp(2 * x @ AXIS + aside * (x[:, 1] ** 2 - x[:, 0] * x[:, 2]))
    )
    found = stationary_state(model, start)
    order = [float(state.on.scheme().order_parameter(state.state)) for state in (found, zonal)]
    # the residual 1e-12 over the slowest rate of the equation, about 0.1
    assert order[0] == pytest.approx(order[1], abs=1e-10)
    rates, axial = stability(model, found).rates, stability(model, zonal).rates
    assert rates.size == 15**2 - 1 - 2
    # nothing rests but the turns: the slowest rate is the zonal one, and every zonal rate is there
    assert np.max(rates.real) == pytest.approx(axial[0].real, rel=1e-8)
    apart = np.min(np.abs(rates[:, None] - axial[:8]), axis=0)
    np.testing.assert_allclose(apart / np.abs(axial[:8]), 0.0, atol=1e-6)
    if aside == 0:
        mean = np.asarray(
            found.on.scheme().basis.mean(found.values * found.on.scheme().basis.weights)
        )
        np.testing.assert_allclose(mean / order[0], AXIS, atol=1e-9)  # nothing turns


def test_stability_is_that_of_stationary_states():
    with pytest.raises(InputError, match=r"stationary_state\(model, density\)"):
        stability(flock.NoisyUSA(2.0, 0.7), TILTED)


def test_damped_iteration_reaches_the_state_of_newton():
    """Seed 1e-2 cos theta and iterate to 1e-13: the fall-back where Newton fails."""
    model = flock.NoisyUSA(2.0, 0.7)
    equation = stationary_equation(model, ON)
    seed = Density.from_law(ON, cosine(1e-2)).state
    slow = _iterated(equation, seed, jnp.asarray(0.7), 1e-13)
    fast = stationary_state(model, Density.from_law(ON, cosine(0.9))).state
    np.testing.assert_allclose(slow, fast, atol=1e-11)


def test_refusals_say_what_to_do():
    with pytest.raises(InputError, match="give noise=Brownian"):
        stationary_state(flock.USA(2.0), TILTED)
    with pytest.raises(InputError, match="solve the equation in time"):
        stationary_state(flock.SA(2.0, plus=flock.Drift(0.1), noise=flock.Brownian(0.1)), TILTED)
    with pytest.raises(SolveError, match="more than"):
        stationary_state(flock.NoisyUSA(3.0, 0.05), TILTED)
