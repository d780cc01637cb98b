"""Choices that accuracies hardly show: which attention is measured when, clipping, order, the line drawn."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from tokenflock.applications.sentiment import fit, picture
from tokenflock.applications.sentiment.classifier import Classifier
from tokenflock.applications.sentiment.fit import (
    BASELINE,
    NETWORK,
    batches,
    optimiser,
    start,
    train_epoch,
)
from tokenflock.applications.sentiment.leaders import count_words, follow
from tokenflock.applications.sentiment.report import _per_review, measure, word_rows
from tokenflock.applications.sentiment.reviews import Data, Part
from tokenflock.applications.sentiment.settings import Settings
from tokenflock.papers.hardmax.figures import sentiment as gallery

WORDS, LENGTH = 30, 12
# At tau = 1 softmax and hardmax are far from one another, and their losses differ.
WARM = Settings(d=2, depth=2, epochs=2, batch=8, length=LENGTH, tau=1.0)


def part(count, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, WORDS + 1, size=(count, LENGTH)).astype(np.int32)
    return Part(tokens, np.arange(count, dtype=np.float32) % 2)


DATA = Data(part(40, 1), part(12, 2), part(12, 3), tuple(f"word{i}" for i in range(WORDS)))


def loss_in_numpy(classifier, reviews, tau=None):
    """Mean cross-entropy of two layers, without the network's code; hardmax without a tau."""
    E, v = np.asarray(classifier.embedding, float), np.asarray(classifier.direction, float)
    alpha, b = float(classifier.alpha), float(classifier.bias)
    losses = []
    for review, label in zip(*reviews, strict=True):
        z = E[review]
        for _ in range(WARM.depth):
            scores = z @ z.T
            behind = scores - scores.max(axis=1, keepdims=True)
            weights = (behind == 0).astype(float) if tau is None else np.exp(behind / tau)
            z = (z + alpha * weights @ z / weights.sum(axis=1, keepdims=True)) / (1 + alpha)
        losses.append(np.logaddexp(0.0, (1 - 2 * label) * (v @ z.mean(axis=0) + b)))
    return np.mean(losses)


def still(*of_what):
    """A step of the optimiser that changes nothing: no program is compiled for it."""
    return lambda classifier, memory, tokens, labels: (classifier, memory, 0.5)


@pytest.fixture(scope="module")
def epoch():
    """The network after one epoch of standing still."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "compiled_step", still)
        trainees = start(WARM, WORDS)
        quiet = {"report": lambda done, note: None}
        network = train_epoch(trainees[NETWORK], WARM.depth, DATA, WARM, **quiet)
        bag = train_epoch(trainees[BASELINE], 0, DATA, WARM, **quiet)
    return {NETWORK: network, BASELINE: bag}


def test_validation_is_that_of_the_hardmax_network(epoch):
    found = epoch[NETWORK].history[0, 2]
    hardmax = loss_in_numpy(epoch[NETWORK].classifier, DATA.validation)
    assert found == pytest.approx(hardmax, abs=1e-5)
    softmax = loss_in_numpy(epoch[NETWORK].classifier, DATA.validation, tau=1.0)
    assert abs(found - softmax) > 1e-3


def test_a_report_has_the_losses_of_hardmax_and_of_its_surrogate(epoch):
    found = measure(epoch, DATA, WARM)[NETWORK]
    best = epoch[NETWORK].best
    assert found["loss"]["test"] == pytest.approx(loss_in_numpy(best, DATA.test), abs=1e-5)
    surrogate = loss_in_numpy(best, DATA.test, tau=1.0)
    assert found["test_loss_of_the_softmax_surrogate"] == pytest.approx(surrogate, abs=1e-5)
    assert abs(surrogate - found["loss"]["test"]) > 1e-3


def test_gradients_longer_than_five_are_cut_to_five():
    """Adam's first memory after one step is a tenth of the gradient it was given."""
    adam = optimiser(0.01)
    memory = adam.init(jnp.zeros(2))
    for given, kept in (([60.0, 80.0], [3.0, 4.0]), ([0.6, 0.8], [0.6, 0.8])):
        first = adam.update(jnp.array(given), memory)[1][1][0].mu
        np.testing.assert_allclose(first, 0.1 * np.array(kept), rtol=1e-6)


def test_every_epoch_has_an_order_of_its_own_and_misses_no_review():
    orders = [
        np.concatenate([tokens for tokens, _ in batches(DATA.train, WARM, epoch)])
        for epoch in (0, 1, 0)
    ]
    assert not np.array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[0], orders[2])
    for order in orders:
        np.testing.assert_array_equal(
            np.unique(order, axis=0), np.unique(DATA.train.tokens, axis=0)
        )


def test_labels_stay_with_their_reviews():
    label = {tuple(row): sign for row, sign in zip(*DATA.train, strict=True)}
    for tokens, labels in batches(DATA.train, WARM, epoch=1):
        assert [label[tuple(row)] for row in tokens] == labels.tolist()


def test_a_leader_that_emerges_at_the_first_layer_does_not_lead_from_layer_0():
    """The first case of the paper's Figure 2: words 1 and 3 lead at once, word 2 after one layer."""
    embedding = np.zeros((WORDS + 1, 2))
    embedding[1:9] = [
        [1, 1 / 3], [-1 / 12, 1 / 12], [-1, -1], [0, 1 / 4], [-0.3, -0.7], [-0.6, -0.9],
        [0.8, 0.1], [0.6, 0.15],
    ]  # fmt: skip
    parts = (embedding, np.log(np.expm1(0.5)), [1.0, 2.0], 0.1)
    classifier = Classifier(*(jnp.asarray(value, float) for value in parts))
    tokens = np.zeros((1, LENGTH), np.int32)
    tokens[0, :8] = np.arange(1, 9)
    found = follow(classifier, tokens, WARM.depth)
    assert np.flatnonzero(found.leader[0]).tolist() == [0, 1, 2]
    assert found.born[0, :3].tolist() == [0, 1, 0]
    assert _per_review(found)["share_from_layer_0"] == pytest.approx(2 / 3)
    rows = word_rows(count_words(found, tokens, WORDS), classifier, DATA.vocabulary)
    assert [row["from_layer_0"] for row in rows] == [1, 0, 1]


LINE = {"direction": [3.0, -1.0], "bias": 2.0}


def _sides(axes):
    """<v, z> + b at two points of the dashed line."""
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends = np.array([line.get_xy1(), line.get_xy2()])
    assert np.linalg.norm(ends[1] - ends[0]) > 0.1
    return ends @ LINE["direction"] + LINE["bias"]


def test_the_line_of_a_report_is_where_the_logit_vanishes():
    figure, (flat, deep) = plt.subplots(1, 2)
    picture._decision_line(flat, LINE, flat=True)
    np.testing.assert_allclose(_sides(flat), 0.0, atol=1e-12)
    # In more dimensions the horizontal axis is the logit itself.
    picture._decision_line(deep, LINE, flat=False)
    assert deep.lines[0].get_xdata() == [0.0, 0.0]
    plt.close(figure)


def test_the_line_of_the_figure_is_where_the_logit_vanishes():
    data = xr.Dataset(
        {
            "place": (("word", "axis"), [[0.0, 1.0], [1.0, 2.0]]),
            "meaning": ("word", ["neutral", "positive"]),
            "leads": ("word", [0.5, 1.0]),
            "direction": ("axis", LINE["direction"]),
            "bias": LINE["bias"],
        }
    )
    figure, axes = plt.subplots()
    gallery._plane(axes, data)
    np.testing.assert_allclose(_sides(axes), 0.0, atol=1e-12)
    plt.close(figure)
