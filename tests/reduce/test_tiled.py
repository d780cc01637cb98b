"""Reductions: tiles give the sums of the dense matrix, their derivatives, and along a trajectory."""

import jax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import State

RNG = np.random.default_rng(1)
POINTS = np.asarray(flock.uniform(flock.Sphere(3), 13, seed=3).points)
MASS = RNG.uniform(0.2, 2.0, 13)
CLUSTERED = np.asarray(flock.cap(flock.Sphere(3), 13, seed=1, radius=1e-7).points)


@pytest.mark.parametrize("beta", [0.0, 0.1, 9.0, 100.0])
@pytest.mark.parametrize("points", [POINTS, CLUSTERED], ids=["spread", "clustered"])
def test_tiles_equal_dense(beta, points):
    tokens = flock.from_array(flock.Sphere(3), points, weights=MASS)
    for model in (
        flock.SA(beta),
        flock.USA(beta, "metastability"),
        flock.CausalSA(beta, slope=0.5),
    ):
        exact = model.velocity(0.0, State(tokens.points), tokens, flock.Dense()).points
        for tile in (1, 4, 13, 64):
            tiled = model.velocity(0.0, State(tokens.points), tokens, flock.Tiled(tile)).points
            np.testing.assert_allclose(tiled, exact, atol=2e-16 * 13)


def test_tiles_have_the_same_derivative():
    tokens = flock.from_array(flock.Sphere(3), POINTS, weights=MASS)

    def loss(points, reduction):
        speed = flock.SA(3.0).velocity(0.0, State(points), tokens, reduction).points
        return (speed * POINTS[::-1]).sum()

    exact = jax.grad(loss)(tokens.points, flock.Dense())
    np.testing.assert_allclose(jax.grad(loss)(tokens.points, flock.Tiled(4)), exact, atol=1e-14)
    assert np.max(np.abs(exact)) > 1e-2


def test_tiles_along_a_trajectory_in_a_batch():
    tokens = flock.uniform(flock.Sphere(3), 10, seed=2, samples=2)
    options = {"t1": 2.0, "rtol": 1e-9, "atol": 1e-11}
    dense = flock.solve(flock.SA(4.0), tokens, **options)
    tiled = flock.solve(flock.SA(4.0), tokens, reduction=flock.Tiled(4), **options)
    np.testing.assert_allclose(tiled.final.points, dense.final.points, atol=1e-12)
    assert tiled.health["reduction_error_bound"] > 0
    assert tiled.attributes["numerics"]["reduction"]["class"] == "Tiled"


def test_sinkhorn_tiles_its_iterations():
    tokens = flock.from_array(flock.Sphere(3), POINTS, weights=MASS)
    model = flock.SinkhornSA(2.0)
    exact = model.velocity(0.0, State(tokens.points), tokens, flock.Dense()).points
    tiled = model.velocity(0.0, State(tokens.points), tokens, flock.Tiled(4)).points
    np.testing.assert_allclose(tiled, exact, atol=1e-8)
    assert np.max(np.abs(exact)) > 1e-2
