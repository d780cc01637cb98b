"""H1 to H9 of the hardmax layers (2407.01602), read off runs of the engine with plain NumPy.

The claims `2407.01602/...` measure the same statements on other draws, with controls; H4, H5 and H6 also
stand in tests/observables/test_leaders.py and tests/papers/test_hardmax_figures.py, and H1 is the claim
`2407.01602/reduction`: here they are slow tests, since each compiles a run of its own.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from tokenflock.applications.sentiment.classifier import Classifier, all_layers, hard, soft
from tokenflock.applications.sentiment.leaders import follow
from tokenflock.integrate import Layers, Save, solve
from tokenflock.measure import from_array
from tokenflock.models import HardmaxFlow
from tokenflock.space import Euclidean
from tokenflock.weights import Weights

ALPHA = 0.5
RUNS, TOKENS, DEPTH = 400, 16, 400
TIE, PLACE = 1e-12, 1e-6


def layers(tokens, count, alpha=ALPHA, matrix=None):
    """Tokens (run, layer, n, d) by the engine's layers; scores <A z_i, z_j>."""
    step = alpha / (1 + alpha)
    weights = None if matrix is None else Weights(B=matrix.T)
    run = solve(
        HardmaxFlow(weights),
        from_array(Euclidean(tokens.shape[-1]), tokens),
        step * count,
        method=Layers(step),
        save=Save(every=step, states=True),
    )
    return np.asarray(run.array("states"))


@functools.cache
def gaussian_runs():
    """400 runs of 16 Gaussian tokens in the plane through 400 layers."""
    return layers(np.random.default_rng(0).normal(size=(RUNS, TOKENS, 2)), DEPTH)


def attended(z):
    """C_i as a mask (..., i, j), with the relative tolerance that leader tests need (control.md 4e)."""
    scores = z @ np.swapaxes(z, -1, -2)
    largest = np.abs(scores).max(axis=(-1, -2), keepdims=True)
    return scores >= scores.max(axis=-1, keepdims=True) - TIE * largest


def leads(z):
    """All attended tokens lie within 1e-6."""
    apart = np.linalg.norm(z[..., :, None, :] - z[..., None, :, :], axis=-1)
    return ~np.any(attended(z) & (apart > PLACE), axis=-1)


def attended_mean(z):
    mask = attended(z).astype(float)
    return mask @ z / mask.sum(axis=-1, keepdims=True)


@pytest.mark.slow
def test_H1_a_metric_is_a_change_of_coordinates():
    rng = np.random.default_rng(1)
    factor = np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3)
    z = rng.normal(size=(20, 9, 3))
    moved = layers(z, 20, matrix=factor @ factor.T)
    plain = layers(z @ factor, 20)
    assert np.max(np.abs(moved @ factor - plain)) < 1e-12
    assert np.max(np.abs(layers(z, 20) - moved)) > 0.1


def test_H2_norms_grow_by_the_squared_step():
    states = gaussian_runs()
    gain = np.diff(np.sum(states**2, axis=-1), axis=1)
    steps = np.sum(np.diff(states, axis=1) ** 2, axis=-1)
    assert np.min(gain - steps) > -1e-10
    assert np.max(gain) > 1.0


def test_H2_hulls_are_nested():
    """By the inequalities of Qhull's hull of the layer before; later hulls are those of the leaders."""
    for run in gaussian_runs():
        for before, after in itertools.pairwise(run[:11]):
            equations = ConvexHull(before).equations
            assert np.max(after @ equations[:, :2].T + equations[:, 2]) < 1e-12


def test_H2_followers_of_one_leader_contract_exactly():
    """z_i^k - z_l = (1+alpha)^{-k} (z_i^0 - z_l) while rounding of O(1) numbers allows to see it."""
    states = gaussian_runs()[:, :41]
    first = states[:, 0]
    leader = (first @ np.swapaxes(first, 1, 2)).argmax(axis=-1)
    follows = np.take_along_axis(leads(first), leader, axis=1)
    goal = np.take_along_axis(first, leader[..., None], axis=1)
    shrink = (1 + ALPHA) ** -np.arange(41.0)
    predicted = goal[:, None] + shrink[:, None, None] * (first - goal)[:, None]
    assert follows.mean() > 0.5
    assert (
        np.max(np.abs(states - predicted)[np.broadcast_to(follows[:, None], states.shape[:3])])
        < 1e-12
    )


def test_H3_a_leader_leads_and_rests_for_ever():
    states = gaussian_runs()
    before = leads(states[:, 0])
    for k in range(1, DEPTH + 1):
        now = leads(states[:, k])
        assert np.all(now[before])
        assert np.max(np.abs(states[:, k] - states[:, k - 1])[before]) < PLACE
        before = now


def test_H3_how_many_lead_at_first():
    """5.5 leaders on average for n = 5..29, d = 2, 3, to 4 standard errors and the last digit."""
    rng = np.random.default_rng(2)
    counts = [
        leads(rng.normal(size=(rng.integers(5, 30), rng.integers(2, 4)))).sum() for _ in range(4000)
    ]
    assert abs(np.mean(counts) - 5.5) < 4 * np.std(counts) / np.sqrt(len(counts)) + 0.05


