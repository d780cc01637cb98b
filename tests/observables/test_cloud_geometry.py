"""Diameter, order parameter, rank, radii, speed, alignment and hull: closed forms and numpy."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles
from tokenflock.models import SA, USA, RescaledSA
from tokenflock.normalisation import PreLN
from tokenflock.observables import (
    convex_hull_volume,
    diameter,
    effective_rank,
    mean_radius,
    min_alignment,
    order_parameter,
    speed,
)
from tokenflock.space import Euclidean, Sphere
from tokenflock.starts import equiangular, gaussian, hemisphere
from tokenflock.terms import Attention


def test_diameter(cloud, weighted, read):
    mu = cloud()
    assert read(diameter, mu) == pytest.approx(pdist(np.asarray(mu.points)).max(), rel=1e-14)
    mu = weighted()
    gram = np.asarray(mu.points @ mu.points.T)
    assert read(diameter, mu) == pytest.approx(np.arccos(gram.min()), rel=1e-12)


@pytest.mark.parametrize("width", [1e-9, 0.3, np.pi - 1e-9, np.pi])
def test_diameter_at_both_ends_of_the_range(width, read):
    mu = from_angles([0.2, 0.2 + width, 0.2 + width / 3])
    assert read(diameter, mu) == pytest.approx(width, rel=1e-6)


def test_order_parameter(read):
    assert read(order_parameter, from_angles(2 * np.pi * np.arange(7) / 7)) < 1e-15
    pair = from_angles([0.5, 0.5 + np.pi], weights=[0.9, 0.1])
    assert read(order_parameter, pair) == pytest.approx(0.8, rel=1e-14)


def test_effective_rank(read):
    orthonormal = equiangular(Sphere(6), 5)
    assert read(effective_rank, orthonormal) == pytest.approx(5.0, rel=1e-12)
    line = Measure(Euclidean(3), np.outer([1.0, -2.0, 0.5, 7.0], [1.0, 2.0, -1.0]))
    assert read(effective_rank, line) == pytest.approx(1.0, abs=1e-10)
    masses = np.array([0.5, 0.3, 0.2])
    axes = Measure(Sphere(3), np.eye(3), masses)
    assert read(effective_rank, axes) == pytest.approx(
        np.exp(-np.sum(masses * np.log(masses))), rel=1e-12
    )


@pytest.mark.parametrize(("n", "d"), [(5, 9), (9, 5)])
def test_effective_rank_from_singular_values(n, d, cloud, read):
    """Independent route, with more tokens than coordinates and the reverse."""
    mu = cloud(d=d, n=n)
    scaled = np.sqrt(np.asarray(mu.weights))[:, None] * np.asarray(mu.points)
    p = np.linalg.svd(scaled, compute_uv=False) ** 2
    p /= p.sum()
    expected = np.exp(-np.sum(p * np.log(p)))
    assert read(effective_rank, mu) == pytest.approx(expected, rel=1e-10)


def test_mean_radius(cloud, weighted, read):
    mu = cloud()
    norms = np.linalg.norm(np.asarray(mu.points), axis=-1)
    assert read(mean_radius, mu) == pytest.approx(norms @ np.asarray(mu.weights), rel=1e-14)
    assert read(mean_radius, weighted()) == pytest.approx(1.0, rel=1e-14)
    tokens = gaussian(Sphere(3), 8, seed=0, scale=2.0)
    expected = float(jnp.mean(tokens.radii))
    assert expected > 1.5
    assert read(mean_radius, tokens) == pytest.approx(expected, rel=1e-14)


def test_speed_of_two_tokens(read):
    """K1.15: phi' = -2 sin(phi)/(1 + e^{beta (1 - cos phi)}) is twice the speed of a token."""
    phi, beta = 1.1, 2.0
    mu = from_angles([0.3, 0.3 + phi])
    expected = np.sin(phi) / (1 + np.exp(beta * (1 - np.cos(phi))))
    assert read(speed, mu, SA(beta)) == pytest.approx(expected, rel=1e-12)
    usa = np.exp(beta * np.cos(phi)) * np.sin(phi) / 2
    assert read(speed, mu, USA(beta)) == pytest.approx(usa, rel=1e-12)


