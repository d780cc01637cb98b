"""2407.01602: the role of clustering in sentiment analysis, on reviews whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....applications.sentiment.fit import BASELINE, NETWORK, Trainee, depths, start, train_epoch
from ....applications.sentiment.leaders import count_words, follow
from ....applications.sentiment.reviews import prepare
from ....applications.sentiment.settings import Settings
from ....applications.sentiment.synthetic import NEGATIVE, POSITIVE, WORDS, synthetic_reviews
from ....ledger.figure import FigureJob
from ....plot.style import FAINT, INK, PALETTE, REST
from .. import PAPER

MEANINGS = {"neutral": FAINT, "negative": PALETTE[1], "positive": PALETTE[0]}


@PAPER.figure(
    "sentiment",
    title="Polar words become leaders",
    shows="a hardmax classifier that knows nothing of words makes the polar ones long, so that they lead, on "
    "their sides of the decision line; neutral ones stay short, or lead along the line, where they say "
    "nothing; a bag of words beside it is at least as accurate",
    quick={
        "reviews": 3000,
        "d": 2,
        "depth": 4,
        "epochs": 25,
        "batch": 32,
        "tau": 1e-3,
        "rate": 2e-2,
    },
    paper={"reviews": 6000, "depth": 8, "epochs": 30, "batch": 64, "rate": 1e-2},
)
def sentiment(job: FigureJob) -> xr.Dataset:
    """Both networks trained on synthetic reviews; lengths of words and validation accuracy by epoch."""
    sizes = ("d", "depth", "epochs", "batch", "tau", "rate")
    settings = Settings(**{name: job.values[name] for name in sizes}, length=WORDS, seed=job.seed)
    data = prepare(synthetic_reviews(job.reviews, job.seed), settings)
    trainees, lengths = start(settings, len(data.vocabulary)), []
    for epoch in range(settings.epochs):
        for name, depth in depths(settings).items():
            trainees[name] = train_epoch(
                trainees[name], depth, data, settings, lambda done, note: None
            )
        lengths.append(_lengths(trainees[NETWORK]))
        job.report((epoch + 1) / settings.epochs)
    last = trainees[NETWORK].classifier
    found = follow(last, data.test.tokens, settings.depth)
    counts = count_words(found, data.test.tokens, len(data.vocabulary))
    return xr.Dataset(
        {
            "place": (("word", "axis"), np.asarray(last.embedding, float)[1:]),
            "meaning": ("word", [_meaning(word) for word in data.vocabulary]),
            "leads": ("word", counts.leads / np.maximum(counts.occurs, 1)),
            "length": (("epoch", "word"), np.array(lengths)),
            "accuracy": (
                ("network", "epoch"),
                [trainees[name].history[:, 1] for name in (NETWORK, BASELINE)],
            ),
            "direction": ("axis", np.asarray(last.direction, float)),
            "bias": float(last.bias),
            "alpha": float(last.alpha),
        },
        coords={
            "word": list(data.vocabulary),
            "network": [NETWORK, BASELINE],
            "epoch": np.arange(1, settings.epochs + 1),
        },
    )


def _lengths(trainee: Trainee) -> np.ndarray:
    return np.linalg.norm(np.asarray(trainee.classifier.embedding, float)[1:], axis=1)


def _meaning(word: str) -> str:
    return "positive" if word in POSITIVE else "negative" if word in NEGATIVE else "neutral"


@sentiment.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (plane, length, accuracy) = plt.subplots(
        1, 3, figsize=(9.6, 3.4), width_ratios=(1.25, 1, 1), layout="constrained"
    )
    _plane(plane, data)
    _by_epoch(length, data)
    for name, colour in ((NETWORK, INK), (BASELINE, REST)):
        accuracy.plot(data.epoch, data.accuracy.sel(network=name), color=colour, label=name)
    accuracy.set(xlabel="epoch", ylabel="validation accuracy", title="Beside a bag of words")
    accuracy.legend(loc="lower right")
    return figure


def _plane(axes: Any, data: xr.Dataset) -> None:
    """Word vectors; a larger dot leads in a larger share of the reviews it occurs in."""
    for meaning, colour in MEANINGS.items():
        chosen = data.meaning.values == meaning
        sizes = 6 + 60 * data.leads.values[chosen]
        axes.scatter(
            *data.place.values[chosen].T, s=sizes, color=colour, lw=0, alpha=0.8, label=meaning
        )
    v, b = data.direction.values, float(data.bias)
    foot = -b * v / (v @ v)
    along = foot + np.array([-v[1], v[0]]) / np.linalg.norm(v)
    axes.axline(foot, along, color=INK, lw=1, ls="--", label="decision line")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="$z_1$", ylabel="$z_2$", title="Word vectors; larger dots lead more")
    axes.legend(loc="best", markerscale=0.8, fontsize=7)


def _by_epoch(axes: Any, data: xr.Dataset) -> None:
    """Mean length of the words of each meaning."""
    for meaning, colour in MEANINGS.items():
        chosen = data.meaning.values == meaning
        shade = REST if meaning == "neutral" else colour
        axes.plot(
            data.epoch, data.length.values[:, chosen].mean(axis=1), color=shade, label=meaning
        )
    axes.set(xlabel="epoch", ylabel="mean length $|z|$", title="Polar words grow", ylim=(0, None))
    axes.legend(loc="upper left", fontsize=7)
