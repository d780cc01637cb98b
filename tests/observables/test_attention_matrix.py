"""Attention matrix, entropy and rank."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import softmax

from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.masks import Causal
from tokenflock.measure import Measure, from_angles
from tokenflock.models import SA, USA, HardmaxFlow, RescaledSA, SinkhornSA, StochasticSA
from tokenflock.observables import attention_entropy, attention_matrix, attention_rank
from tokenflock.space import Euclidean, Sphere
from tokenflock.starts import equiangular
from tokenflock.terms import Drift
from tokenflock.weights import Weights

RNG = np.random.default_rng(5)
Q, K = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3, 4))


def rows(mu, beta, Q, K, causal=False):
    """Softmax of beta <Q x_i, K x_j> + log w_j by scipy."""
    x = np.asarray(mu.points)
    scores = beta * (x @ Q.T) @ (x @ K.T).T + np.log(np.asarray(mu.weights))
    if causal:
        scores[np.triu_indices(mu.n, 1)] = -np.inf
    return softmax(scores, axis=-1)


@pytest.mark.parametrize("causal", [False, True])
def test_matrix_and_entropy_per_head(causal, weighted, read):
    mu = weighted()
    model = SA(0.8, Weights(Q=Q, K=K, V=1.0), mask=Causal() if causal else None)
    s = (mu, model)
    expected = np.stack([rows(mu, 0.8, Q[h], K[h], causal) for h in range(2)])
    np.testing.assert_allclose(read(attention_matrix, *s), expected, atol=1e-14)
    logs = np.log(np.where(expected > 0, expected, 1.0))
    entropy = -np.sum(expected * logs, axis=-1) @ np.asarray(mu.weights)
    np.testing.assert_allclose(read(attention_entropy, *s), entropy, rtol=1e-12)
    p = np.linalg.svd(expected, compute_uv=False)
    p /= p.sum(axis=-1, keepdims=True)
    rank = np.exp(-np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=-1))
    np.testing.assert_allclose(read(attention_rank, *s), rank, rtol=1e-10)


def test_flat_and_one_hot_attention(read):
    tokens = equiangular(Sphere(6), 6)
    flat, sharp = (tokens, SA(0.0)), (tokens, SA(1000.0))
    np.testing.assert_allclose(read(attention_entropy, *flat), [np.log(6)], rtol=1e-14)
    np.testing.assert_allclose(read(attention_rank, *flat), [1.0], atol=1e-10)
    np.testing.assert_allclose(read(attention_entropy, *sharp), [0.0], atol=1e-14)
    np.testing.assert_allclose(read(attention_rank, *sharp), [6.0], rtol=1e-12)


def test_flat_attention_of_weighted_tokens_has_the_entropy_of_the_masses(read):
    masses = np.array([0.5, 0.3, 0.2])
    mu = from_angles([0.0, 1.0, 2.0], masses)
    expected = -np.sum(masses * np.log(masses))
    assert read(attention_entropy, mu, SA(0.0))[0] == pytest.approx(expected, rel=1e-14)


def test_first_token_of_a_strict_causal_mask_counts_zero(read):
    mu = from_angles([0.0, 1.0, 2.0])
    entropy = read(attention_entropy, mu, SA(0.0, mask=Causal(self_term=False)))
    assert entropy[0] == pytest.approx((0 + 0 + np.log(2)) / 3, rel=1e-14)


def test_rescaled_frame_compares_lab_tokens(read):
    """The matrix of z at time t is the softmax of e^{tV} z, with V not symmetric."""
    V = np.array([[0.5, 0.4], [-0.1, 0.3]])
    mu = Measure(Euclidean(2), RNG.normal(size=(5, 2)))
    x = np.asarray(mu.points) @ expm(1.3 * V).T
    matrix = read(attention_matrix, mu, RescaledSA(0.7, Weights(V=V)), t=1.3)
    np.testing.assert_allclose(matrix[0], softmax(0.7 * x @ x.T, axis=-1), atol=1e-12)


def test_other_kinds(weighted, read):
    mu = weighted(n=6)
    hard = read(attention_matrix, mu, HardmaxFlow())[0]
    # On the sphere each token attends to itself.
    np.testing.assert_allclose(hard, np.eye(6), atol=1e-15)
    doubly = read(attention_matrix, mu, SinkhornSA(1.0))[0]
    w = np.asarray(mu.weights)
    np.testing.assert_allclose(doubly.sum(axis=1), 1.0, atol=1e-8)
    np.testing.assert_allclose(w @ doubly, w, atol=1e-8)
    noise = read(attention_matrix, mu, StochasticSA(2.0, 0.1))
    np.testing.assert_allclose(noise, read(attention_matrix, mu, SA(2.0)), atol=1e-15)


def test_entropy_refuses_rows_that_do_not_sum_to_one(weighted, read):
    with pytest.raises(InputError, match="sum to one"):
        read(attention_entropy, weighted(), USA(1.0))
    assert read(attention_rank, weighted(), USA(1.0)).shape == (1,)
    with pytest.raises(InputError, match="attention term"):
        read(attention_matrix, weighted(), Dynamics(Sphere(4), Drift(1.0)))


def test_compiled_over_samples(weighted, read, read_batch):
    mu, model = weighted(samples=3), SA(0.8, Weights(Q=Q, K=K))
    ranks = read_batch(attention_rank, mu, model)
    assert ranks.shape == (3, 2)
    one = read(attention_rank, mu.at(mu.points[2]), model)
    np.testing.assert_allclose(ranks[2], one, rtol=1e-10)
    assert np.max(np.abs(ranks[0] - ranks[1])) > 1e-3
