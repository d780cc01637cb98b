"""Sums with asymmetric tokens, weights and values, and what Dense makes of them."""

import jax
import jax.numpy as jnp
import numpy as np

import tokenflock as flock
from tokenflock.reduce import Problem
from tokenflock.reduce.spectral.fallback import series_rows

RNG = np.random.default_rng(7)
N = 90
SOFTMAX, FULL = flock.Softmax(), flock.Full()
BETAS = (0.0, 0.1, 1.0, 9.0, 100.0)


def on_sphere(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def pulled(d, n=N, pull=0.7):
    """Spread over the sphere, denser on one side."""
    return on_sphere(RNG.normal(size=(n, d)) + pull * np.eye(d)[0])


def clustered(d, n=N):
    """A Dirac to seven digits."""
    return on_sphere(np.ones(d) + 1e-7 * RNG.normal(size=(n, d)))


def lonely(d, n=N):
    """Two tight clusters on one side, and one token far from both."""
    centres = np.where(np.arange(n)[:, None] % 3 == 0, np.eye(d)[0], np.eye(d)[1])
    points = on_sphere(centres + 0.02 * RNG.normal(size=(n, d)))
    points[n // 2] = on_sphere(-np.eye(d)[0] - 0.6 * np.eye(d)[1])
    return points


def make(points, kind=SOFTMAX, mask=FULL, beta=9.0, queries=None, drop=False, seed=3, m=3):
    """A problem with random values and masses; queries are the tokens unless given."""
    rng = np.random.default_rng(seed)
    n = len(points)
    return Problem(
        kind,
        mask,
        jnp.asarray(beta),
        jnp.asarray(points if queries is None else queries),
        jnp.asarray(points),
        jnp.asarray(rng.uniform(-1.0, 1.0, (n, m))),
        jnp.asarray(np.log(rng.uniform(0.2, 2.0, n))),
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
