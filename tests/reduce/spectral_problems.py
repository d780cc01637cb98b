"""Sums with asymmetric tokens, weights and values, and what Dense makes of them."""

import jax
import jax.numpy as jnp
import numpy as np

import tokenflock as flock
from tokenflock.reduce import Problem
from tokenflock.reduce.spectral.fallback import series_rows

N = 90
SOFTMAX, FULL = flock.kinds.Softmax(), flock.masks.Full()
BETAS = (0.0, 0.1, 1.0, 9.0, 100.0)


def rng(seed=7):
    """The same numbers in every test, whatever ran before it."""
    return np.random.default_rng(seed)


def on_sphere(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def pulled(d, n=N, pull=0.7, seed=0):
    """Spread over the sphere, denser on one side."""
    return on_sphere(rng(seed).normal(size=(n, d)) + pull * np.eye(d)[0])


def clustered(d, n=N):
    """A Dirac to seven digits."""
    return on_sphere(np.ones(d) + 1e-7 * rng().normal(size=(n, d)))


def lonely(d, n=N):
    """Two tight clusters on one side, and one token far from both."""
    centres = np.where(np.arange(n)[:, None] % 3 == 0, np.eye(d)[0], np.eye(d)[1])
    points = on_sphere(centres + 0.02 * rng().normal(size=(n, d)))
    points[n // 2] = on_sphere(-np.eye(d)[0] - 0.6 * np.eye(d)[1])
    return points


def make(points, kind=SOFTMAX, mask=FULL, beta=9.0, queries=None, drop=False, seed=3, m=3):
    """A problem with random values and masses; queries are the tokens unless given."""
    draw = rng(seed)
    n = len(points)
    return Problem(
        kind,
        mask,
        jnp.asarray(beta),
        jnp.asarray(points if queries is None else queries),
        jnp.asarray(points),
        jnp.asarray(draw.uniform(-1.0, 1.0, (n, m))),
        jnp.asarray(np.log(draw.uniform(0.2, 2.0, n))),
        drop_self=drop,
        unit_keys=True,
        own_keys=queries is None,
    )


# Compiled at once: eager operations would be compiled one by one.
dense = jax.jit(flock.Dense())


def error(problem, tol, **options):
    """Largest difference from Dense, in units of the largest |v| (all values lie in [-1, 1])."""
    found = flock.Spectral(tol, **options)(problem)
    return float(jnp.max(jnp.abs(found - dense(problem))))


def bad_rows(problem, tol, **options):
    """Rows that the series leaves to the direct sum."""
    settled = flock.Spectral(tol, **options).settle([problem.task()])
    good = jax.jit(lambda p: series_rows(p, settled._plan(p))[1])(problem)
    return np.flatnonzero(~np.asarray(good))
