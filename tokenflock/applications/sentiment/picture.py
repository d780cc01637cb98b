"""The picture of a training: words and leaders beside the decision plane, and the accuracy by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...plot.style import FAINT, INK, PALETTE, REST, styled
from .classifier import Classifier
from .fit import BASELINE, NETWORK

LABELLED = 14
POSITIVE_COLOUR, NEGATIVE_COLOUR = PALETTE[0], PALETTE[1]


def draw(
    result: Mapping[str, Any], classifier: Classifier, vocabulary: tuple[str, ...], path: Path
) -> None:
    """Write the picture."""
    with styled() as plt:
        figure, (plane, epochs) = plt.subplots(
            1, 2, figsize=(9.0, 4.6), width_ratios=(3, 2), layout="constrained"
        )
        try:
            _plane(plane, result, classifier, vocabulary)
            _epochs(epochs, result)
            figure.savefig(path)
        finally:
            plt.close(figure)


def _plane(
    axes: Any, result: Mapping[str, Any], classifier: Classifier, vocabulary: tuple[str, ...]
) -> None:
    """Words as they are embedded; for d > 2 their sentiment against their length."""
    places = np.asarray(classifier.embedding, float)[1:]
    sentiment = np.asarray(classifier.sentiment(classifier.embedding[1:]), float)
    flat = places.shape[1] == 2
    shown = places if flat else np.stack([sentiment, np.linalg.norm(places, axis=1)], axis=1)
    number = {word: index for index, word in enumerate(vocabulary)}
    leaders = result["leaders"]["words"]
    rows = np.array([number[entry["word"]] for entry in leaders], int)
    often = np.array([entry["leads"] for entry in leaders], float)
    axes.scatter(*shown.T, s=3, color=FAINT, lw=0, zorder=1, rasterized=True, label="words")
    for positive, colour in ((True, POSITIVE_COLOUR), (False, NEGATIVE_COLOUR)):
        chosen = (sentiment[rows] > 0) == positive
        axes.scatter(
            *shown[rows[chosen]].T,
            # Nobody leads where no test review holds a known word.
            s=3 + 90 * often[chosen] / often.max(initial=1.0),
            color=colour,
            alpha=0.6,
            lw=0,
            zorder=2,
            label=f"leaders for {result['data']['labels'][int(positive)]}",
        )
    _decision_line(axes, result[NETWORK], flat)
    axes.set(
        xlabel="$z_1$" if flat else r"sentiment $\langle v, z\rangle + b$",
        ylabel="$z_2$" if flat else "length $|z|$",
        title="Word vectors; a larger dot leads in more reviews",
    )
    axes.legend(loc="best", fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")
    _label(
        axes, shown[_to_label(sentiment[rows], rows)], _to_label(sentiment[rows], rows), vocabulary
    )


def _to_label(sentiment: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The most frequent leaders of both sides in turn."""
    sides = [rows[sentiment > 0][:LABELLED], rows[sentiment <= 0][:LABELLED]]
    longest = max(map(len, sides))
    return np.array([side[i] for i in range(longest) for side in sides if i < len(side)], int)


def _decision_line(axes: Any, network: Mapping[str, Any], flat: bool) -> None:
    """<v, z> + b = 0."""
    style = {"color": INK, "lw": 1.0, "ls": "--", "zorder": 3, "label": "decision line"}
    if not flat:
        axes.axvline(0.0, **style)
        return
    v = np.array(network["direction"])
    foot = -network["bias"] * v / (v @ v)
    axes.axline(foot, foot + np.array([-v[1], v[0]]) / np.linalg.norm(v), **style)
    axes.set_aspect("equal", adjustable="datalim")


def _label(axes: Any, places: np.ndarray, rows: np.ndarray, vocabulary: tuple[str, ...]) -> None:
    """Names beside the dots; one that would cover another is left out."""
    from matplotlib.patheffects import withStroke

    axes.figure.canvas.draw()
    taken: list[Any] = []
    inside = axes.get_window_extent()
    for place, row in zip(places, rows, strict=True):
        text = axes.annotate(
            vocabulary[row], place, xytext=(4, 3), textcoords="offset points", fontsize=7, zorder=4
        )
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
        box = text.get_window_extent()
        fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 and box.y1 <= inside.y1
        if not fits or any(box.overlaps(other) for other in taken):
            text.remove()
        else:
            taken.append(box)


def _epochs(axes: Any, result: Mapping[str, Any]) -> None:
    """Validation accuracy of both networks, and the test accuracy of their best epochs."""
    depth = result[NETWORK]["depth"]
    styles = {
        NETWORK: (INK, f"hardmax, depth {depth}"),
        BASELINE: (REST, "bag of words, depth 0"),
    }
    for name, (colour, label) in styles.items():
        network = result[name]
        accuracy = network["history"]["validation_accuracy"]
        axes.plot(np.arange(1, len(accuracy) + 1), accuracy, ".-", color=colour, label=label)
        test = network["accuracy"]["test"]
        axes.errorbar(
            network["best_epoch"],
            test["share"],
            [[test["share"] - test["low"]], [test["high"] - test["share"]]],
            fmt="D",
            ms=4,
            capsize=2,
            color=colour,
            mfc="white",
        )
    axes.set(
        xlabel="epoch",
        ylabel="accuracy",
        title="Validation by epoch; diamonds: test",
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="lower right", fontsize=7)
