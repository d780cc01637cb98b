"""Spectral on S^2: Dense within tol. Degrees stay low, since compiling grows with them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spectral_problems import (
    BETAS,
    N,
    bad_rows,
    clustered,
    dense,
    error,
    lonely,
    make,
    on_sphere,
    pulled,
    rng,
)

import tokenflock as flock

TOL = 1e-6


def poles(d):
    """Tokens at and near both poles of the harmonics, where angles mean nothing."""
    points = pulled(d)
    points[:10], points[10:15] = np.eye(3)[2], -np.eye(3)[2]
    points[15:20] = on_sphere(np.eye(3)[2] + 1e-9 * rng().normal(size=(5, 3)))
    return points


def differences(betas, tol):
    """Spectral minus Dense on four laws of the tokens, with the degree of the largest beta."""
    laws = (pulled, clustered, lonely, poles)
    problems = [make(law(3), beta=betas[-1], drop=True) for law in laws]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)
    reduction = flock.Spectral(tol).settle([problems[0].task()])

    def of(problem):
        def at(beta):
            one = dataclasses.replace(problem, beta=beta)
            return jnp.max(jnp.abs(reduction(one) - dense(one)))

        return jax.vmap(at)(jnp.asarray(betas))

    return np.asarray(jax.jit(jax.vmap(of))(stacked))


def test_small_beta():
    assert np.all(differences(BETAS[:3], TOL) < TOL)


@pytest.mark.parametrize("count", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_large_beta(count):
    assert np.all(differences(BETAS[:count], TOL) < TOL)


@pytest.mark.slow
def test_general_queries_and_the_trap():
    """Long and short queries, some opposite to all tokens."""
    tokens = on_sphere(np.eye(3)[0] + 0.1 * rng().normal(size=(N, 3)))
    queries = pulled(3, pull=3.0) * rng().uniform(0.3, 1.0, (N, 1))
    queries[:4] = -np.eye(3)[0]
    problem = make(tokens, beta=4.0, queries=queries)
    assert set(bad_rows(problem, TOL)) >= set(range(4))
    assert len(bad_rows(problem, TOL)) < N / 2
    assert error(problem, TOL) < TOL


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [flock.kinds.Unnormalised("metastability"), flock.kinds.Sigmoid(0.3)]
)
def test_kinds_without_a_partition(kind):
    assert error(make(poles(3), kind, beta=1.0, drop=True), TOL) < TOL


@pytest.mark.slow
def test_derivatives():
    points = poles(3)
    problem = make(points, beta=1.0, drop=True)
    settled = flock.Spectral(TOL).settle([problem.task()])

    def loss(numbers, reduction):
        return jnp.sum(reduction(numbers) * problem.values[::-1])

    exact = jax.jit(jax.grad(loss))(problem, flock.Dense())
    found = jax.jit(jax.grad(loss))(problem, settled)
    along = [g.queries + g.keys for g in (found, exact)]
    along = [g - jnp.sum(g * points, -1, keepdims=True) * points for g in along]
    np.testing.assert_allclose(*along, atol=1e-4)
    assert np.max(np.abs(along[1])) > 0.01
    np.testing.assert_allclose(found.values, exact.values, atol=1e-5)
    np.testing.assert_allclose(found.beta, exact.beta, atol=1e-5)


@pytest.mark.slow
def test_a_trajectory_with_heads_weighted_tokens_and_its_energy():
    tokens = flock.from_array(flock.Sphere(3), pulled(3), weights=rng().uniform(0.2, 2.0, N))
    weights = flock.Weights.gaussian(d=3, heads=2, seed=1)
    model = flock.Dynamics(None, flock.Attention(weights, beta=1.0))
    save = flock.Save(every=0.5, observe=[flock.energy])
    options = {"t1": 2.0, "rtol": 1e-8, "atol": 1e-10, "save": save}
    dense = flock.solve(model, tokens, **options)
    run = flock.solve(model, tokens, reduction=flock.Spectral(1e-10), **options)
    np.testing.assert_allclose(run.final.points, dense.final.points, atol=1e-8)
    np.testing.assert_allclose(run["energy"], dense["energy"], rtol=1e-8)


@pytest.mark.slow
def test_sa_along_a_trajectory():
    tokens = flock.from_array(flock.Sphere(3), pulled(3))
    options = {"t1": 1.0, "rtol": 1e-6, "atol": 1e-6}
    dense = flock.solve(flock.SA(1.0), tokens, **options)
    run = flock.solve(flock.SA(1.0), tokens, reduction=flock.Spectral(1e-7), **options)
    np.testing.assert_allclose(run.final.points, dense.final.points, atol=1e-5)
