"""Gram histogram and pair fraction against loops over pairs."""

import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles
from tokenflock.observables import gram_histogram, pair_fraction
from tokenflock.space import Euclidean


def pairs(mu):
    """(<x_i, x_j>, w_i w_j) over i != j, weights normalised."""
    x, w = np.asarray(mu.points), np.asarray(mu.weights)
    found = [(x[i] @ x[j], w[i] * w[j]) for i in range(mu.n) for j in range(mu.n) if i != j]
    values, weights = np.array(found).T
    return values, weights / weights.sum()


def test_pair_fraction_counts_weighted_pairs(weighted, read):
    mu = weighted(d=3, n=25)
    values, weights = pairs(mu)
    for delta in (0.05, 0.3, 1.2):
        expected = weights[values >= 1 - delta].sum()
        assert 0 < expected < 1
        assert read(pair_fraction(delta), mu) == pytest.approx(expected, rel=1e-12)


def test_pair_fraction_of_equal_tokens_is_a_count(read):
    """Of three close tokens the middle one is near both ends, which are apart: 2 pairs of 10."""
    mu = from_angles([0.0, 0.04, 0.08, 2.0, 4.0])
    assert read(pair_fraction(1e-3), mu) == pytest.approx(2 / 10, rel=1e-14)
    assert read(pair_fraction(4e-3), mu) == pytest.approx(3 / 10, rel=1e-14)


def test_pair_fraction_resolves_tiny_delta(read):
    """Angle 1e-8 means 1 - <x,y> = 5e-17, which the Gram matrix rounds to 0 or 1.1e-16."""
    mu = from_angles([1.0, 1.0 + 1e-8, 3.0])
    assert read(pair_fraction(4e-17), mu) == 0.0
    assert read(pair_fraction(6e-17), mu) == pytest.approx(1 / 3)


def test_pair_fraction_needs_a_sphere(cloud, read):
    with pytest.raises(InputError, match="sphere"):
        read(pair_fraction(), cloud())
    with pytest.raises(InputError, match="delta"):
        pair_fraction(0.0)


def test_gram_histogram_matches_numpy(weighted, read):
    mu = weighted(d=3, n=25)
    values, weights = pairs(mu)
    expected, edges = np.histogram(values, bins=20, range=(-1, 1), weights=weights)
    observable = gram_histogram(bins=20)
    np.testing.assert_allclose(read(observable, mu), expected, atol=1e-14)
    np.testing.assert_allclose(observable.coords["inner_product"], (edges[1:] + edges[:-1]) / 2)


def test_gram_histogram_leaves_the_diagonal_out_and_keeps_rounded_ends(read):
    """Coincident and antipodal tokens fill the two end bins, whatever rounding does to +-1."""
    angle = 0.7123456
    mu = from_angles([angle, angle, angle + np.pi])
    histogram = read(gram_histogram(bins=4), mu)
    np.testing.assert_allclose(histogram, [2 / 3, 0, 0, 1 / 3], atol=1e-15)


def test_gram_histogram_in_euclidean_space_drops_what_is_outside(read):
    mu = Measure(Euclidean(1), [[1.0], [2.0], [-3.0]])
    histogram = read(gram_histogram(bins=2, low=-4.0, high=2.0), mu)
    np.testing.assert_allclose(histogram, [1 / 3, 1 / 3], atol=1e-15)  # -3 and 2; -6 is outside


def test_histogram_compiled_over_samples(weighted, read_batch):
    mu = weighted(d=3, n=9, samples=4)
    observable = gram_histogram(bins=7, low=-0.5, high=0.5)
    batched = read_batch(observable, mu)
    for k in range(4):
        values, weights = pairs(mu.at(mu.points[k]))
        expected, _ = np.histogram(values, bins=7, range=(-0.5, 0.5), weights=weights)
        np.testing.assert_allclose(batched[k], expected, atol=1e-14)
    with pytest.raises(InputError, match="bins"):
        gram_histogram(bins=0)
    with pytest.raises(InputError, match="low"):
        gram_histogram(low=1.0)
