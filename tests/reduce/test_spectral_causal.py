"""Ordered sums in O(n): causal and ALiBi masks against Dense, whatever the slope."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spectral_problems import SOFTMAX, N, bad_rows, error, lonely, make, on_sphere, pulled, rng

import tokenflock as flock
from tokenflock.reduce.spectral import plan

TOL = 1e-9
# Two whole chunks and a part.
MANY = 2 * plan.CHUNK + 37


@pytest.mark.parametrize(
    ("self_term", "drop"), [(True, True), pytest.param(False, False, marks=pytest.mark.slow)]
)
def test_causal(self_term, drop):
    problem = make(pulled(2, MANY), mask=flock.masks.Causal(self_term), drop=drop)
    assert error(problem, TOL) < TOL
    if not self_term:
        assert np.all(flock.Spectral(TOL)(problem)[0] == 0)


def test_alibi_of_any_slope_with_its_derivative():
    """From no decay to one that hides all but the last token, and a growing one."""
    problem = make(pulled(2, MANY), mask=flock.masks.ALiBi(1.0, self_term=False))
    reduction = flock.Spectral(TOL).settle([problem.task()])

    def total(slope, reduction):
        out = reduction(
            dataclasses.replace(problem, mask=flock.masks.ALiBi(slope, self_term=False))
        )
        return jnp.sum(out * problem.values[::-1]), out

    slopes = jnp.array([0.0, 0.5, 30.0, 1e4, 1e7, -3.0])
    gradient = jax.jit(jax.vmap(jax.grad(total, has_aux=True), (0, None)), static_argnums=1)
    found, exact = gradient(slopes, reduction), gradient(slopes, flock.Dense())
    np.testing.assert_allclose(found[1], exact[1], atol=TOL)
    np.testing.assert_allclose(found[0], exact[0], atol=1e-6)
    assert np.max(np.abs(exact[0])) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [flock.kinds.Unnormalised(), flock.kinds.Sigmoid()])
def test_kinds_without_a_partition(kind):
    problem = make(pulled(2, MANY), kind, flock.masks.ALiBi(2.0), beta=1.5)
    assert error(problem, TOL) < 5 * TOL


@pytest.mark.slow
def test_general_queries_and_the_trap():
    tokens = on_sphere(np.eye(2)[0] + 0.05 * rng().normal(size=(MANY, 2)))
    queries = pulled(2, MANY, pull=3.0)
    queries[-5:] = -np.eye(2)[0]
    problem = make(tokens, mask=flock.masks.Causal(), beta=30.0, queries=1.1 * queries)
    bad = bad_rows(problem, TOL)
    assert set(bad) >= set(range(MANY - 5, MANY))
    assert len(bad) < MANY / 2
    assert error(problem, TOL) < TOL


@pytest.mark.slow
def test_derivatives():
    points = lonely(2, MANY)
    problem = make(points, mask=flock.masks.Causal(), beta=40.0, drop=True)
    settled = flock.Spectral(TOL).settle([problem.task()])

    def loss(numbers, reduction):
        return jnp.sum(reduction(numbers) * problem.values[::-1])

    exact = jax.jit(jax.grad(loss))(problem, flock.Dense())
    found = jax.jit(jax.grad(loss))(problem, settled)
    along = [g.queries + g.keys for g in (found, exact)]
    along = [g - jnp.sum(g * points, -1, keepdims=True) * points for g in along]
    np.testing.assert_allclose(*along, atol=1e-6)
    assert np.max(np.abs(along[1])) > 0.1
    np.testing.assert_allclose(found.log_weights, exact.log_weights, atol=1e-7)


def test_sphere():
    problem = make(pulled(3, MANY), SOFTMAX, flock.masks.ALiBi(2.0), beta=1.0, drop=True)
    assert error(problem, 1e-6) < 1e-6


@pytest.mark.slow
def test_causal_attention_along_a_trajectory():
    tokens = flock.from_array(flock.Sphere(2), pulled(2, N), ordered=True)
    options = {"t1": 1.0, "rtol": 1e-8, "atol": 1e-10}
    model = flock.CausalSA(4.0, slope=1.0)
    dense = flock.solve(model, tokens, **options)
    run = flock.solve(model, tokens, reduction=flock.Spectral(1e-10), **options)
    np.testing.assert_allclose(run.final.points, dense.final.points, atol=1e-8)
