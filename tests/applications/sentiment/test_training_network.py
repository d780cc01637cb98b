"""The network against the engine, against plain NumPy, and its derivatives against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.applications.sentiment.classifier import (
    Classifier,
    all_layers,
    draw_classifier,
    hard,
    network,
    review,
    soft,
)
from tokenflock.applications.sentiment.fit import cross_entropy, evaluate
from tokenflock.applications.sentiment.leaders import count_words, follow
from tokenflock.dynamics import Particles
from tokenflock.integrate import Layers, Save, solve
from tokenflock.measure import from_array
from tokenflock.models import HardmaxFlow
from tokenflock.observables import leader_mask
from tokenflock.space import Euclidean

DEPTH, LENGTH, WORDS = 4, 12, 30
RNG = np.random.default_rng(7)


def classifier(d=2, alpha=0.7, dtype=float):
    """Asymmetric, in float64."""
    rng = np.random.default_rng(5)
    embedding = rng.normal(size=(WORDS + 1, d))
    parts = (embedding, np.log(np.expm1(alpha)), rng.normal(size=d), 0.3)
    return Classifier(*(jnp.asarray(part, dtype) for part in parts))


def reviews(count=6):
    """Word numbers with different lengths, a repeated word and a review of one word."""
    tokens = RNG.integers(1, WORDS + 1, size=(count, LENGTH))
    for row, length in zip(tokens, [12, 9, 5, 1, 7, 12], strict=True):
        row[length:] = 0
    tokens[0, 3] = tokens[0, 5]
    return tokens.astype(np.int32)


def in_numpy(model, tokens, depth, tau=None):
    """The formulas of control.md 4a review by review; no masks: words that are not there are cut off."""
    E, v, b, alpha = (
        np.asarray(x) for x in (model.embedding, model.direction, model.bias, model.alpha)
    )
    found = []
    for words in tokens:
        z = E[words[words > 0]]
        for _ in range(depth):
            scores = z @ z.T
            if tau is None:
                weights = (scores == scores.max(axis=1, keepdims=True)).astype(float)
            else:
                weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / tau)
            weights /= weights.sum(axis=1, keepdims=True)
            z = (z + alpha * weights @ z) / (1 + alpha)
        found.append(v @ z.mean(axis=0) + b)
    return np.array(found)


def test_masked_batches_equal_single_reviews_in_numpy():
    model, tokens = classifier(), reviews()
    for slot, tau in ((hard(), None), (soft(0.05), 0.05)):
        found = evaluate(model, tokens, DEPTH, slot)
        np.testing.assert_allclose(found, in_numpy(model, tokens, DEPTH, tau), atol=1e-12)


def test_depth_zero_is_a_bag_of_words():
    model, tokens = classifier(), reviews()
    bags = np.array([np.bincount(r[r > 0], minlength=WORDS + 1) / np.sum(r > 0) for r in tokens])
    expected = bags @ np.asarray(model.embedding) @ np.asarray(model.direction) + 0.3
    np.testing.assert_allclose(evaluate(model, tokens, 0, hard()), expected, atol=1e-12)


def test_hardmax_layers_are_those_of_the_engine_and_so_are_the_leaders():
    """`HardmaxFlow` with `Layers(alpha/(1+alpha))` on the words that are there."""
    model, tokens = classifier(), reviews()[1]
    there = tokens > 0
    step = float(model.alpha / (1 + model.alpha))
    run = solve(
        HardmaxFlow(),
        from_array(Euclidean(2), np.asarray(model.embedding)[tokens[there]]),
        step * DEPTH,
        method=Layers(step),
        save=Save(every=step, states=True, observe=[leader_mask]),
    )
    path = np.asarray(
        jax.jit(lambda m: all_layers(m, review(m, jnp.asarray(tokens)), DEPTH, hard()))(model)
    )
    np.testing.assert_allclose(path[:, there], run.states, atol=1e-12)
    found = follow(model, tokens[None], DEPTH)
    leads = run.array("leader_mask") > 0.5
    first = np.where(leads.any(axis=0), leads.argmax(axis=0), DEPTH + 1)
    np.testing.assert_array_equal(found.born[0, there], first)
    assert not found.leader[0, ~there].any()
    assert found.leader[0].sum() == len(np.unique(run.states[-1][leads[-1]].round(4), axis=0))


@pytest.mark.parametrize(("slot", "tau"), [(hard(), None), (soft(0.05), 0.05)])
def test_a_layer_is_the_engines_and_that_of_numpy(slot, tau):
    """(z + alpha mean)/(1 + alpha) among the words that are there, by `Dynamics.layer`."""
    model, tokens = classifier(), reviews()[1]
    there = tokens > 0
    z = np.asarray(model.embedding)[tokens[there]]
    scores = z @ z.T
    behind = scores - scores.max(axis=1, keepdims=True)
    weights = (behind == 0).astype(float) if tau is None else np.exp(behind / tau)
    mean = weights @ z / weights.sum(axis=1, keepdims=True)
    expected = (z + 0.7 * mean) / 1.7
    start = review(model, jnp.asarray(tokens))
    engine = network(slot, float).layer(0.0, Particles(start.points), start, model.step).points
    ours = all_layers(model, start, 1, slot)[1]
    np.testing.assert_array_equal(ours, engine)
    np.testing.assert_allclose(ours[there], expected, atol=1e-14)
    assert np.max(np.abs(expected - z)) > 0.1


def test_the_precision_of_the_words_is_that_of_the_layers():
    """Training is in float32: a number in double precision would make all that follows it so."""
    start = review(classifier(dtype=np.float32), jnp.asarray(reviews()[0]))
    assert start.points.dtype == start.weights.dtype == np.float32
    path = jax.eval_shape(lambda: all_layers(classifier(dtype=np.float32), start, 2, soft(0.1)))
    assert path.dtype == np.float32


def test_padding_changes_nothing():
    model, tokens = classifier(), reviews()
    longer = np.pad(tokens, ((0, 0), (0, 9)))
    for slot in (hard(), soft(0.05)):
        np.testing.assert_allclose(
            evaluate(model, longer, DEPTH, slot), evaluate(model, tokens, DEPTH, slot), atol=1e-12
        )


def test_a_review_without_a_known_word_is_decided_by_the_bias_and_harms_no_derivative():
    model, tokens = classifier(), np.zeros((1, LENGTH), np.int32)
    for slot in (hard(), soft(0.05)):
        assert evaluate(model, tokens, DEPTH, slot)[0] == pytest.approx(0.3, abs=1e-15)
    slope = jax.jit(jax.grad(lambda m: cross_entropy(m, tokens, np.ones(1), DEPTH, soft(0.05))))(
        model
    )
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope))
    assert not np.any(slope.embedding)


def test_derivatives_of_the_surrogate_are_exact():
    """Against central differences, also through the logits <z_i, z_j>/tau; PAD gets none."""
    model, tokens = classifier(), reviews()
    labels = np.array([1.0, 0, 1, 0, 0, 1])

    @jax.jit
    def loss(changed):
        return cross_entropy(changed, tokens, labels, DEPTH, soft(0.05))

    slope = jax.jit(jax.grad(loss))(model)
    turn = jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape)), model)
    along = sum(
        jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(turn), strict=True)
    )
    h = 1e-5
    ahead, behind = (jax.tree.map(lambda a, b, s=s: a + s * h * b, model, turn) for s in (1, -1))
    # Central differences err by h^2 f'''/6; at tau = 1/20 third derivatives are below 1e5.
    assert float((loss(ahead) - loss(behind)) / (2 * h)) == pytest.approx(float(along), abs=1e-5)
    assert not np.any(np.asarray(slope.embedding)[0])


def test_the_surrogate_tends_to_hardmax():
    """4.9: away from ties the difference is below n e^{-gap/tau}; here the gaps are above 20 tau."""
    model, tokens = classifier(), reviews()
    distance = [
        np.max(
            np.abs(
                evaluate(model, tokens, DEPTH, soft(tau)) - evaluate(model, tokens, DEPTH, hard())
            )
        )
        for tau in (0.05, 1e-3, 1e-4)
    ]
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 1e-8 < distance[0]


def test_alpha_is_positive_and_starts_at_one_half():
    start = draw_classifier(WORDS, 2, seed=0)
    assert float(start.alpha) == pytest.approx(0.5, abs=1e-6)
    assert start.embedding.dtype == np.float32
    assert not np.any(start.embedding[0])
    low = Classifier(start.embedding, jnp.asarray(-30.0), start.direction, start.bias)
    assert 0 < float(low.alpha) < 1e-12


def test_the_vote_of_the_leaders_is_the_network_in_the_limit():
    """4.10/H9: |logit - vote| <= |v| diam (1+alpha)^{-(K-k0)}, here with chains that end by k0 = 2."""
    tokens, model = reviews(), classifier(alpha=600.0)
    diameter = 2 * np.linalg.norm(np.asarray(model.embedding), axis=1).max()
    reach = float(jnp.linalg.norm(model.direction)) * diameter
    near = follow(model, tokens, DEPTH)
    assert np.max(np.abs(near.vote - near.logit)) <= reach * 601.0 ** (2 - DEPTH)
    far = follow(classifier(alpha=0.2), tokens, DEPTH)
    assert 1e-3 < np.max(np.abs(far.vote - far.logit)) <= reach


def test_followers_that_collapse_onto_a_leader_are_counted_with_it():
    """At alpha = 600 all words sit on their leaders and lead by place; the word that led first is named."""
    tokens = reviews()
    found = follow(classifier(alpha=600.0), tokens, DEPTH)
    present = tokens > 0
    assert np.all(found.born[present] <= DEPTH)
    assert found.leader.sum() < present.sum() / 2
    assert np.all(found.born[found.leader] <= 1)
    for row, there in enumerate(present):
        assert set(found.follows[row][there]) == set(np.flatnonzero(found.leader[row]))


def test_words_are_counted_once_per_review():
    """A word that occurs twice leads once; sentiment is the mean over the reviews it leads in."""
    model = classifier()
    tokens = np.zeros((3, LENGTH), np.int32)
    tokens[0, :2] = tokens[1, 0] = 3
    tokens[2, 0] = 5
    words = count_words(follow(model, tokens, DEPTH), tokens, WORDS)
    assert words.occurs[2] == words.leads[2] == words.at_once[2] == 2
    assert words.leads.sum() == 3
    expected = np.asarray(model.embedding)[[3, 5]] @ np.asarray(model.direction) + 0.3
    np.testing.assert_allclose(words.sentiment[[2, 4]], expected, atol=1e-12)
