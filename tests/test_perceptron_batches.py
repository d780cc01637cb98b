"""A batch of perceptrons: every member is its single run, of tokens and of densities."""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock

D = 3
TOKENS = flock.uniform(flock.Sphere(D), n=4, seed=0)
RNG = np.random.default_rng(5)
INNER, OUTER = RNG.normal(size=(2, 4, D)), RNG.normal(size=(2, D, 4))
BIAS, OMEGA = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4))
# How a perceptron is made, of which weights; a member has the entries of those that are batches.
BATCHES = {
    "inner": (flock.Perceptron, (INNER, OUTER[0]), (0,), "inner"),
    "outer": (flock.Perceptron, (INNER[0], OUTER), (1,), "outer"),
    "bias": (flock.Perceptron, (INNER[0], OUTER[0], BIAS), (2,), "bias"),
    "all": (flock.Perceptron, (INNER, OUTER, BIAS), (0, 1, 2), "model"),
    "omega": (flock.Perceptron.gradient, (OMEGA, INNER[0]), (0,), "model"),
    "a": (flock.Perceptron.gradient, (OMEGA[0], INNER), (1,), "model"),
    "omega and a": (flock.Perceptron.gradient, (OMEGA, INNER), (0, 1), "model"),
}
# A start, the end that is compared, and a time until which a density of few degrees is resolved.
STARTS = {
    "tokens": (TOKENS, "final_points", 0.5),
    "density": (
        flock.Density.from_law(
            flock.meanfield.Harmonics(8, tail=0.1), flock.laws.von_mises(0.5, np.ones(D))
        ),
        "final_state",
        0.1,
    ),
}


def with_attention(perceptron):
    return flock.Dynamics(None, flock.Attention(beta=1.0) + perceptron)


CASES = [(name, "tokens") for name in BATCHES] + [("all", "density"), ("omega", "density")]


@pytest.mark.parametrize(("name", "start"), CASES)
def test_weights_with_one_axis_more_are_a_batch(name, start):
    make, given, batched, axis = BATCHES[name]
    x0, end, t1 = STARTS[start]
    how = {"rtol": 1e-8, "atol": 1e-10}
    batch = flock.solve(with_attention(make(*given)), x0, t1, **how)
    assert batch.batch_axes == (axis,)
    found = [batch.array(end, **{axis: k}) for k in range(2)]
    for k in range(2):
        own = [value[k] if place in batched else value for place, value in enumerate(given)]
        alone = flock.solve(with_attention(make(*own)), x0, t1, **how)
        np.testing.assert_allclose(found[k], alone.array(end), rtol=0, atol=1e-7)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_a_multiple_of_a_batch_is_a_batch():
    one = flock.Perceptron.gradient(OMEGA, INNER[0]).scaled(2.0)
    np.testing.assert_allclose(one.outer, 2 * OMEGA[:, None, :] * INNER[0].T, rtol=1e-15)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: flock.Perceptron(INNER, np.ones((3, D, 4))), "need one length"),
        (lambda: flock.Perceptron(INNER[None], OUTER), "one axis more in front"),
        (lambda: flock.Perceptron(INNER, OUTER, np.ones(3)), "bias must have shape"),
        (lambda: flock.Perceptron.gradient(np.ones((3, 4)), INNER), "of the same length"),
        (lambda: flock.Perceptron.random(D, 4, 0, scale=jnp.ones(2)), "scale of random neurons"),
        (lambda: flock.Perceptron.random(D, 4, 0, bias=jnp.ones(2)), "bias of random neurons"),
        (
            lambda: flock.meanfield.landscape.Landscape.of(
                flock.USA(1.0, plus=flock.Perceptron.gradient(OMEGA, INNER[0]))
            ),
            "batch of models",
        ),
    ],
)
def test_weights_that_are_no_batch_are_refused(make, words):
    with pytest.raises(flock.errors.InputError, match=words):
        make()