def test_speed_is_the_largest_and_knows_radii(read):
    """Masses 3:1: the light token moves 3 times faster under USA; pre-LN divides by the radius."""
    mu = from_angles([0.0, 0.8], weights=[3.0, 1.0])
    expected = 0.75 * np.exp(np.cos(0.8)) * np.sin(0.8)
    assert read(speed, mu, USA(1.0)) == pytest.approx(expected, rel=1e-13)
    far = mu.at(mu.points, jnp.array([1.0, 5.0]))
    pre = read(speed, far, USA(1.0, normalisation=PreLN()))
    assert pre == pytest.approx(max(expected / 3, expected / 5), rel=1e-13)


def test_speed_in_the_rescaled_frame(read):
    """z' = sum_j P_ij (z_j - z_i) for V = I: two tokens at the same place rest."""
    mu = Measure(Euclidean(2), [[1.0, 2.0], [1.0, 2.0]])
    assert read(speed, mu, RescaledSA(1.0), t=0.7) == pytest.approx(0.0, abs=1e-15)
    lab = Dynamics(Euclidean(2), Attention())
    assert read(speed, mu, lab) == pytest.approx(np.sqrt(5), rel=1e-14)


def test_min_alignment(weighted, read):
    mu, w = weighted(d=3), np.array([2.0, -1.0, 0.5])
    expected = (np.asarray(mu.points) @ (w / np.linalg.norm(w))).min()
    assert read(min_alignment(w), mu) == pytest.approx(expected, rel=1e-13)
    assert read(min_alignment([1.0, 0, 0]), hemisphere(Sphere(3), 20, seed=3)) > 0
    with pytest.raises(InputError, match="d=3"):
        read(min_alignment([1.0, 0.0]), mu)
    for wrong in ([0.0, 0.0], [[1.0, 0.0]], [np.inf, 0.0]):
        with pytest.raises(InputError, match="direction"):
            min_alignment(wrong)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_hull_of_a_simplex_with_tokens_inside(d, read):
    """Volume of conv{0, a_1 e_1, ..., a_d e_d} = prod a_k / d!."""
    edges = np.arange(1.0, d + 1)
    corners = np.vstack([np.zeros(d), np.diag(edges)])
    inside = np.random.default_rng(0).dirichlet(np.ones(d + 1), 10) @ corners
    mu = Measure(Euclidean(d), np.vstack([inside, corners]) + 3.0)
    expected = np.prod(edges) / math.factorial(d)
    assert read(convex_hull_volume, mu) == pytest.approx(expected, rel=1e-12)


def test_hull_of_flat_clouds_is_zero(read):
    plane = np.random.default_rng(1).normal(size=(12, 2)) @ [[1.0, 0.3, -0.2], [0.0, 1.0, 2.0]]
    assert read(convex_hull_volume, Measure(Euclidean(3), plane)) < 1e-12
    assert read(convex_hull_volume, Measure(Euclidean(3), np.eye(3))) == 0.0
    assert read(convex_hull_volume, Measure(Euclidean(2), np.ones((6, 2)))) == 0.0
    nan = Measure(Euclidean(2), np.eye(2)).at(jnp.full((5, 2), jnp.nan))
    assert np.isnan(read(convex_hull_volume, nan))


def test_hull_compiled_over_time_and_samples(read_batch):
    x = np.random.default_rng(2).uniform(size=(2, 3, 10, 2))
    volume = read_batch(convex_hull_volume, Measure(Euclidean(2), x))
    assert volume.shape == (2, 3)
    stretched = Measure(Euclidean(2), x * [2.0, 3.0])
    scaled = read_batch(convex_hull_volume, stretched)
    np.testing.assert_allclose(scaled, 6 * volume, rtol=1e-12)
    assert len(np.unique(np.asarray(volume))) == 6


def test_hull_refuses_spheres_and_high_dimension(weighted, cloud, read):
    with pytest.raises(InputError, match="R\\^d"):
        read(convex_hull_volume, weighted())
    with pytest.raises(InputError, match="out of reach"):
        read(convex_hull_volume, cloud(d=9))
