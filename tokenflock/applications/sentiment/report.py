"""What a training found: accuracies with their intervals, losses, leaders, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.stats import binomtest

from .classifier import Classifier, hard, soft
from .fit import MEASURED, NETWORK, Trainee, depths, evaluate
from .leaders import Following, WordCounts, count_words, follow
from .reviews import PARTS, Data, Part
from .settings import Settings

CONFIDENCE = 0.95
# Leaders are looked for in so many test reviews at most: float64, and all layers are kept.
REVIEWS_FOR_LEADERS = 2000


def measure(
    trainees: Mapping[str, Trainee],
    data: Data,
    settings: Settings,
    tell: Callable[[str], None] = lambda note: None,
) -> dict[str, Any]:
    """Everything that follows from the best epochs and the data, and nothing that depends on the clock."""
    networks = {}
    for name, depth in depths(settings).items():
        tell(f"evaluating the {name}")
        networks[name] = _network(trainees[name], depth, data, settings)
    tell("looking for leaders")
    best = trainees[NETWORK].best
    tokens = data.test.tokens[:REVIEWS_FOR_LEADERS]
    found = follow(best, tokens, settings.depth)
    words = count_words(found, tokens, len(data.vocabulary))
    return {
        **networks,
        "leaders": {
            **_per_review(found),
            "words": word_rows(words, best, data.vocabulary),
            "norms": _norms(words, best),
        },
    }


def _network(trainee: Trainee, depth: int, data: Data, settings: Settings) -> dict[str, Any]:
    best = trainee.best
    alpha = float(best.alpha)
    accuracy, losses = {}, {}
    for name in PARTS:
        part: Part = getattr(data, name)
        found = evaluate(best, part.tokens, depth, hard())
        accuracy[name] = interval(int(np.sum((found > 0) == (part.labels > 0.5))), len(found))
        losses[name] = _cross_entropy(found, part.labels)
    surrogate = evaluate(best, data.test.tokens, depth, soft(settings.tau))
    return {
        "depth": depth,
        "best_epoch": trainee.best_epoch,
        "accuracy": accuracy,
        "loss": losses,
        "test_loss_of_the_softmax_surrogate": _cross_entropy(surrogate, data.test.labels),
        "alpha": alpha,
        "contraction": float((1 + alpha) ** -depth),
        "direction": np.asarray(best.direction, float).tolist(),
        "bias": float(best.bias),
        "history": {
            name: trainee.history[:, column].tolist() for column, name in enumerate(MEASURED)
        },
    }


def interval(right: int, of: int) -> dict[str, Any]:
    """A share with Wilson's 95 % interval, by scipy."""
    low, high = binomtest(right, of).proportion_ci(CONFIDENCE, method="wilson")
    return {"share": right / of, "low": float(low), "high": float(high), "reviews": of}


def _cross_entropy(found: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0.0, np.where(labels > 0.5, -found, found))))


def _per_review(found: Following) -> dict[str, Any]:
    """Leaders per review, how many led from the start, and how often their vote is the network's answer."""
    count = found.leader.sum(axis=1)
    at_once = np.sum(found.leader & (found.born == 0))
    return {
        "reviews": int(count.size),
        "mean": float(count.mean()),
        "std": float(count.std()),
        "min": int(count.min()),
        "max": int(count.max()),
        "share_from_layer_0": float(at_once / max(int(count.sum()), 1)),
        "vote_agrees": float(np.mean((found.vote > 0) == (found.logit > 0))),
        "vote_distance": float(np.median(np.abs(found.vote - found.logit))),
    }


def word_rows(
    words: WordCounts, classifier: Classifier, vocabulary: tuple[str, ...]
) -> list[dict[str, Any]]:
    """One row per word that leads anywhere, the most frequent leader first."""
    norms = np.linalg.norm(np.asarray(classifier.embedding, float)[1:], axis=1)
    order = sorted(np.flatnonzero(words.leads), key=lambda i: (-words.leads[i], vocabulary[i]))
    return [
        {
            "word": vocabulary[i],
            "leads": int(words.leads[i]),
            "occurs": int(words.occurs[i]),
            "from_layer_0": float(words.at_once[i] / words.leads[i]),
            "sentiment": float(words.sentiment[i]),
            "norm": float(norms[i]),
        }
        for i in order
    ]


def _norms(words: WordCounts, classifier: Classifier) -> dict[str, Any]:
    """Median length of the words that lead somewhere and of those that occur and never lead."""
    norms = np.linalg.norm(np.asarray(classifier.embedding, float)[1:], axis=1)
    groups = {"leading": words.leads > 0, "never": (words.leads == 0) & (words.occurs > 0)}
    return {
        name: float(np.median(norms[chosen])) if chosen.any() else None
        for name, chosen in groups.items()
    }
