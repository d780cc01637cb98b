"""Clusters against scipy's connected components, on random, chain and ring data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from tokenflock.connected_components import component_labels
from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles
from tokenflock.observables import (
    cluster_centres,
    cluster_labels,
    cluster_masses,
    cluster_sizes,
    clusters,
    make,
)
from tokenflock.space import Euclidean, Sphere
from tokenflock.starts import uniform

RNG = np.random.default_rng(11)


def smallest_index(adjacency):
    """Oracle: label of a token = smallest index of its component."""
    _, labels = connected_components(adjacency, directed=False)
    first = np.array([np.flatnonzero(labels == q)[0] for q in range(labels.max() + 1)])
    return first[labels]


def shuffled(adjacency):
    order = RNG.permutation(len(adjacency))
    return adjacency[np.ix_(order, order)]


def chain(n):
    return np.eye(n, dtype=bool) | np.eye(n, k=1, dtype=bool) | np.eye(n, k=-1, dtype=bool)


def ring(n):
    closed = chain(n)
    closed[0, -1] = closed[-1, 0] = True
    return closed


def random_graph(n, degree):
    upper = np.triu(RNG.random((n, n)) < degree / n, 1)
    return upper | upper.T | np.eye(n, dtype=bool)


def star(n):
    graph = np.eye(n, dtype=bool)
    graph[-1] = graph[:, -1] = True
    return graph


GRAPHS = {
    "no edges": np.eye(9, dtype=bool),
    "two tokens": np.ones((2, 2), dtype=bool),
    "chain": chain(200),
    "reversed chain": chain(200)[::-1, ::-1],
    "shuffled chain": shuffled(chain(300)),
    "shuffled ring": shuffled(ring(300)),
    "shuffled star": shuffled(star(50)),
    "star with the last token in the middle": star(50),
    "sparse": random_graph(200, 0.7),
    "critical": random_graph(300, 1.0),
    "dense": random_graph(60, 8.0),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_match_scipy(name):
    graph = np.ascontiguousarray(GRAPHS[name])
    labels = jax.jit(component_labels)(jnp.asarray(graph))
    np.testing.assert_array_equal(labels, smallest_index(graph))


def test_labels_over_a_batch():
    graphs = np.stack([shuffled(chain(64)), random_graph(64, 1.0), np.eye(64, dtype=bool)])
    labels = jax.jit(jax.vmap(component_labels))(jnp.asarray(graphs))
    for got, graph in zip(labels, graphs, strict=True):
        np.testing.assert_array_equal(got, smallest_index(graph))


@pytest.mark.parametrize("angle", [0.05, 0.3, 0.6, 2.5])
def test_clusters_on_the_sphere(angle, read):
    """Angles by arccos are good enough away from the threshold, on random data."""
    mu = uniform(Sphere(3), 60, seed=5)
    gram = np.clip(np.asarray(mu.points @ mu.points.T), -1, 1)
    count, labels = connected_components(np.arccos(gram) <= angle, directed=False)
    assert read(clusters(angle=angle), mu) == count
    np.testing.assert_array_equal(read(cluster_labels(angle=angle), mu), labels)


def test_clusters_in_euclidean_space(cloud, read):
    mu = cloud(d=3, n=40)
    near = squareform(pdist(np.asarray(mu.points))) <= 1.5
    count, labels = connected_components(near, directed=False)
    assert 1 < count < 40
    assert read(clusters(distance=1.5), mu) == count
    np.testing.assert_array_equal(read(cluster_labels(distance=1.5), mu), labels)


def test_threshold_below_what_the_gram_matrix_resolves(read):
    """Tokens 2e-9 apart are two clusters at 1e-9; 1 - <x,y> is exactly 0 for them."""
    mu = from_angles([0.3, 0.3 + 2e-9, 2.0])
    assert float(1 - mu.points[0] @ mu.points[1]) < 1e-15
    assert read(clusters(angle=1e-9), mu) == 3
    assert read(clusters(angle=4e-9), mu) == 2


def test_clusters_are_single_linkage(read):
    """A chain of small steps is one cluster however long it is."""
    mu = from_angles(np.linspace(0.0, 2.0, 41))
    assert read(clusters(angle=0.051), mu) == 1
    assert read(clusters(angle=0.049), mu) == 41


GROUPS = from_angles([0.0, 2.0, 0.02, -0.01, 2.04, 4.0], weights=[1.0, 6.0, 2.0, 3.0, 5.0, 0.5])


def test_sizes_masses_and_centres_are_listed_by_mass(read):
    np.testing.assert_array_equal(
        read(cluster_sizes(angle=0.1, largest=5), GROUPS), [2, 3, 1, 0, 0]
    )
    masses = np.array([11, 6, 0.5, 0, 0]) / 17.5
    np.testing.assert_allclose(
        read(cluster_masses(angle=0.1, largest=5), GROUPS), masses, rtol=1e-14
    )
    centres = read(cluster_centres(angle=0.1, largest=4), GROUPS)
    heavy = 6 * np.exp(2j) + 5 * np.exp(2.04j)
    middle = 1 + 2 * np.exp(0.02j) + 3 * np.exp(-0.01j)
    expected = [heavy / abs(heavy), middle / abs(middle), np.exp(4j)]
    np.testing.assert_allclose(centres[:3] @ [1, 1j], expected, atol=1e-14)
    assert np.all(np.isnan(centres[3]))


def test_fewer_tokens_than_listed_and_fewer_listed_than_found(read):
    np.testing.assert_array_equal(
        read(cluster_sizes(angle=0.1, largest=9), GROUPS)[3:], np.zeros(6)
    )
    np.testing.assert_array_equal(read(cluster_sizes(angle=0.1, largest=1), GROUPS), [2])
    assert read(cluster_centres(angle=0.1, largest=9), GROUPS).shape == (9, 2)


def test_euclidean_centres_are_means(read):
    mu = Measure(Euclidean(1), [[0.0], [5.0], [0.4], [5.2]], [1.0, 1.0, 3.0, 2.0])
    centres = read(cluster_centres(distance=0.5, largest=2), mu)
    np.testing.assert_allclose(centres, [[0.3], [15.4 / 3]], rtol=1e-14)


def test_over_time_and_samples_under_jit(read_batch):
    x = uniform(Sphere(3), 30, seed=1, samples=(2, 4))
    batched = read_batch(clusters(angle=0.5), x)
    assert batched.shape == (2, 4)
    for index in np.ndindex(2, 4):
        gram = np.clip(np.asarray(x.points[index] @ x.points[index].T), -1, 1)
        count, _ = connected_components(np.arccos(gram) <= 0.5, directed=False)
        assert batched[index] == count


def test_the_threshold_must_be_stated_and_fit_the_space(cloud, weighted, read):
    for wrong in ({}, {"angle": 0.1, "distance": 0.1}):
        with pytest.raises(InputError, match="state what a cluster is"):
            clusters(**wrong)
    for wrong in ({"angle": 0.0}, {"angle": 4.0}, {"distance": -1.0}):
        with pytest.raises(InputError, match="cluster"):
            clusters(**wrong)
    with pytest.raises(InputError, match="angle="):
        read(clusters(distance=0.1), weighted())
    with pytest.raises(InputError, match="distance="):
        read(cluster_sizes(angle=0.1), cloud())
    for largest in (0, 10**12):
        with pytest.raises(InputError, match="largest must be a whole number from 1 to 100000"):
            cluster_sizes(angle=0.1, largest=largest)
    with pytest.raises(InputError, match=r"clusters needs a number for angle, got \[0.1\]"):
        make("clusters", angle=[0.1])
    assert make("clusters", angle=0.1) == clusters(angle=0.1)


def test_the_angle_is_said_in_the_output():
    assert clusters(angle=0.25).attributes["angle"] == 0.25
    assert clusters(distance=0.25).attributes["distance"] == 0.25
