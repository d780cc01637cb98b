"""Asymmetric weighted tokens, and a way to evaluate an observable on them."""

import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.measure import Measure, uniform
from tokenflock.models import SA
from tokenflock.observables import Snapshot
from tokenflock.reduce import Dense
from tokenflock.space import Euclidean, Sphere


@pytest.fixture
def snapshot():
    """snapshot(measure, model, t, reduction): what an observable is given."""

    def make(measure, model=None, t=0.0, reduction=None):
        return Snapshot(
            jnp.asarray(t), measure, SA(1.0) if model is None else model, reduction or Dense()
        )

    return make


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
