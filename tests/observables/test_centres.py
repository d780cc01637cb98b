"""Rényi and strong centres: loops, geometry, and their expected numbers (K4.4)."""

import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles
from tokenflock.observables import (
    renyi_centre_mask,
    renyi_centres,
    strong_centre_mask,
    strong_centres,
)
from tokenflock.space import Sphere
from tokenflock.starts import uniform


def by_loops(distance, delta):
    """The definitions, token by token."""
    renyi, strong = [], []
    for i in range(len(distance)):
        renyi.append(all(distance[i, j] > delta for j in range(i) if renyi[j]))
        strong.append(all(distance[i, j] > delta for j in range(i)))
    return renyi, strong


@pytest.mark.parametrize("delta", [0.2, 0.7, 2.5])
def test_masks_on_the_sphere(delta, weighted, read):
    mu = weighted(d=3, n=40)
    gram = np.clip(np.asarray(mu.points @ mu.points.T), -1, 1)
    renyi, strong = by_loops(np.arccos(gram), delta)
    np.testing.assert_array_equal(read(renyi_centre_mask(delta), mu), renyi)
    np.testing.assert_array_equal(read(strong_centre_mask(delta), mu), strong)
    assert read(renyi_centres(delta), mu) == sum(renyi)
    assert read(strong_centres(delta), mu) == sum(strong)


def test_masks_in_euclidean_space(cloud, read):
    mu = cloud(d=2, n=30)
    x = np.asarray(mu.points)
    renyi, strong = by_loops(np.linalg.norm(x[:, None] - x[None], axis=-1), 0.9)
    assert sum(renyi) > sum(strong) > 1
    np.testing.assert_array_equal(read(renyi_centre_mask(0.9), mu), renyi)
    np.testing.assert_array_equal(read(strong_centre_mask(0.9), mu), strong)


def test_the_two_definitions_differ_and_depend_on_order(read):
    """0, 0.6, 1.2 at distance 1: the third is far from the first, a centre, but near the second."""
    forth = from_angles([0.0, 0.6, 1.2])
    assert read(renyi_centres(1.0), forth) == 2
    assert read(strong_centres(1.0), forth) == 1
    back = from_angles([0.6, 0.0, 1.2])
    assert read(renyi_centres(1.0), back) == 1


def test_order_and_distance_are_checked(weighted, read):
    mu = weighted()
    unordered = Measure(mu.space, mu.points, ordered=False)
    for observable in (renyi_centres(0.1), strong_centre_mask(0.1)):
        with pytest.raises(InputError, match="order"):
            read(observable, unordered)
    with pytest.raises(InputError, match="positive"):
        renyi_centres(0.0)
    with pytest.raises(InputError, match="below pi"):
        read(strong_centres(3.5), mu)


def expected_strong(mass, n):
    """Token k+1 is a strong centre with probability (1-m)^k."""
    return (1 - (1 - mass) ** n) / mass


@pytest.mark.parametrize(
    ("d", "delta", "n"), [(2, 0.3, 60), (2, 0.3, 12), (3, 0.5, 80)], ids=["circle", "few", "S2"]
)
def test_expected_number_of_strong_centres(d, delta, n, read_batch):
    """2411.04990, lemma C.1, for finite n: m = delta/pi on the circle, sin^2(delta/2) on S^2."""
    mass = delta / np.pi if d == 2 else np.sin(delta / 2) ** 2
    found = read_batch(strong_centres(delta), uniform(Sphere(d), n, seed=1, samples=600))
    error = found.std() / np.sqrt(found.size)
    assert abs(found.mean() - expected_strong(mass, n)) < 3.5 * error
    assert error < 0.02 * found.mean()


def test_renyi_parking_constant(read_batch):
    """Many tokens saturate the circle at 0.7475979 * 2 pi/delta centres, up to a few per mille."""
    found = read_batch(renyi_centres(0.4), uniform(Sphere(2), 600, seed=2, samples=200))
    assert found.mean() == pytest.approx(0.7475979 * 2 * np.pi / 0.4, rel=0.015)


@pytest.mark.slow
def test_centres_at_the_size_of_the_paper(read_batch):
    """K4.4: delta = 0.1; 31.42 strong centres of 600 tokens, 46.97 Rényi centres of 6000."""
    strong = read_batch(strong_centres(0.1), uniform(Sphere(2), 600, seed=3, samples=400))
    error = strong.std() / np.sqrt(strong.size)
    assert abs(strong.mean() - expected_strong(0.1 / np.pi, 600)) < 3 * error
    renyi = read_batch(renyi_centres(0.1), uniform(Sphere(2), 6000, seed=4, samples=60))
    assert renyi.mean() == pytest.approx(46.97, abs=0.4)
