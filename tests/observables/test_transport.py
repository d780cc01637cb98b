"""W2 and Sinkhorn divergence against permutations, quantiles and a plain Sinkhorn loop."""

import itertools

import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.measure import Measure, from_angles
from tokenflock.observables import sinkhorn_divergence, w2
from tokenflock.observables.transport import _program
from tokenflock.space import Euclidean, Sphere
from tokenflock.starts import uniform

RNG = np.random.default_rng(3)


def angles(x, y):
    return np.arccos(np.clip(np.asarray(x) @ np.asarray(y).T, -1, 1))


def test_assignment_is_the_best_permutation(read):
    mu, nu = uniform(Sphere(3), 6, seed=0), uniform(Sphere(3), 6, seed=1)
    cost = angles(mu.points, nu.points) ** 2
    best = min(np.mean([cost[i, p[i]] for i in range(6)]) for p in itertools.permutations(range(6)))
    assert read(w2(nu), mu) == pytest.approx(np.sqrt(best), rel=1e-10)


def test_permuted_tokens_are_at_distance_zero_and_turned_ones_at_the_angle(read):
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
def test_weighted_tokens_on_the_line(n, m, read):
    x, y = RNG.normal(size=n), RNG.normal(size=m) + 1
    a, b = RNG.dirichlet(np.ones(n)), RNG.dirichlet(np.ones(m))
    mu, nu = Measure(Euclidean(1), x[:, None], a), Measure(Euclidean(1), y[:, None], b)
    assert read(w2(nu), mu) == pytest.approx(quantile_distance(x, a, y, b), rel=1e-8)


def test_program_agrees_with_assignment_for_equal_weights(read):
    """Doubling the tokens of one side takes the other route and changes nothing."""
    mu, nu = uniform(Sphere(3), 10, seed=0), uniform(Sphere(3), 10, seed=1)
    doubled = Measure(Sphere(3), np.repeat(np.asarray(nu.points), 2, axis=0))
    assert read(w2(doubled), mu) == pytest.approx(read(w2(nu), mu), rel=1e-9)


def test_w2_compiled_over_time_and_samples(read, read_batch):
    x, nu = uniform(Sphere(3), 8, seed=4, samples=(2, 3)), uniform(Sphere(3), 8, seed=5)
    observable = w2(nu)
    batch = read_batch(observable, x)
    for index in np.ndindex(2, 3):
        one = read(observable, x.at(x.points[index]))
        assert batch[index] == pytest.approx(one, rel=1e-12)


def test_too_many_tokens_are_refused_with_advice(read):
    mu = uniform(Sphere(3), 600, seed=0)
    with pytest.raises(InputError, match="sinkhorn_divergence"):
        read(w2(mu), mu)
    with pytest.raises(InputError, match="sinkhorn_divergence"):
        read(w2(uniform(Sphere(3), 300, seed=0)), uniform(Sphere(3), 200, seed=1))
    mild = uniform(Sphere(3), 200, seed=0)
    assert read(w2(mild), mild) == 0.0
    uneven = Measure(Sphere(3), mild.points, np.arange(1.0, 201.0))
    with pytest.raises(Exception, match="sinkhorn_divergence"):
        read(w2(uneven), mild)


def test_on_the_circle_any_number_of_weighted_tokens_is_sorted(read, read_batch):
    """Against the linear program where that is small; 3,000 turned by 0.2 where nothing else can."""
    mu = from_angles(RNG.normal(2.5, 0.8, 12), RNG.uniform(0.1, 1.0, 12))
    nu = from_angles(RNG.uniform(-4, 4, 9), RNG.uniform(0.1, 1.0, 9))
    cost = angles(mu.points, nu.points) ** 2
    program = _program(cost, np.asarray(mu.weights), np.asarray(nu.weights))
    assert read(w2(nu), mu) == pytest.approx(np.sqrt(program), abs=1e-8)
    theta = RNG.uniform(-1, 1, 3000)
    many, turned = from_angles(theta), from_angles(np.flip(theta) + 0.2)
    assert read(w2(turned), many) == pytest.approx(0.2, rel=1e-12)
    batch = uniform(Sphere(2), 5, seed=1, samples=2)
    found = read_batch(w2(nu), batch)
    assert found[1] == pytest.approx(float(read(w2(nu), batch.at(batch.points[1]))), rel=1e-12)


def test_targets_are_checked(weighted, cloud, read):
    with pytest.raises(InputError, match="lives on"):
        read(w2(cloud(d=4)), weighted(d=4))
    with pytest.raises(InputError, match="lives on"):
        read(w2(weighted(d=3)), weighted(d=4))
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


def test_divergence_against_a_plain_loop(weighted, read):
    mu, nu, epsilon = weighted(d=3, n=7), weighted(d=3, n=9, seed=5), 0.4
    parts = [
        plain_sinkhorn(
            angles(p.points, q.points) ** 2, *map(np.asarray, (p.weights, q.weights)), epsilon
        )
        for p, q in ((mu, nu), (mu, mu), (nu, nu))
    ]
    expected = parts[0] - parts[1] / 2 - parts[2] / 2
    assert read(sinkhorn_divergence(nu, epsilon), mu) == pytest.approx(expected, rel=1e-5)


def test_divergence_of_a_translate_is_exact(cloud, read):
    """S_eps(mu, mu + v) = |v|^2 in R^d for every eps: the bias of OT_eps cancels."""
    mu, v = cloud(d=3, n=7), np.array([0.3, -1.0, 0.7])
    moved = mu.at(mu.points[::-1] + v)
    target = Measure(mu.space, moved.points, np.asarray(mu.weights)[::-1])
    assert read(sinkhorn_divergence(target, 5.0), mu) == pytest.approx(v @ v, rel=1e-5)


def test_divergence_vanishes_at_the_target_and_is_near_w2_squared(read):
    mu, nu = uniform(Sphere(3), 12, seed=0), uniform(Sphere(3), 12, seed=1)
    away = sinkhorn_divergence(nu, 0.1)
    assert read(away, nu) == pytest.approx(0.0, abs=1e-7)
    assert read(away, mu) == pytest.approx(read(w2(nu), mu) ** 2, rel=5e-3)


def test_divergence_compiled_over_samples(read, read_batch):
    x, nu = uniform(Sphere(3), 12, seed=4, samples=3), uniform(Sphere(3), 12, seed=5)
    observable = sinkhorn_divergence(nu, 0.1)
    batch = read_batch(observable, x)
    assert batch[1] == pytest.approx(read(observable, x.at(x.points[1])), rel=1e-5)
    assert np.all(batch > 0)
