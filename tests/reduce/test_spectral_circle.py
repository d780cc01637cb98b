"""Spectral on the circle: Dense within tol, for every kind, beta and law of the tokens it takes."""

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
from tokenflock.kinds import as_function
from tokenflock.kinds.base import PairPotential
from tokenflock.reduce.spectral.fallback import series_rows
from tokenflock.reduce.spectral.transforms import available

TOL = 1e-9


def test_every_beta_on_spread_clustered_and_lonely_tokens():
    """One compiled call: a batch of beta and of samples, with the degree of the largest beta."""
    problems = [make(points(2), drop=True) for points in (pulled, clustered, lonely)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)
    reduction = flock.Spectral(TOL).settle([make(pulled(2), beta=100.0).task()])

    def differences(problem):
        def at(beta):
            one = dataclasses.replace(problem, beta=beta)
            return jnp.max(jnp.abs(reduction(one) - dense(one)))

        return jax.vmap(at)(jnp.asarray(BETAS))

    found = np.asarray(jax.jit(jax.vmap(differences))(stacked))
    assert found.shape == (3, len(BETAS))
    assert np.all(found < TOL)


@pytest.mark.slow
def test_the_degree_of_its_own_beta_needs_no_fallback():
    problem = make(pulled(2), drop=True)
    assert error(problem, TOL) < TOL
    assert len(bad_rows(problem, TOL)) == 0


def test_the_trap_falls_back():
    """Rows opposite to all tokens at beta = 30: Z is e^{-59} of e^beta, far below the series' error."""
    tokens = on_sphere(np.eye(2)[0] + 0.05 * rng().normal(size=(N, 2)))
    queries = np.where(np.arange(N)[:, None] < 5, -np.eye(2)[0], pulled(2, pull=3.0))
    problem = make(tokens, beta=30.0, queries=queries)
    bad = bad_rows(problem, TOL)
    assert set(bad) >= set(range(5))
    assert len(bad) < N / 2
    assert error(problem, TOL) < TOL
    settled = flock.Spectral(TOL).settle([problem.task()])
    everywhere = jnp.ones(N, bool)
    blind, _ = jax.jit(lambda p: series_rows(p, settled._plan(p), everywhere))(problem)
    assert np.max(np.abs(blind - dense(problem))[:5]) > 0.1


