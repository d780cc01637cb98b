"""Brute-force particle system, written apart from the library, as the judge of its closed forms."""

from types import SimpleNamespace

import numpy as np
import pytest


def attention(x, beta, weights=None):
    """Softmax averages sum_j A_ij x_j for unit rows x; `weights` are cluster masses."""
    mass = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights)
    logits = beta * (x @ x.T)
    kernel = mass * np.exp(logits - logits.max(axis=1, keepdims=True))
    return kernel @ x / kernel.sum(axis=1, keepdims=True)


def unnormalised(x, beta, weights=None, shift=0.0):
    mass = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights)
    return (mass * np.exp(beta * (x @ x.T - shift))) @ x


def project(x, v):
    return v - x * (x * v).sum(axis=1, keepdims=True)


def field(x, beta, model="SA", convention="perspective", weights=None):
    if model == "SA":
        return project(x, attention(x, beta, weights))
    return project(x, unnormalised(x, beta, weights, float(convention == "metastability")))


def equiangular(n, rho, seed=0):
    """n unit rows with common inner product rho, in a random orthonormal frame of R^{n+2}."""
    gram = (1 - rho) * np.eye(n) + rho
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(n + 2, n)))[0]
    return np.linalg.cholesky(gram) @ frame.T


@pytest.fixture
def particles():
    return SimpleNamespace(
        attention=attention, field=field, project=project, equiangular=equiangular
    )
