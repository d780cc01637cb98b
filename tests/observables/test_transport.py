"""W2 and Sinkhorn divergence against permutations, quantiles and a plain Sinkhorn loop."""

import itertools

import jax
import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles, uniform
from tokenflock.observables import sinkhorn_divergence, w2
from tokenflock.space import Euclidean, Sphere

RNG = np.random.default_rng(3)


def angles(x, y):
    return np.arccos(np.clip(np.asarray(x) @ np.asarray(y).T, -1, 1))


def test_assignment_is_the_best_permutation(snapshot):
    mu, nu = uniform(Sphere(3), 6, seed=0), uniform(Sphere(3), 6, seed=1)
    cost = angles(mu.points, nu.points) ** 2
    best = min(np.mean([cost[i, p[i]] for i in range(6)]) for p in itertools.permutations(range(6)))
    assert read(w2(nu), mu) == pytest.approx(np.sqrt(best), rel=1e-10)


def test_permuted_tokens_are_at_distance_zero_and_turned_ones_at_the_angle(snapshot):
    theta = RNG.uniform(0, 0.5, 9)
    mu, turned = from_angles(theta), from_angles(theta[::-1] + 0.3)
    assert read(w2(from_angles(theta[::-1])), mu) == 0.0
    assert read(w2(turned), mu) == pytest.approx(0.3, rel=1e-12)


def quantile_distance(x, a, y, b):
    """W2 on the line from the two quantile functions, integrated exactly."""
    i, j = np.argsort(x), np.argsort(y)
    levels = np.unique(np.concatenate([[0.0], np.cumsum(a[i]), np.cumsum(b[j])]))
    middle, width = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    left = x[i][np.minimum(np.searchsorted(np.cumsum(a[i]), middle), len(x) - 1)]
    right = y[j][np.minimum(np.searchsorted(np.cumsum(b[j]), middle), len(y) - 1)]
    return np.sqrt(np.sum(width * (left - right) ** 2))


@pytest.mark.parametrize(("n", "m"), [(5, 8), (7, 7), (12, 3)])
def test_weighted_tokens_on_the_line(n, m, snapshot):
    x, y = RNG.normal(size=n), RNG.normal(size=m) + 1
    a, b = RNG.dirichlet(np.ones(n)), RNG.dirichlet(np.ones(m))
    mu, nu = Measure(Euclidean(1), x[:, None], a), Measure(Euclidean(1), y[:, None], b)
    assert read(w2(nu), mu) == pytest.approx(quantile_distance(x, a, y, b), rel=1e-8)


def test_program_agrees_with_assignment_for_equal_weights(snapshot):
    """Doubling the tokens of one side takes the other route and changes nothing."""
    mu, nu = uniform(Sphere(3), 10, seed=0), uniform(Sphere(3), 10, seed=1)
    doubled = Measure(Sphere(3), np.repeat(np.asarray(nu.points), 2, axis=0))
    assert read(w2(doubled), mu) == pytest.approx(read(w2(nu), mu), rel=1e-9)


def test_w2_compiled_over_time_and_samples(snapshot):
    x, nu = uniform(Sphere(3), 8, seed=4, samples=(2, 3)), uniform(Sphere(3), 8, seed=5)
    observable = w2(nu)
    batch = jax.jit(jax.vmap(jax.vmap(lambda p: observable(snapshot(x.at(p))))))(x.points)
    for index in np.ndindex(2, 3):
        one = read(observable, x.at(x.points[index]))
        assert batch[index] == pytest.approx(one, rel=1e-12)


def test_too_many_tokens_are_refused_with_advice(snapshot):
    mu = uniform(Sphere(2), 600, seed=0)
    with pytest.raises(InputError, match="sinkhorn_divergence"):
        read(w2(mu), mu)
    with pytest.raises(InputError, match="sinkhorn_divergence"):
        read(w2(uniform(Sphere(2), 300, seed=0)), uniform(Sphere(2), 200, seed=1))
    mild = uniform(Sphere(2), 200, seed=0)
    assert read(w2(mild), mild) == 0.0
    uneven = Measure(Sphere(2), mild.points, np.arange(1.0, 201.0))
    with pytest.raises(Exception, match="sinkhorn_divergence"):
        read(w2(uneven), mild).block_until_ready()


def test_targets_are_checked(weighted, cloud, snapshot):
    with pytest.raises(InputError, match="lives on"):
        read(w2(cloud(d=4)), weighted(d=4))
    with pytest.raises(InputError, match="lives on"):
        read(sinkhorn_divergence(weighted(d=3), 0.1), weighted(d=4))
    with pytest.raises(InputError, match="one measure"):
        w2(weighted(samples=2))
    with pytest.raises(InputError, match="epsilon"):
        sinkhorn_divergence(weighted(), 0.0)


def plain_sinkhorn(cost, a, b, epsilon):
    """min <P,C> + eps KL(P | a b^T) by alternating scalings."""
    kernel = np.exp(-cost / epsilon)
    u = np.ones_like(a)
    for _ in range(5000):
        v = 1.0 / (kernel.T @ (a * u))
        u = 1.0 / (kernel @ (b * v))
    plan = (a * u)[:, None] * kernel * (b * v)[None, :]
    return np.sum(plan * cost) + epsilon * np.sum(plan * np.log(plan / np.outer(a, b)))


def test_divergence_against_a_plain_loop(weighted, snapshot):
    mu, nu, epsilon = weighted(d=3, n=7), weighted(d=3, n=9, seed=5), 0.4
    parts = [
        plain_sinkhorn(
            angles(p.points, q.points) ** 2, *map(np.asarray, (p.weights, q.weights)), epsilon
        )
        for p, q in ((mu, nu), (mu, mu), (nu, nu))
    ]
    expected = parts[0] - parts[1] / 2 - parts[2] / 2
    assert read(sinkhorn_divergence(nu, epsilon), mu) == pytest.approx(expected, rel=1e-5)


def test_divergence_vanishes_at_the_target_and_tends_to_w2_squared(snapshot):
    mu, nu = uniform(Sphere(3), 12, seed=0), uniform(Sphere(3), 12, seed=1)
    assert read(sinkhorn_divergence(mu, 0.2), mu) == pytest.approx(0.0, abs=1e-7)
    exact = float(read(w2(nu), mu)) ** 2
    errors = [
        abs(float(read(sinkhorn_divergence(nu, epsilon), mu)) - exact)
        for epsilon in (0.3, 0.02)
    ]
    assert errors[1] < 0.02 * exact
    assert errors[1] < errors[0]


def test_divergence_compiled_over_samples(snapshot):
    x, nu = uniform(Sphere(3), 8, seed=4, samples=3), uniform(Sphere(3), 5, seed=5)
    observable = sinkhorn_divergence(nu, 0.3)
    batch = jax.jit(jax.vmap(lambda p: observable(snapshot(x.at(p)))))(x.points)
    one = read(observable, x.at(x.points[1]))
    assert batch[1] == pytest.approx(one, rel=1e-6)
    assert np.all(np.asarray(batch) > 0)