@pytest.mark.slow
def test_a_light_token_alone_falls_back():
    """Z_i is at least the row's own mass; a token of mass 1e-9 beside heavy ones gets no more."""
    points = lonely(2)
    problem = make(points, beta=60.0, drop=True)
    masses = problem.log_weights.at[N // 2].set(np.log(1e-9))
    problem = dataclasses.replace(problem, log_weights=masses)
    assert N // 2 in bad_rows(problem, TOL)
    assert error(problem, TOL) < TOL


def test_queries_longer_than_reach_fall_back_and_those_of_length_zero_see_the_mean():
    lengths = np.where(np.arange(N) % 10 == 0, 3.0, rng().uniform(0.0, 1.0, N))
    lengths[7] = 0.0
    problem = make(pulled(2), beta=4.0, queries=lengths[:, None] * pulled(2, seed=1))
    assert list(bad_rows(problem, TOL, reach=1.0)) == list(range(0, N, 10))
    out, mass = flock.Spectral(TOL, reach=1.0)(problem), jnp.exp(problem.log_weights)
    np.testing.assert_allclose(out, dense(problem), atol=TOL)
    np.testing.assert_allclose(out[7], mass @ problem.values / mass.sum(), atol=TOL)


KINDS = {
    "l2": (flock.kinds.L2(), 3.0, 1.0),
    "perspective": (flock.kinds.Unnormalised(), 3.0, np.exp(3.0)),
    "sigmoid": (flock.kinds.Sigmoid(0.5), 3.0, 1.0),
    "kernel": (flock.kinds.Kernel(as_function([0.0, 1.0, -0.5, 0.25])), 1.0, 2.75),
    "kinetic": (flock.kinds.Unnormalised("kinetic"), 3.0, 3 * np.exp(3.0)),
    "linear": (flock.kinds.Linear(), 2.0, 2.0),
    "energy": (PairPotential(flock.kinds.Sigmoid()), 3.0, 3.1),
}
SLOW = ("perspective", "kernel", "kinetic", "linear", "energy")
LATER = [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.parametrize("name", ["l2", "sigmoid", *LATER])
def test_kinds(name):
    """Bounds of kinds without a partition are relative to the largest weight."""
    kind, beta, largest = KINDS[name]
    problem = make(pulled(2), kind, beta=beta, drop=True)
    assert error(problem, TOL) < TOL * largest
    assert np.max(np.abs(dense(problem))) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kind", [flock.kinds.Unnormalised(), flock.kinds.L2()])
def test_general_queries(kind):
    """Queries B^T x of other lengths than 1, fewer rows than tokens, the row's own value dropped."""
    queries = (pulled(2, seed=1) @ np.array([[1.2, -0.7], [0.3, 0.4]]))[: N // 2]
    problem = make(pulled(2), kind, beta=2.0, queries=queries, drop=True)
    largest = 1.0 if kind.averages else np.exp(2 * np.max(np.linalg.norm(queries, axis=1)))
    assert error(problem, TOL) < TOL * largest


@pytest.mark.slow
def test_polynomials_of_general_queries_are_exact():
    queries = pulled(2, seed=1) @ np.array([[1.2, -0.7], [0.3, 0.4]])
    kind = flock.kinds.Kernel(as_function([0.0, 1.0, -0.5, 0.25]))
    assert error(make(pulled(2), kind, beta=1.0, queries=queries), TOL) < 1e-14


@pytest.mark.slow
def test_heads_with_their_own_b_and_v_along_a_trajectory():
    """A batch of samples and of beta, two heads, whole solves."""
    tokens = flock.uniform(flock.Sphere(2), 24, seed=2, samples=2)
    weights = flock.Weights.gaussian(d=2, heads=2, seed=1)
    model = flock.Dynamics(None, flock.Attention(weights, beta=[0.5, 3.0]))
    options = {"t1": 1.0, "rtol": 1e-8, "atol": 1e-10}
    dense = flock.solve(model, tokens, **options)
    run = flock.solve(model, tokens, reduction=flock.Spectral(1e-10), **options)
    np.testing.assert_allclose(run.final.points, dense.final.points, atol=1e-8)
    assert np.max(np.abs(dense.final.points - tokens.points)) > 0.1
    settled = run.attributes["numerics"]["reduction"]
    assert settled["class"] == "Spectral"
    assert settled["degree"] > 10
    assert run.health["reduction_error_bound"] == 1e-10


def tangent(gradient, points):
    return gradient - jnp.sum(gradient * points, -1, keepdims=True) * points


@pytest.mark.parametrize("own", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_derivatives_of_series_and_fallback(own):
    """Through rows that the series sums and rows that it leaves to the direct sum."""
    points = lonely(2)
    problem = make(points, beta=60.0, queries=None if own else 1.1 * points[::-1], drop=own)
    problem = dataclasses.replace(
        problem, log_weights=problem.log_weights.at[N // 2].set(np.log(1e-9))
    )
    settled = flock.Spectral(1e-7).settle([problem.task()])
    assert 0 < len(bad_rows(problem, 1e-7)) < N
    cotangent = jnp.asarray(rng().normal(size=problem.values.shape))

    def loss(numbers, reduction):
        return jnp.sum(reduction(numbers) * cotangent)

    exact = jax.jit(jax.grad(loss))(problem, flock.Dense())
    found = jax.jit(jax.grad(loss))(problem, settled)
    np.testing.assert_allclose(found.beta, exact.beta, atol=1e-6)
    np.testing.assert_allclose(found.values, exact.values, atol=1e-6)
    np.testing.assert_allclose(found.log_weights, exact.log_weights, atol=1e-6)
    if own:
        # Rows and columns are the same tokens: only the sum of both derivatives means anything.
        found, exact = found.queries + found.keys, exact.queries + exact.keys
    else:
        np.testing.assert_allclose(found.queries, exact.queries, atol=1e-5)
        found, exact = found.keys, exact.keys
    np.testing.assert_allclose(tangent(found, points), tangent(exact, points), atol=1e-5)
    assert np.max(np.abs(tangent(exact, points))) > 0.1


@pytest.mark.slow
def test_derivatives_through_a_solve():
    points = flock.uniform(flock.Sphere(2), 12, seed=0).points

    def end(points, beta, reduction):
        run = flock.solve(
            flock.SA(beta), flock.from_array(flock.Sphere(2), points), t1=0.5, dt=0.1,
            reduction=reduction,
        )  # fmt: skip
        return jnp.sum(run.states[-1] * jnp.arange(24.0).reshape(12, 2))

    exact = jax.grad(end, (0, 1))(points, 2.0, flock.Dense())
    # beta is traced here: the degree is given.
    found = jax.grad(end, (0, 1))(points, 2.0, flock.Spectral(1e-10, degree=16))
    np.testing.assert_allclose(found[0], exact[0], atol=1e-8)
    np.testing.assert_allclose(found[1], exact[1], atol=1e-8)


def test_single_precision_stays_single():
    problem = make(pulled(2), drop=True)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), problem)
    out = flock.Spectral(1e-5)(narrow)
    assert out.dtype == jnp.float32
    np.testing.assert_allclose(out, dense(problem), atol=1e-5)


@pytest.mark.skipif(not available(), reason="jax-finufft is an extra")
def test_transforms_of_a_batch():
    """Near-Diracs are the hardest for a transform whose errors are relative to Euclidean norms."""
    problems = [make(points(2), beta=100.0, drop=True) for points in (pulled, clustered)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)
    reduction = flock.Spectral(TOL, evaluate="finufft").settle([problems[0].task()])
    for found, problem in zip(jax.vmap(reduction)(stacked), problems, strict=True):
        np.testing.assert_allclose(found, dense(problem), atol=TOL)
    assert reduction._plan(problems[0]).transform is not None


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="jax-finufft is an extra")
def test_transforms_serve_general_queries_and_have_derivatives():
    problem = make(pulled(2), beta=20.0, queries=1.3 * pulled(2, seed=1))
    reduction = flock.Spectral(TOL, evaluate="finufft").settle([problem.task()])

    def total(problem, reduction):
        return jnp.sum(reduction(problem) * problem.values[::-1])

    found, gradient = jax.value_and_grad(total)(problem, reduction)
    exact, slope = jax.value_and_grad(total)(problem, flock.Dense())
    assert float(found) == pytest.approx(float(exact), abs=N * TOL)
    np.testing.assert_allclose(gradient.queries, slope.queries, atol=1e-7)
