"""What the sentiment figure of 2407.01602 must show."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tokenflock.papers.hardmax.figures.sentiment import sentiment

pytestmark = pytest.mark.slow


@functools.cache
def computed():
    return sentiment.compute()


def polar():
    return computed().meaning.values != "neutral"


def test_polar_words_end_longer_than_neutral_ones_and_did_not_begin_so():
    lengths = computed().length.values
    first, last = (row[polar()].mean() / row[~polar()].mean() for row in lengths[[0, -1]])
    assert first < 1.5
    assert last > 2


def test_polar_words_lead_more_often_and_stand_on_their_side():
    data = computed()
    assert data.leads.values[polar()].mean() > 3 * data.leads.values[~polar()].mean()
    side = data.place.values @ data.direction.values + float(data.bias) > 0
    right = side[polar()] == (data.meaning.values[polar()] == "positive")
    assert right.mean() > 0.9


def test_the_bag_of_words_is_shown_and_is_no_worse():
    """Within 4 standard errors of 300 validation reviews."""
    network, bag = computed().accuracy.values[:, -1]
    assert network > 0.85
    assert bag > network - 4 * np.sqrt(0.25 / 300)


def test_sentiment_drawing():
    picture = sentiment.draw(computed())
    assert len(picture.axes) == 3
    assert {text.get_text() for text in picture.axes[2].get_legend().get_texts()} == {
        "network",
        "bag of words",
    }
    plt.close(picture)
