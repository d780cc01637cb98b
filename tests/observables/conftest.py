"""Asymmetric weighted tokens, and compiled ways to evaluate an observable on them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.measure import Measure
from tokenflock.models import SA
from tokenflock.observables import Snapshot
from tokenflock.reduce import Dense
from tokenflock.space import Euclidean, Sphere
from tokenflock.starts import uniform


def make_snapshot(measure, model=None, t=0.0, reduction=None):
    model = SA(1.0) if model is None else model
    return Snapshot(jnp.asarray(t), measure, model, reduction or Dense())


# Model, measure and target are traced here, as inside a solve.
@eqx.filter_jit
def evaluate(observable, snapshot):
    return observable(snapshot)


@eqx.filter_jit
def evaluate_batch(observable, snapshot):
    def value(x):
        return observable(eqx.tree_at(lambda s: s.here.points, snapshot, x))

    for _ in snapshot.measure.batch_shape:
        value = jax.vmap(value)
    return value(snapshot.measure.points)


@pytest.fixture
def snapshot():
    """snapshot(measure, model, t, reduction): what an observable is given."""
    return make_snapshot


@pytest.fixture
def read():
    """read(observable, measure, model, t, reduction): its value, compiled."""

    def value(observable, measure, *args, **kwargs):
        return np.asarray(evaluate(observable, make_snapshot(measure, *args, **kwargs)))[()]

    return value


@pytest.fixture
def read_batch():
    """The same for tokens with sample axes: one program, vectorised over them."""

    def value(observable, measure, *args, **kwargs):
        return np.asarray(evaluate_batch(observable, make_snapshot(measure, *args, **kwargs)))

    return value


@pytest.fixture
def weighted():
    """weighted(d, n, seed, samples): tokens on the sphere with unequal masses."""

    def make(d=4, n=12, seed=0, samples=None):
        masses = 1.0 + np.arange(n) ** 1.5
        return Measure(Sphere(d), uniform(Sphere(d), n, seed, samples).points, masses)

    return make


@pytest.fixture
def cloud():
    """cloud(d, n, seed, samples): weighted tokens in R^d."""

    def make(d=3, n=15, seed=0, samples=None):
        shape = (n, d) if samples is None else (samples, n, d)
        points = np.random.default_rng(seed).normal(size=shape) * np.arange(1, d + 1)
        return Measure(Euclidean(d), points, 1.0 + np.arange(n))

    return make
