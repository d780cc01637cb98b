"""The GPU kernel, interpreted on this machine, against Dense in float64."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.kinds import L2, Softmax, Unnormalised
from tokenflock.masks import ALiBi, Causal, Full
from tokenflock.reduce import Dense, GpuKernel, Problem

KERNEL = GpuKernel(interpret=True)
RNG = np.random.default_rng(4)
# Not a multiple of any tile, so that every program has rows and columns that do not exist.
N = 150


def unit(n, d, spread=1.0):
    x = RNG.normal(size=(n, d)) * np.linspace(0.4, 2.0, d) * spread + 0.3
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def problem(d, beta, kind=None, mask=None, drop=False, own=True, x=None, weights=None):
    x = jnp.asarray(unit(N, d) if x is None else x)
    mass = RNG.uniform(0.2, 2.0, len(x)) if weights is None else weights
    mass = jnp.log(jnp.asarray(mass / mass.sum()))
    kind, mask = kind or Softmax(), mask or Full()
    if own:
        return Problem(kind, mask, jnp.asarray(beta), x, x, x, mass, drop, True, True, True)
    queries = x @ jnp.asarray(RNG.normal(size=(d, d))) / np.sqrt(d)
    values = x @ jnp.asarray(RNG.normal(size=(d, d + 1)))
    return Problem(kind, mask, jnp.asarray(beta), queries, x, values, mass, drop, True)


def both(task):
    return Dense()(task), KERNEL(task)


# One program for many beta; for a single evaluation compiling costs more than it saves.
COMPILED = eqx.filter_jit(both)


def error(task, run=both):
    exact, found = (np.asarray(out) for out in run(task))
    scale = np.max(np.abs(exact), axis=1, keepdims=True) + np.max(np.abs(task.values)) * 1e-3
    return np.max(np.abs(found - exact) / scale)


@pytest.mark.parametrize("d", [2, 3, 24])
def test_self_attention(d):
    for beta in (0.0, 0.1, 1.0, 9.0, 100.0):
        task = problem(d, beta)
        measured = error(task, COMPILED)
        assert measured < KERNEL.settle([task.task()]).error_bound(N)
        assert measured < 3e-6 * max(1.0, beta / 9)


@pytest.mark.parametrize("d", [3, 24])
@pytest.mark.parametrize(
    ("mask", "drop"),
    list(itertools.product([Full(), Causal(), Causal(self_term=False), ALiBi(3.0)], [False, True])),
)
def test_masks_and_dropped_own_values(d, mask, drop):
    assert error(problem(d, 4.0, mask=mask, drop=drop)) < 3e-6
    assert error(problem(d, 4.0, mask=mask, drop=drop, own=False)) < 5e-6


@pytest.mark.parametrize("mask", [Causal(), ALiBi(2.0)])
@pytest.mark.parametrize("kind", [Softmax(), L2()], ids=["softmax", "L2"])
def test_masks_at_every_beta(kind, mask):
    """At beta = 100 a peak that is off by beta leaves nothing of a row."""
    for beta in (0.0, 1.0, 100.0):
        assert error(problem(3, beta, kind, mask), COMPILED) < 3e-6 * max(1.0, beta / 9)


@pytest.mark.parametrize("d", [3, 24])
def test_a_bias_that_falls_with_the_position(d):
    """The first token has the largest bias: a peak at a row's own bias leaves e^20, no float16."""
    assert error(problem(d, 2.0, mask=ALiBi(-20.0))) < 5e-6


@pytest.mark.parametrize("kind", [L2(), Unnormalised(), Unnormalised("kinetic")], ids=str)
@pytest.mark.parametrize("own", [True, False])
def test_other_exponential_kinds(kind, own):
    # Without a partition function weights of long queries exceed one, and float16 ends at 65504.
    for d, beta in ((3, 8.0), (40, 2.0)):
        assert error(problem(d, beta, kind, own=own)) < 5e-6 * max(1.0, beta / 4)


@pytest.mark.parametrize("d", [3, 24])
def test_clusters_and_lonely_tokens(d):
    tight = unit(1, d) + 1e-5 * RNG.normal(size=(N - 1, d))
    x = np.concatenate([tight, -unit(1, d)])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for beta in (0.1, 9.0, 100.0):
        assert error(problem(d, beta, x=x), COMPILED) < 3e-6 * max(1.0, beta / 9)


def test_a_row_far_from_every_key_keeps_its_digits():
    """A fixed shift by |q| would underflow: e^-200 is not a float32."""
    x = flock.starts.cap(flock.Sphere(3), 40, seed=1, radius=0.2).points
    mass = jnp.log(jnp.full(40, 1 / 40))
    far = Problem(Softmax(), Full(), jnp.asarray(100.0), -x[:5], x, x, mass, unit_keys=True)
    assert error(far) < 2e-5


def test_derivatives_and_batches():
    task = problem(3, 4.0)
    direction = RNG.normal(size=(N, 3))

    def loss(points, reduction):
        other = Problem(
            task.kind, task.mask, task.beta, points, points, points, task.log_weights, False, True, True, True
        )  # fmt: skip
        return jnp.sum(reduction(other) * direction)

    exact = jax.grad(loss)(task.keys, Dense())
    found = jax.grad(loss)(task.keys, KERNEL)
    np.testing.assert_allclose(found, exact, atol=2e-5 * np.max(np.abs(exact)))
    stack = jnp.stack([task.keys, task.keys[::-1]])
    pair = jax.vmap(lambda points: loss(points, KERNEL))(stack)
    one = [loss(points, Dense()) for points in stack]
    # The loss adds terms of both signs: what counts is their size, not that of the sum.
    np.testing.assert_allclose(pair, one, rtol=0, atol=1e-5 * np.linalg.norm(direction))


@pytest.mark.slow
def test_along_a_trajectory():
    tokens = flock.uniform(flock.Sphere(3), 70, seed=5)
    options = {"t1": 2.0, "method": flock.Layers(0.25)}
    exact = flock.solve(flock.SA(4.0), tokens, **options)
    found = flock.solve(flock.SA(4.0), tokens, reduction=KERNEL, **options)
    np.testing.assert_allclose(found.final.points, exact.final.points, atol=3e-6)
    assert found.health["reduction_error_bound"] > 1e-6


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (lambda: flock.HardmaxFlow(), "GpuKernel sums exponentials"),
        (lambda: flock.KineticFlow(2.0), "does not know"),
    ],
)
def test_refusals(task, sentence):
    tokens = flock.uniform(flock.Sphere(3), 6, seed=0)
    with pytest.raises(flock.errors.InputError, match=sentence):
        flock.solve(task(), tokens, t1=1.0, dt=0.5, reduction=KERNEL)


def test_without_a_gpu_it_says_so():
    tokens = flock.uniform(flock.Sphere(3), 6, seed=0)
    with pytest.raises(flock.errors.InputError, match="NVIDIA GPU"):
        flock.solve(flock.SA(1.0), tokens, t1=1.0, dt=0.5, reduction=GpuKernel())
