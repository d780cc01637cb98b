"""Leaders of hardmax attention: the examples of 2407.01602, and followers that collapse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.dynamics import Particles
from tokenflock.errors import InputError
from tokenflock.measure import Measure, padded
from tokenflock.models import SA, HardmaxFlow
from tokenflock.observables import leader_mask, leaders
from tokenflock.reduce import Dense
from tokenflock.space import Euclidean
from tokenflock.weights import Weights

EMERGING = np.array(
    [
        [1, 1 / 3],
        [-1 / 12, 1 / 12],
        [-1, -1],
        [0, 1 / 4],
        [-0.3, -0.7],
        [-0.6, -0.9],
        [0.8, 0.1],
        [0.6, 0.15],
    ]
)
SQUARE = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.5, 0], [0.5, 0]], dtype=float)


def layers(points, count, alpha=0.5, model=None):
    """Token positions after 0, 1, ..., count hardmax layers (z + alpha mean)/(1 + alpha)."""
    model = HardmaxFlow() if model is None else model
    mu = Measure(Euclidean(2), points)

    @jax.jit
    def layer(z):
        return model.layer(0.0, Particles(z), mu, alpha / (1 + alpha), Dense()).points

    path = [mu.points]
    for _ in range(count):
        path.append(layer(path[-1]))
    return mu, path


def test_an_emerging_leader(read, read_batch):
    """H4: tokens 0 and 2 lead at first, token 1 from the first layer on, where it stops."""
    mu, path = layers(EMERGING, 80)
    first = np.flatnonzero(read(leader_mask, mu.at(path[0]), HardmaxFlow()))
    np.testing.assert_array_equal(first, [0, 2])
    counts = read_batch(leaders, mu.at(jnp.stack(path)), HardmaxFlow())
    np.testing.assert_array_equal(counts, [2] + [3] * 80)
    np.testing.assert_allclose(path[30][1], [-0.0556, 0.1389], atol=1e-4)
    second = np.flatnonzero(read(leader_mask, mu.at(path[1]), HardmaxFlow()))
    np.testing.assert_array_equal(second, [0, 1, 2])


def test_collapsed_followers_are_labelled_but_counted_once(read):
    """After 80 layers all sit on a leader to rounding: the mask is full, the count is not."""
    mu, path = layers(EMERGING, 80)
    end = (mu.at(path[-1]), HardmaxFlow())
    assert np.all(read(leader_mask, *end))
    assert read(leaders, *end) == 3


def test_limits_on_faces_are_not_leaders(read):
    """H5: (+-1/2, 0) tie between two corners and converge to edge middles, which do not lead."""
    mu, path = layers(SQUARE, 60)
    np.testing.assert_allclose(path[-1][4:], [[-1, 0], [1, 0]], atol=1e-5)
    end = (mu.at(path[-1]), HardmaxFlow())
    np.testing.assert_array_equal(read(leader_mask, *end), [True] * 4 + [False] * 2)
    assert read(leaders, *end) == 4


def test_exact_ties_survive_rotation(read_batch):
    """An edge middle ties with two corners; rounding may make its own score the largest."""
    middles = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [-1, 0], [1, 0]], dtype=float)
    turns = np.linspace(0.1, 3.0, 25)
    rotations = np.array([[[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]] for a in turns])
    tokens = Measure(Euclidean(2), middles @ rotations)
    masks = read_batch(leader_mask, tokens, HardmaxFlow())
    np.testing.assert_array_equal(masks, np.tile([True] * 4 + [False] * 2, (25, 1)))


def test_the_score_matrix_decides(read):
    """4.1: with A = L L^T the leaders of z are those of L^T z under A = I, and not those of z."""
    L = np.array([[2.0, 0.0], [-1.7, 0.4]])
    z = np.random.default_rng(4).normal(size=(14, 2))
    model = HardmaxFlow(Weights(B=L @ L.T))
    mask = read(leader_mask, Measure(Euclidean(2), z), model)
    plain = HardmaxFlow()
    np.testing.assert_array_equal(mask, read(leader_mask, Measure(Euclidean(2), z @ L), plain))
    assert np.any(mask != read(leader_mask, Measure(Euclidean(2), z), plain))


def test_tokens_on_one_ellipsoid_all_lead(read):
    """H6: |z|_A = 1 for everybody."""
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    z = np.random.default_rng(0).normal(size=(9, 2))
    z /= np.sqrt(np.einsum("nd,de,ne->n", z, A, z))[:, None]
    assert read(leaders, Measure(Euclidean(2), z), HardmaxFlow(Weights(B=A))) == 9


def test_coincident_leaders_are_one_location_and_the_origin_follows(read):
    mu = Measure(Euclidean(2), [[1, 0], [1, 0], [0, 0], [-1, 1e-3], [-1, 1.05e-3]])
    s = (mu, HardmaxFlow())
    np.testing.assert_array_equal(read(leader_mask, *s), [True, True, False, False, True])
    assert read(leaders, *s) == 2


def test_persistence_over_random_runs(read_batch):
    """H2/H3: the number of leader locations never drops, and a leader keeps leading."""
    for seed in range(5):
        mu, path = layers(np.random.default_rng(seed).normal(size=(17, 2)), 70, alpha=2.3)
        states = mu.at(jnp.stack(path))
        masks = read_batch(leader_mask, states, HardmaxFlow())
        counts = read_batch(leaders, states, HardmaxFlow())
        assert np.all(np.diff(masks.astype(int), axis=0) >= 0)
        assert np.all(np.diff(counts) >= 0)
        assert 1 <= counts[-1] < 17


def test_several_heads_are_refused(read):
    mu = Measure(Euclidean(2), np.eye(2))
    with pytest.raises(InputError, match="single head"):
        read(leaders, mu, SA(1.0, Weights(B=np.stack([np.eye(2)] * 2))))


def test_tokens_without_mass_neither_lead_nor_are_attended_to(read):
    """The words that fill a review up: without the farthest token the next one leads in its place."""
    present = jnp.array([True, True, False, True, True, True, True, True])
    mu = padded(Euclidean(2), jnp.asarray(EMERGING), present)
    leading = np.flatnonzero(read(leader_mask, mu, HardmaxFlow()))
    alone = Measure(Euclidean(2), EMERGING[np.asarray(present)])
    expected = np.flatnonzero(present)[np.flatnonzero(read(leader_mask, alone, HardmaxFlow()))]
    np.testing.assert_array_equal(leading, expected)
    assert 2 not in leading
    assert 5 in leading
