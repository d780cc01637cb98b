"""What Spectral refuses, in sentences that say what to do."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spectral_problems import N, dense, make, pulled

import tokenflock as flock
from tokenflock.serialise import describe, rebuild


@pytest.mark.parametrize("tol", [0.0, 1.0, -1e-3])
def test_a_tolerance_is_between_0_and_1(tol):
    with pytest.raises(flock.errors.InputError, match="between 0 and 1"):
        flock.Spectral(tol)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"degree": 0}, "at least 1"),
        ({"reach": -1.0}, "must be positive"),
    ],
)
def test_options(options, match):
    with pytest.raises(flock.errors.InputError, match=match):
        flock.Spectral(1e-8, **options)


@pytest.mark.parametrize("kind", [flock.kinds.Hardmax(), flock.kinds.Sinkhorn()])
def test_kinds_that_are_no_sum_of_a_smooth_function(kind):
    with pytest.raises(flock.errors.InputError, match=r"smooth function.*Tiled"):
        flock.Spectral(1e-8)(make(pulled(2), kind))


def test_keys_off_the_sphere():
    tokens = flock.gaussian(flock.Euclidean(2), N, seed=0)
    model = flock.Dynamics(None, flock.Attention(beta=1.0))
    with pytest.raises(flock.errors.InputError, match="keys that are the tokens of a sphere"):
        flock.solve(model, tokens, t1=1.0, dt=0.1, reduction=flock.Spectral(1e-8))


def test_a_traced_beta_needs_a_degree():
    problem = make(pulled(2))
    with pytest.raises(flock.errors.InputError, match=r"beta, which is traced here.*settle"):
        jax.jit(flock.Spectral(1e-8))(problem)


def test_unknown_reach():
    weights = flock.random_weights.RandomWeights(
        d=2, seed=0, B=flock.random_weights.Ginibre(), period=0.5
    )
    model = flock.Dynamics(None, flock.Attention(weights, beta=1.0))
    tokens = flock.uniform(flock.Sphere(2), N, seed=0)
    with pytest.raises(flock.errors.InputError, match=r"redrawn in time.*reach="):
        flock.solve(model, tokens, t1=1.0, dt=0.1, reduction=flock.Spectral(1e-8))


def test_a_degree_too_small():
    with pytest.raises(flock.errors.InputError, match=r"degree=5 reaches .* give degree=2\d"):
        flock.Spectral(1e-10, degree=5)(make(pulled(2), beta=9.0))


def test_a_degree_too_large():
    with pytest.raises(flock.errors.InputError, match=r"above the limit 128 for d=3"):
        flock.Spectral(1e-8)(make(pulled(3), beta=1000.0))


def test_tolerances_beyond_the_precision():
    with pytest.raises(flock.errors.InputError, match="below what float64 gives"):
        flock.Spectral(1e-14)(make(pulled(2)))
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), make(pulled(2)))
    with pytest.raises(flock.errors.InputError, match="below what float32 gives"):
        flock.Spectral(1e-8)(narrow)


@pytest.mark.slow
def test_a_kernel_with_a_kink():
    kernel = flock.kinds.Kernel(lambda u: jnp.abs(u) ** 2 * jnp.sign(u))
    with pytest.raises(flock.errors.InputError, match="decays too slowly"):
        flock.Spectral(1e-8)(make(pulled(2), kernel, beta=1.0))


def test_ordered_masks_need_rows_that_are_the_tokens():
    problem = make(pulled(2), mask=flock.masks.Causal(), queries=pulled(2)[:5])
    with pytest.raises(flock.errors.InputError, match="there are 5 rows"):
        flock.Spectral(1e-8)(problem)


def test_transforms_where_there_are_none():
    for problem in (make(pulled(3), beta=1.0), make(pulled(2), mask=flock.masks.Causal())):
        with pytest.raises(flock.errors.InputError, match="leave evaluate out"):
            flock.Spectral(1e-8, evaluate="finufft")(problem)


def test_a_beta_beyond_the_range_falls_back_instead():
    """The degree was chosen for beta = 1, the traced beta is 40: right, if slow."""
    problem = make(pulled(2), beta=1.0)
    reduction = flock.Spectral(1e-9).settle([problem.task()])
    hot = dataclasses.replace(problem, beta=jnp.asarray(40.0))
    np.testing.assert_allclose(jax.jit(reduction)(hot), dense(hot), atol=1e-12)


def test_a_stored_description_comes_back():
    settled = flock.Spectral(1e-8).settle([make(pulled(2)).task()])
    assert rebuild(describe(settled)) == settled
