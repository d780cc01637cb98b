"""A picture that cannot be read is found out, and the committed ones are large enough."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from tokenflock.ledger.finding import all_figures
from tokenflock.plot.key import area, mark, stroke
from tokenflock.plot.readable import complaints

IMAGES = Path(__file__).parents[2] / "docs" / "images" / "gallery"


@pytest.fixture
def panel():
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    axes.plot([0, 1], [0, 1])
    axes.set(xlabel="$t$", ylabel="$x$")
    yield axes
    plt.close(figure)


def test_a_plain_panel_is_readable(panel):
    assert complaints(panel.figure) == []


@pytest.mark.parametrize("side", "xy")
def test_every_axis_has_a_label(panel, side):
    panel.set(**{f"{side}label": ""})
    assert complaints(panel.figure) == [f"panel 1 has no label on its {side} axis"]
    panel.set_axis_off()  # a map
    assert complaints(panel.figure) == []


def test_a_row_may_share_the_label_of_what_it_shares():
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    for axes in (left, right):
        axes.plot([0, 1], [0, 1])
        axes.set(xlabel="$t$", title="one")
    left.set_ylabel("$x$")
    assert complaints(figure) == []
    right.set(ylim=(0, 9), title="another")
    assert complaints(figure) == ["the panel 'another' has no label on its y axis"]
    plt.close(figure)


def test_colours_dashes_and_marks_need_a_key(panel):
    panel.plot([0, 1], [1, 0], "--", color="#D55E00")
    panel.plot([0.5], [0.2], "D", color="#222222")
    found = complaints(panel.figure)
    assert [one.split(" is ")[0] for one in found] == [
        "the colour '#1f77b4'",
        "the colour '#d55e00'",
        "the line 'dashed'",
        "the mark 'D'",
    ]
    key = [stroke("--", "down", "#D55E00"), mark("D", "here"), area("up", "#1f77b4", alpha=1.0)]
    panel.legend(handles=key)
    assert complaints(panel.figure) == []


def test_words_may_be_the_key(panel):
    panel.plot([0, 1], [1, 0], "--", color="#D55E00")
    panel.set_title("dashed: down; a colour for each run")
    assert complaints(panel.figure) == []


def test_texts_do_not_lie_on_one_another(panel):
    for words in ("one thing", "another"):
        panel.text(0.4, 0.5, words)
    assert complaints(panel.figure) == ["'one thing' lies on 'another'"]


def test_ticks_beyond_the_limits_are_not_drawn(panel):
    panel.set(xlim=(0.1, 0.9), ylim=(0.1, 0.9), xticks=np.linspace(-1, 2, 7))
    assert complaints(panel.figure) == []


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.id)
def test_committed_pictures_are_sharp_and_small(figure):
    path = IMAGES / f"{figure.id.replace('/', '-')}.png"
    with Image.open(path) as picture:
        assert picture.width >= 900, "twice the width of a small figure on a page"
        assert picture.mode == "P", "a palette keeps the repository small"
    assert path.stat().st_size < 200_000
