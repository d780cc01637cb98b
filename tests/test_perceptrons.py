"""Random perceptrons: the size of their velocity, fresh layers, and the networks made of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.lab.files import parse
from tokenflock.lab.job import Job
from tokenflock.terms.neurons import RandomNeurons

D, STEP = 3, 0.25
FRESH = flock.Perceptron.random(D, 5, seed=1, scale=0.8, bias=0.5, period=STEP)
TOKENS = flock.uniform(flock.Sphere(D), n=4, seed=0)


def draws(**law):
    """|u(x)|^2 and u(x).u(y) of two orthogonal tokens, over 4,000 draws of the weights."""
    space = flock.Sphere(law["d"])
    x = jnp.eye(law["d"])[:2]
    mu = flock.Measure(space, x)

    drawn = RandomNeurons(seed=0, **law)

    def one(key):
        own = flock.Perceptron(weights=eqx.tree_at(lambda weights: weights.key, drawn, key))
        field = own.field(0.0, x, mu, flock.Dense())
        return field[0] @ field[0], field[0] @ field[1]

    return np.asarray(jax.vmap(one)(jax.random.split(jax.random.key(7), 4000)))


def agrees(samples, expected):
    """Within 5 standard errors: a false alarm once in 1.7 million."""
    error = np.std(samples) / np.sqrt(samples.size)
    assert abs(np.mean(samples) - expected) < 5 * error
    assert error < 0.05 * abs(expected)  # sharp enough to see a law without 1/sqrt(width)


@pytest.mark.parametrize("width", [4, 64])
@pytest.mark.parametrize("d", [2, 8])
def test_the_velocity_has_the_same_size_for_every_width_and_dimension(d, width):
    """E |u|^2 = scale^2 (1 + bias^2)/2; orthogonal tokens share 1/pi of it without bias."""
    size, shared = draws(d=d, width=width, scale=1.5)
    agrees(size, 1.5**2 / 2)
    agrees(shared, 1.5**2 / 2 / np.pi)


def test_gradient_neurons_have_the_same_size_for_every_width():
    for width in (4, 64):
        size, _ = draws(d=4, width=width, scale=1.5, gradient=True)
        agrees(size, 1.5**2 / (2 * 4))


def layers(count, weights):
    return [weights.at(m * STEP) for m in range(count)]


def test_layers_are_drawn_anew_and_the_seed_gives_them_again():
    again = flock.Perceptron.random(D, 5, seed=1, scale=0.8, bias=0.5, period=STEP)
    other = flock.Perceptron.random(D, 5, seed=2, scale=0.8, bias=0.5, period=STEP)
    first, second = layers(2, FRESH.weights)
    for name in ("inner", "outer", "bias"):
        assert not np.any(getattr(first, name) == getattr(second, name))
        within = getattr(FRESH.weights.at(0.99 * STEP), name)
        np.testing.assert_array_equal(within, getattr(first, name))
        np.testing.assert_array_equal(getattr(again.weights.at(0.0), name), getattr(first, name))
        assert not np.any(getattr(other.weights.at(0.0), name) == getattr(first, name))
    assert FRESH.jumps(1.0) == [0.25, 0.5, 0.75]


def numpy_field(neurons, x):
    a, w, b = (np.asarray(m) for m in (neurons.inner, neurons.outer, neurons.bias))
    return np.maximum(x @ a.T + b, 0.0) @ w.T


@pytest.mark.parametrize("per", ["run", "sample"])
def test_a_network_of_fresh_layers_is_the_numpy_loop(per):
    """Two samples with the same start: they stay together where the weights are those of the run."""
    term = flock.Perceptron.random(D, 5, seed=1, scale=0.8, bias=0.5, period=STEP, per=per)
    model = flock.Dynamics(flock.Sphere(D), term)
    batch = flock.Measure(flock.Sphere(D), jnp.stack([TOKENS.points] * 2))
    run = flock.solve(model, batch, t1=0.5, method=flock.Layers(step=STEP))
    for index in range(2):
        x = np.asarray(TOKENS.points)
        for neurons in layers(2, term.weights.for_sample(jnp.asarray(index))):
            x = x + STEP * numpy_field(neurons, x)
            x = x / np.linalg.norm(x, axis=-1, keepdims=True)
        np.testing.assert_allclose(run.final.points[index], x, atol=1e-13)
    apart = np.max(np.abs(run.final.points[0] - run.final.points[1]))
    assert apart == 0 if per == "run" else apart > 1e-3


def test_adaptive_steps_stop_at_every_switch():
    """Against scipy, one layer after the other."""
    from scipy.integrate import solve_ivp

    model = flock.Dynamics(flock.Sphere(D), FRESH)
    run = flock.solve(model, TOKENS, t1=0.5, rtol=1e-8, atol=1e-10)
    x = np.asarray(TOKENS.points).ravel()
    for neurons in layers(2, FRESH.weights):

        def velocity(t, flat, neurons=neurons):
            points = flat.reshape(-1, D)
            push = numpy_field(neurons, points)
            return (push - np.sum(push * points, axis=-1, keepdims=True) * points).ravel()

        x = solve_ivp(velocity, (0.0, STEP), x, rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(np.asarray(run.final.points).ravel(), x, atol=1e-7)


def test_weights_that_change_have_no_single_matrix():
    with pytest.raises(flock.errors.InputError, match=r"perceptron\.weights\.at\(t\)"):
        _ = FRESH.inner
    with pytest.raises(flock.errors.InputError, match="not both"):
        flock.Perceptron([[1.0]], [[1.0]], weights=FRESH.weights)
    with pytest.raises(flock.errors.InputError, match="period must be positive, got -1"):
        flock.Perceptron.random(D, 5, seed=1, period=-1.0)


def test_a_landscape_wants_constant_weights():
    """The energy of a gradient that is redrawn follows its time; a landscape has none."""
    term = flock.Perceptron.random(2, 3, seed=1, gradient=True, period=0.1)
    with pytest.raises(flock.errors.InputError, match="change with time"):
        flock.meanfield.landscape.find_critical(
            flock.USA(2.0, plus=term), flock.uniform(flock.Sphere(2), 4, seed=0), "ascent"
        )
    x = TOKENS.points[:, :2]
    early, late = term.v(x, 0.0), term.v(x, 0.1)
    assert not np.any(np.asarray(early) == np.asarray(late))


SPEC = """
[model]
name = "SA"
beta = 1.0
plus = {width = 5, seed = 1, scale = 0.8, bias = 0.5, period = 0.25, per = "sample"}
[tokens]
law = "uniform"
d = 3
n = 4
seed = 0
[solve]
t1 = 1.0
step = 0.25
"""


def test_a_spec_says_it():
    term = Job(parse(SPEC)).model.parts()[1]
    for m in range(2):
        assert jax.tree.all(
            jax.tree.map(
                lambda a, b: bool(jnp.all(a == b)),
                term.weights.at(m * 0.25),
                FRESH.weights.at(m * 0.25),
            )
        )
    assert term.weights.per == "sample"
