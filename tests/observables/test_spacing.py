"""Linking angles that scale with the spacing of uniform tokens, against simulation by scipy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

import tokenflock as flock
from tokenflock.observables.base import Snapshot
from tokenflock.theory import cap_mass, means_something, spacing_angle, uniform_clusters
from tokenflock.theory.spacing import WIDEST_LINK

RNG = np.random.default_rng(10)


def simulated(n, d, angle, draws):
    """Numbers of clusters of n uniform tokens, by a tree of points instead of all pairs."""
    counts = []
    for _ in range(draws):
        x = RNG.normal(size=(n, d))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        i, j = KDTree(x).query_pairs(2 * np.sin(angle / 2), output_type="ndarray").T
        links = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
        counts.append(connected_components(links)[0])
    return np.asarray(counts, dtype=float)


def five_errors(counts):
    """Five standard errors of the mean: a false alarm once in 1.7 million."""
    return 5 * max(np.std(counts), 0.5) / np.sqrt(counts.size)


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize(("n", "draws"), [(8, 300), (64, 200), (1500, 30)])
def test_uniform_tokens_stay_many_clusters(n, d, draws):
    angle = float(spacing_angle(n, d))
    neighbours = (n - 1) * float(cap_mass(angle, d))
    assert neighbours == pytest.approx(0.5) if angle < WIDEST_LINK else neighbours <= 0.5
    counts = simulated(n, d, angle, draws)
    expected = float(uniform_clusters(n, d, angle))
    assert np.mean(counts) >= 0.75 * n - five_errors(counts)
    assert abs(np.mean(counts) - expected) <= five_errors(counts) + (0 if d == 2 else 0.03 * n)
    if n > 64:
        assert np.min(counts) > 0.7 * n


@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_count_of_uniform_tokens_lies_between_the_random_graph_and_the_circle(d):
    n = 400
    for neighbours in (0.5, 1.0, 2.0, 4.0, 7.0):
        angle = float(np.arccos(1 - 2 * neighbours / (n - 1))) if d == 3 else None
        if angle is None:
            angles = np.linspace(1e-4, np.pi / 2, 20001)
            angle = float(np.interp(neighbours, (n - 1) * cap_mass(angles, d), angles))
        counts = simulated(n, d, angle, 40)
        least = float(uniform_clusters(n, d, angle))
        slack = five_errors(counts) + 1
        assert least - slack <= np.mean(counts) <= n * np.exp(-neighbours / 2) + slack
        if d == 2:
            assert abs(np.mean(counts) - least) <= slack


def test_where_uniform_tokens_are_one_cluster_a_count_means_nothing():
    for n, d in ((1000, 2), (4096, 3)):
        assert not means_something(n, d, 0.1)
        assert means_something(n, d, spacing_angle(n, d))
        assert np.max(simulated(n, d, 0.1, 3)) <= 4
    assert means_something(64, 3, 0.1)
    assert means_something(2, 2, 0.1)


def snapshot(mu):
    return Snapshot(jnp.zeros(()), mu, flock.SA(1.0), flock.Dense())


def test_the_rule_counts_and_records():
    circle = flock.uniform(flock.Sphere(2), n=1000, seed=0)
    fixed, scaled = flock.clusters(angle=0.1), flock.clusters(link="spacing")
    assert int(fixed(snapshot(circle))) == 1
    assert int(scaled(snapshot(circle))) == int(
        flock.clusters(angle=float(spacing_angle(1000, 2)))(snapshot(circle))
    )
    assert 700 < int(scaled(snapshot(circle))) < 860
    recorded = scaled.attributes_on(circle)
    assert recorded["link"] == "spacing"
    assert recorded["angle"] == pytest.approx(np.pi / 2 / 999)
    assert recorded["meaningful"]
    assert recorded["uniform_clusters"] == pytest.approx(1000 * np.exp(-0.25), rel=1e-3)
    lost = fixed.attributes_on(circle)
    assert not lost["meaningful"]
    assert lost["angle"] == 0.1
    assert "1000 uniform tokens on S^1 would make about 1 cluster" in lost["note"]
    masses = flock.observables.cluster_masses(link="spacing", largest=3)(snapshot(circle))
    assert np.sum(masses) < 0.05


def test_weights_do_not_change_the_angle():
    points = flock.uniform(flock.Sphere(2), n=50, seed=1).points
    weighted = flock.Measure(flock.Sphere(2), points, RNG.uniform(0.1, 1.0, 50))
    even = flock.Measure(flock.Sphere(2), points)
    rule = flock.clusters(link="spacing")
    assert int(rule(snapshot(weighted))) == int(rule(snapshot(even)))
    assert rule.attributes_on(weighted) == rule.attributes_on(even)


def test_refusals():
    with pytest.raises(flock.errors.InputError, match="in one way"):
        flock.clusters(angle=0.1, link="spacing")
    with pytest.raises(flock.errors.InputError, match="link must be 'spacing', got 'knn'"):
        flock.clusters(link="knn")
    flat = flock.gaussian(flock.Euclidean(2), 5, seed=0)
    with pytest.raises(flock.errors.InputError, match="give distance"):
        flock.clusters(link="spacing")(snapshot(flat))
    with pytest.raises(flock.errors.InputError, match="in one way"):
        flock.at_clusters(1)
    assert flock.clusters(distance=0.1).attributes_on(flat)["distance"] == 0.1


def test_a_run_keeps_what_was_used(tmp_path):
    """In the store, in observables read later, and in what stops a run."""
    x0 = flock.uniform(flock.Sphere(2), n=300, seed=2)
    wide = flock.clusters(angle=0.1).named("wide")
    run = flock.solve(
        *(flock.SA(1.0), x0),
        t1=0.1,
        dt=0.05,
        save=flock.Save(every=0.1, observe=[flock.clusters(link="spacing"), wide], states=True),
        stop=flock.at_clusters(2, link="spacing"),
    )
    assert run.outcome == "finished"
    again = flock.open(run.save(tmp_path / "run.zarr"))
    assert again["clusters"].attrs["angle"] == pytest.approx(np.pi / 2 / 299)
    assert again["clusters"].attrs["link"] == "spacing"
    assert set(again.notes) == {"wide"}
    assert again["final_time"].attrs["angle"] == pytest.approx(np.pi / 2 / 299)
    assert not again["wide"].attrs["meaningful"]
    assert again.observe(flock.clusters(link="spacing")).attrs["angle"] == pytest.approx(
        np.pi / 2 / 299
    )


def test_a_stop_at_a_count_that_means_nothing_says_so():
    x0 = flock.uniform(flock.Sphere(2), n=300, seed=2)
    run = flock.solve(flock.SA(1.0), x0, 0.1, dt=0.05, stop=flock.at_clusters(1, angle=0.1))
    assert set(run.notes) == {"final_time"}
    assert run.notes["final_time"].startswith(
        "stop at 1 cluster left: the count means nothing: 300"
    )
    apart = flock.solve(flock.SA(1.0), x0, 0.1, dt=0.05, stop=flock.at_clusters(1, angle=1e-4))
    assert apart.notes == {}
