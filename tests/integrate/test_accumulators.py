"""Integrals carried beside the state: against closed forms, quadrature and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson

import tokenflock as flock

START = flock.uniform(flock.Sphere(3), n=5, seed=1)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
FINE = flock.Save(every=0.005, observe=[flock.order_parameter])


def cost(snapshot):
    """A running cost that depends on time and on the tokens, with no symmetry."""
    return (1 + snapshot.t) * snapshot.measure.points[0, 0] ** 2


def order(snapshot):
    return flock.order_parameter(snapshot)


def by_quadrature(run, name="order_parameter"):
    return simpson(run.array(name), x=run.time)


def test_functions_of_time_have_their_integrals():
    given = {"one": lambda s: 1.0, "ramp": lambda s: s.t, "two": lambda s: jnp.array([1.0, s.t])}
    save = flock.Save(at=[0.3, 1.1])
    run = flock.solve(flock.SA(2.0), START, 2.0, **TIGHT, save=save, integrate=given)
    t = np.asarray(run.time)
    np.testing.assert_allclose(run.array("one"), t, rtol=1e-13)
    np.testing.assert_allclose(run.array("ramp"), t**2 / 2, rtol=1e-12)
    np.testing.assert_allclose(run.array("two"), np.stack([t, t**2 / 2], axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(TIGHT, id="adaptive"),
        pytest.param({**TIGHT, "method": flock.Stiff()}, id="stiff", marks=pytest.mark.slow),
        pytest.param({**TIGHT, "clock": flock.LogTime()}, id="log clock", marks=pytest.mark.slow),
        pytest.param({**TIGHT, "merge": flock.Merge(1e-6)}, id="merge", marks=pytest.mark.slow),
    ],
)
def test_tokens_against_quadrature(how):
    run = flock.solve(flock.SA(2.0), START, 2.0, **how, save=FINE, integrate={"order": order})
    assert run.array("order", time=-1) == pytest.approx(by_quadrature(run), rel=1e-8)


def test_a_density_against_quadrature_and_its_own_work():
    start = flock.Density.from_law(flock.meanfield.Fourier(24), flock.laws.cosine(0.4))
    model = flock.NoisyUSA(1.0, temperature=0.3)
    save = flock.Save(
        every=0.005, observe=[flock.order_parameter, flock.observables.free_energy_rate]
    )
    run = flock.solve(model, start, 1.0, **TIGHT, save=save, integrate={"order": order})
    assert run.array("order", time=-1) == pytest.approx(by_quadrature(run), rel=1e-8)
    assert run.array("work", time=-1) == pytest.approx(
        by_quadrature(run, "free_energy_rate"), rel=1e-7
    )


def test_every_member_of_a_batch_has_its_own():
    tokens = flock.uniform(flock.Sphere(3), n=5, seed=1, samples=2)
    run = flock.solve(
        flock.SA([1.0, 4.0]), tokens, 1.0, **TIGHT, save=FINE, integrate={"order": order}
    )
    assert run["order"].dims == ("beta", "sample", "time")
    exact = simpson(run.array("order_parameter"), x=run.time, axis=-1)
    np.testing.assert_allclose(run.array("order", time=-1), exact, rtol=1e-8)
    assert np.ptp(exact) > 0.01


def test_layers_sum_what_stands_at_their_start():
    run = flock.solve(
        flock.SA(2.0),
        START,
        1.0,
        method=flock.Layers(0.25),
        save=flock.Save(every=0.25, observe=[flock.order_parameter]),
        integrate={"order": order},
    )
    expected = 0.25 * np.cumsum([0.0, *run.array("order_parameter")[:-1]])
    np.testing.assert_allclose(run.array("order"), expected, rtol=1e-14)


def test_noise_moves_the_tokens_and_not_the_integral():
    model = flock.NoisyUSA(1.0, temperature=0.2)
    run = flock.solve(model, START, 1.0, dt=0.05, integrate={"one": lambda s: 1.0})
    assert run.array("one", time=-1) == pytest.approx(1.0, rel=1e-12)


def total(beta):
    run = flock.solve(flock.SA(beta), START, 1.0, **TIGHT, integrate={"cost": cost})
    return run.array("cost", time=-1)


@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd])
def test_derivatives_against_differences(derivative):
    step = 1e-4
    slope = (total(1.5 + step) - total(1.5 - step)) / (2 * step)
    assert derivative(total)(1.5) == pytest.approx(slope, rel=1e-6)


def test_a_run_that_stops_keeps_its_integral():
    stop = flock.when(lambda s: s.t > 0.7)
    run = flock.solve(
        flock.SA(2.0), START, 2.0, **TIGHT, stop=stop, integrate={"one": lambda s: 1.0}
    )
    assert run.outcome == "stopped"
    assert run.array("one", time=-1) == pytest.approx(float(run.reached), rel=1e-9)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"steps": cost}, "'steps' cannot name an observable"),
        ({"energy": cost}, "'energy' cannot name this observable"),
        ([cost], "integrate takes functions of a snapshot by name"),
        ({"cost": 3.0}, "got 3.0"),
        ({"cost": lambda s: 1j * s.t}, "complex values"),
    ],
)
def test_what_cannot_be_integrated_is_refused(asked, words):
    with pytest.raises(flock.errors.InputError, match=words):
        flock.solve(flock.SA(1.0), START, 1.0, **TIGHT, integrate=asked)


def test_a_density_keeps_its_own_integral():
    start = flock.Density.from_law(flock.meanfield.Fourier(8), flock.laws.cosine(0.1))
    with pytest.raises(flock.errors.InputError, match="'work' cannot name an observable"):
        flock.solve(flock.SA(1.0), start, 1.0, **TIGHT, integrate={"work": order})