@pytest.mark.slow
def test_H3_how_often_a_leader_emerges():
    """In 0.7 % of runs, n = 5..29, d = 2, 3, to 4 standard errors and the last digit; at any layer."""
    rng, runs, longest = np.random.default_rng(2), 12_000, 29
    emerged = []
    for d in (2, 3):
        # Every token of every run is a word of its own; a run is a review.
        places = np.concatenate([np.zeros((1, d)), rng.normal(size=(runs * longest, d))])
        words = 1 + np.arange(runs * longest).reshape(runs, longest)
        there = np.arange(longest) < rng.integers(5, 30, size=(runs, 1))
        parts = (places, np.log(np.expm1(ALPHA)), np.ones(d), 0.0)
        classifier = Classifier(*(jnp.asarray(part, float) for part in parts))
        found = follow(classifier, np.where(there, words, 0).astype(np.int32), 6)
        emerged.append(np.any(found.leader & (found.born > 0), axis=1))
    share = np.mean(emerged)
    assert abs(share - 0.007) < 4 * np.sqrt(0.007 / np.size(emerged)) + 0.0005


EMERGING = np.array(
    [[1, 1 / 3], [-1 / 12, 1 / 12], [-1, -1], [0, 1 / 4], [-0.3, -0.7], [-0.6, -0.9], [0.8, 0.1], [0.6, 0.15]]
)  # fmt: skip


@pytest.mark.slow
def test_H4_a_leader_emerges_after_one_layer():
    path = layers(EMERGING, 30)
    assert np.flatnonzero(leads(path[0])).tolist() == [0, 2]
    assert np.flatnonzero(leads(path[1])).tolist() == [0, 1, 2]
    limits = [
        [1, 1 / 3],
        [-1 / 18, 5 / 36],
        [-1, -1],
        [1, 1 / 3],
        [-1, -1],
        [-1, -1],
        [1, 1 / 3],
        [1, 1 / 3],
    ]
    # 30 layers leave (1 + alpha)^-30 = 5e-6 of a distance of at most 2.
    assert np.max(np.abs(path[-1] - limits)) < 1.1e-5


SQUARE = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.5, 0], [0.5, 0]], dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 1e-15])
def test_H5_exact_ties_end_on_an_edge_and_the_slightest_offset_at_a_corner(offset):
    start = SQUARE + np.array([[0, 0]] * 5 + [[0, offset]])
    last = layers(start, 60)[-1]
    goal = [1.0, 0.0] if offset == 0 else [1.0, 1.0]
    assert np.max(np.abs(last[4:] - [[-1, 0], goal])) < 1e-5


@pytest.mark.slow
def test_H6_nothing_moves_on_an_ellipsoid():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    z = np.random.default_rng(3).normal(size=(12, 2))
    z /= np.sqrt(np.einsum("id,de,ie->i", z, matrix, z))[:, None]
    assert np.max(np.abs(layers(z, 30, matrix=matrix) - z)) == 0.0


def test_H7_softmax_tends_to_hardmax_in_the_median():
    """n = 128, d = 2, alpha = 2.3528, 8 layers: medians 7.8e-4 at tau = 1e-3 and 3.5e-5 at 1e-4, within 3."""
    z = np.random.default_rng(4).normal(size=(60, 128, 2))
    parts = (z[0], np.log(np.expm1(2.3528)), np.ones(2), 0.0)
    classifier = Classifier(*(jnp.asarray(part, float) for part in parts))

    def last(slot):
        def one(tokens):
            return all_layers(classifier, from_array(Euclidean(2), tokens), 8, slot)[-1]

        return np.asarray(jax.jit(jax.vmap(one))(z))

    limit = last(hard())
    for tau, stated in ((1e-3, 7.8e-4), (1e-4, 3.5e-5)):
        farthest = np.linalg.norm(last(soft(tau)) - limit, axis=-1).max(axis=-1)
        assert stated / 3 < np.median(farthest) < 3 * stated
        # Near ties send some tokens elsewhere: closeness is no matter of tau alone.
        assert farthest.max() > 0.1 or tau == 1e-4


def test_H8_limits_are_at_rest_and_are_leaders_or_projections_of_the_origin():
    """4.7: z is the mean of what it attends to, and <z, z_j> = |z|^2 on that face; generic limits lead."""
    last = gaussian_runs()[:, -1]
    assert np.max(np.abs(last - attended_mean(last))) < 1e-12
    assert np.all(leads(last))
    square = layers(SQUARE, DEPTH)[-1]
    assert np.max(np.abs(square - attended_mean(square))) < 1e-12
    assert leads(square).tolist() == [True] * 4 + [False] * 2
    on_face = np.abs(square @ square.T - np.sum(square**2, axis=1)[:, None])[attended(square)]
    assert np.max(on_face) < 1e-12


def test_H9_the_mean_is_the_vote_of_the_leaders():
    """4.10: |mean z^k - sum_l (n_l/n) z_l| <= diam (1+alpha)^{-(k-k0)}; nobody changes leader after k0."""
    states = gaussian_runs()[:, :61]
    target = (states @ np.swapaxes(states, -1, -2)).argmax(axis=-1)
    followed = np.take_along_axis(states, target[..., None], axis=2)
    vote = followed[:, -1].mean(axis=1)
    changed = np.linalg.norm(followed - followed[:, -1:], axis=-1).max(axis=-1) > PLACE
    latest = np.where(changed, np.arange(61), -1).max(axis=1)
    first = states[:, 0]
    diameter = np.linalg.norm(first[:, :, None] - first[:, None], axis=-1).max(axis=(1, 2))
    for run, settled in enumerate(latest + 1):
        assert settled < 40
        distance = np.linalg.norm(states[run, settled:].mean(axis=1) - vote[run], axis=-1)
        bound = diameter[run] * (1 + ALPHA) ** -np.arange(len(distance))
        # The vote itself is known to within the distance that is left at the last layer.
        assert np.all(distance <= bound + PLACE)
    assert latest.max() >= 0
