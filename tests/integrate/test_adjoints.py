"""The adjoint as a stated choice: equal derivatives against differences, memory against compiled programs."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock

START = flock.uniform(flock.Sphere(3), n=5, seed=1)
TIGHT = {"rtol": 1e-9, "atol": 1e-11, "max_steps": 64}
MIXER = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))


def slope(function, at, step=1e-4):
    return (function(at + step) - function(at - step)) / (2 * step)


def cost(snapshot):
    return (1 + snapshot.t) * snapshot.measure.points[0, 0] ** 2


def tokens_and_cost(beta, adjoint=None):
    """Adaptive steps, a switch, a saved row in between, and an integral."""
    model = flock.SA(flock.Piecewise([0.3], [beta, 2.0 * beta]))
    save = flock.Save(at=[0.5], states=True)
    run = flock.solve(
        model, START, 1.0, **TIGHT, save=save, integrate={"cost": cost}, adjoint=adjoint
    )
    moved = jnp.sum(jnp.sin(MIXER * run.states[1]) + jnp.cos(MIXER * run.states[2]))
    return moved + run.array("cost", time=-1)


def stopped(beta, adjoint=None):
    """The time of a stop, and where the tokens are then."""
    stop = flock.at_diameter(1.5)
    run = flock.solve(flock.SA(beta), START, 9.0, **TIGHT, stop=stop, adjoint=adjoint)
    return run.array("final_time") + jnp.sum(MIXER * run.array("final_points"))


def density_and_work(beta, adjoint=None):
    """A density with diffusion: an implicit solver, an integral of its own, a watch that may end it."""
    start = flock.Density.from_law(flock.meanfield.Fourier(8), flock.laws.cosine(0.3))
    model = flock.NoisyUSA(beta, temperature=0.3)
    run = flock.solve(model, start, 0.5, **TIGHT, adjoint=adjoint)
    return jnp.sum(jnp.sin(run.array("final_state"))) + run.array("work", time=-1)


def noisy_layers(beta, adjoint=None):
    """A discrete network with noise, of a batch of samples."""
    starts = flock.uniform(flock.Sphere(3), n=5, seed=1, samples=2)
    model = flock.SA(beta, noise=flock.Brownian(0.05))
    run = flock.solve(
        model, starts, 1.0, method=flock.Layers(0.1), max_steps=16, seed=3, adjoint=adjoint
    )
    return jnp.sum(jnp.sin(MIXER * run.array("states", time=-1)))


CASES = [tokens_and_cost, stopped, density_and_work, noisy_layers]


@pytest.mark.parametrize(
    "case", [tokens_and_cost, *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])]
)
def test_every_choice_has_the_derivative_of_differences(case):
    choices = (flock.integrate.Checkpointed(3), flock.integrate.Direct())
    found = [float(jax.grad(case)(1.3, adjoint)) for adjoint in choices]
    expected = slope(case, 1.3)
    assert abs(expected) > 1e-3
    assert found[0] == pytest.approx(expected, rel=1e-6)
    # Adaptive steps of an implicit solver may differ by rounding.
    assert found[1] == pytest.approx(found[0], rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("count", [None, 1, 1000])
def test_any_number_of_checkpoints_has_the_same_derivative(case, count):
    few = jax.grad(case)(1.3, flock.integrate.Checkpointed(3))
    found = jax.grad(case)(1.3, flock.integrate.Checkpointed(count))
    assert found == pytest.approx(float(few), rel=1e-12)


@pytest.mark.parametrize(
    "adjoint",
    [
        pytest.param(flock.integrate.Checkpointed(2), marks=pytest.mark.slow),
        flock.integrate.Direct(),
    ],
)
def test_every_choice_has_forward_and_second_derivatives_inside_jit_and_vmap(adjoint):
    def f(beta):
        run = flock.solve(
            flock.SA(beta), START, 0.4, dt=0.1, method=diffrax.Heun(), max_steps=8, adjoint=adjoint
        )
        return jnp.sum(jnp.sin(MIXER * run.states[-1]))

    betas = jnp.array([0.7, 1.6])
    forward, second = jax.jit(jax.vmap(lambda b: (jax.jacfwd(f)(b), jax.hessian(f)(b))))(betas)
    bent = [(f(b + 1e-3) - 2 * f(b) + f(b - 1e-3)) / 1e-6 for b in betas]
    np.testing.assert_allclose(forward, [slope(f, b) for b in betas], rtol=1e-6)
    np.testing.assert_allclose(second, bent, rtol=1e-4)


# --- what is kept ----------------------------------------------------------------------------------

MANY = flock.uniform(flock.Sphere(3), n=64, seed=0)
STATE_BYTES = 64 * 3 * 8


def gradient_bytes(adjoint, max_steps):
    """Memory that the compiled gradient in all tokens needs beside its arguments and results."""

    def f(points):
        start = flock.from_array(flock.Sphere(3), points, normalise=True)
        how = {"dt": 0.1, "method": diffrax.Heun(), "max_steps": max_steps, "adjoint": adjoint}
        return jnp.sum(jnp.sin(flock.solve(flock.SA(2.0), start, 2.0, **how).states[-1]))

    return jax.jit(jax.grad(f)).lower(MANY.points).compile().memory_analysis().temp_size_in_bytes


def test_memory_is_bounded_by_the_checkpoints_and_not_by_the_steps():
    few = gradient_bytes(flock.integrate.Checkpointed(4), 200)
    assert gradient_bytes(flock.integrate.Checkpointed(4), 20_000) == few
    # A state and its place in the run; a compiler may hold them twice while it sorts them.
    one = (gradient_bytes(flock.integrate.Checkpointed(104), 20_000) - few) / 100
    assert STATE_BYTES < one < 2.2 * STATE_BYTES


@pytest.mark.slow
def test_the_default_needs_the_memory_of_as_many_checkpoints():
    """(c + 1)(c + 2)/2 > 20 000 steps: 199 states."""
    stated = gradient_bytes(flock.integrate.Checkpointed(199), 20_000)
    assert gradient_bytes(flock.integrate.Checkpointed(), 20_000) == stated


@pytest.mark.slow
def test_direct_keeps_all_of_sixteen_steps_however_many_are_allowed():
    step = gradient_bytes(flock.integrate.Checkpointed(1), 200)
    few, many = (gradient_bytes(flock.integrate.Direct(), count) for count in (200, 3000))
    assert few > 10 * step
    assert many < 1.1 * few


@pytest.mark.parametrize(
    ("adjoint", "states", "whole_steps"),
    [
        (None, 19, 1),
        (flock.integrate.Checkpointed(7), 7, 1),
        (flock.integrate.Checkpointed(5000), 200, 1),
        (flock.integrate.Direct(), 32, 16),
    ],
)
def test_a_run_records_its_choice_and_what_it_keeps(adjoint, states, whole_steps):
    starts = flock.uniform(flock.Sphere(3), n=5, seed=1, samples=4)
    run = flock.solve(
        flock.SA([1.0, 2.0]),
        starts,
        0.2,
        dt=0.1,
        max_steps=200,
        integrate={"cost": cost},
        adjoint=adjoint,
    )
    moving = (
        2 * 4 * (5 * 3 + 1) * 8
    )  # betas, samples, coordinates and the integral, bytes of a double
    assert run.attributes["numerics"]["adjoint"] == {
        "name": type(adjoint or flock.integrate.Checkpointed()).__name__,
        "states": states,
        "bytes": states * moving,
        "whole_steps": whole_steps,
    }


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 6, 17, 100_000])
def test_the_default_is_the_smallest_number_that_is_enough(steps):
    c = flock.integrate.Checkpointed().states_kept(steps)
    assert steps < (c + 1) * (c + 2) / 2
    assert c == 1 or steps >= c * (c + 1) / 2


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", ["checkpointed", diffrax.BacksolveAdjoint(), flock.integrate.Checkpointed]
)
def test_what_is_no_choice_is_refused(given):
    with pytest.raises(flock.errors.InputError, match=r"adjoint must be Checkpointed.* or Direct"):
        flock.solve(flock.SA(1.0), START, 1.0, dt=0.1, adjoint=given)


@pytest.mark.parametrize("count", [0, -3, 2.0, True, "many"])
def test_checkpoints_are_a_whole_number(count):
    with pytest.raises(flock.errors.InputError, match="whole number of at least 1; got"):
        flock.integrate.Checkpointed(count)


@pytest.mark.slow
def test_why_there_is_no_adjoint_equation_solved_backwards():
    """Tokens come together like e^{-t}; on the way back their differences are those of rounding."""
    model, start = flock.SA(4.0), flock.uniform(flock.Sphere(3), n=8, seed=0)
    mixer = jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)))

    def field(t, x, args):
        on_sphere = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
        return model.field(t, on_sphere, start.at(on_sphere))

    def backwards(points, t1):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Dopri8(),
            *(0.0, t1, None, points),
            stepsize_controller=diffrax.PIDController(1e-8, 1e-10),
            adjoint=diffrax.BacksolveAdjoint(),
        )
        return jnp.sum(jnp.sin(mixer * solution.ys[-1]))

    def through_steps(points, t1, tighter=1.0):
        tokens = flock.from_array(flock.Sphere(3), points, normalise=True)
        how = {"rtol": 1e-8 * tighter, "atol": 1e-10 * tighter, "max_steps": 4096}
        return jnp.sum(jnp.sin(mixer * flock.solve(model, tokens, t1, **how).states[-1]))

    def error(function, t1):
        exact = jax.grad(through_steps)(start.points, t1, 1e-2)
        found = start.space.project(start.points, jax.grad(function)(start.points, t1) - exact)
        return jnp.linalg.norm(found) / jnp.linalg.norm(exact)

    for t1, lowest in ((5.0, 0.0), (20.0, 1e-4), (30.0, 0.1)):
        assert error(through_steps, t1) < 1e-8
        assert error(backwards, t1) >= lowest
    assert error(backwards, 5.0) < 1e-8
