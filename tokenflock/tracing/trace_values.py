"""Values of a finished trace: what it says of its model, means over texts, bands, merged tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import require
from ..trajectory import Trajectory
from .state_statistics import BLOCK_PAIRS, join

BAND = (5.0, 95.0)
# Names of tokens, dimensions: numbers whose mean over texts would mean nothing.
INDICES = ("sink_token", "outlier_dimension")


def facts(run: Trajectory) -> dict[str, Any]:
    """What `trace` says about the model and the text; any other run is refused."""
    found = run.attributes.get("trace")
    require(
        isinstance(found, dict),
        f"{run.attributes.get('label', 'this run')} is not a trace of a model; make one with "
        "flock.trace(model, text) or tokenflock trace",
    )
    assert isinstance(found, dict)
    return found


def labels(run: Trajectory) -> list[list[str]]:
    """What the tokens of each text are called."""
    return facts(run)["tokens"]


def texts(run: Trajectory) -> int:
    """Number of texts."""
    return len(labels(run))


def lengths(run: Trajectory) -> np.ndarray:
    """Number of tokens of each text."""
    return np.array([len(each) for each in labels(run)])


def depth(run: Trajectory) -> int:
    """Number of layers L a token went through, loops counted."""
    return len(run.time) - 1


def by_text(run: Trajectory, name: str) -> np.ndarray:
    """One variable with an axis of texts in front, also for a single text."""
    values = np.asarray(run.array(name))
    return values if run.axes[name][:1] == ("sample",) else values[None]


def mean(run: Trajectory, name: str) -> np.ndarray:
    """Mean over texts; the most frequent value where numbers are names (a token, a dimension)."""
    values = by_text(run, name)
    if name in INDICES:
        return most_frequent(values)
    if len(values) == 1:
        return np.asarray(values[0], dtype=float)
    kept = np.isfinite(values)
    total = np.where(kept, values, 0.0).sum(axis=0)
    count = kept.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def most_frequent(values: np.ndarray) -> np.ndarray:
    """Mode over the first axis; the smallest one of a tie."""
    if len(values) == 1:
        return values[0]
    flat = values.reshape(len(values), -1)
    found = [np.unique(column, return_counts=True) for column in flat.T]
    return np.array([each[counts.argmax()] for each, counts in found]).reshape(values.shape[1:])


def band(run: Trajectory, name: str) -> tuple[np.ndarray, np.ndarray]:
    """5 % and 95 % over texts; texts without the number (one token has no pair) are left out."""
    values = np.asarray(by_text(run, name), dtype=float)
    useful = values[np.isfinite(values.reshape(len(values), -1)).all(axis=1)]
    if not len(useful):
        return np.full(values.shape[1:], np.nan), np.full(values.shape[1:], np.nan)
    low, high = np.percentile(useful, BAND, axis=0)
    return low, high


def groups(run: Trajectory, angle: float) -> list[list[int]]:
    """Tokens of the last layer in the same cluster at `angle` (one text), largest group first.

    Connected components as in `state_statistics`. O(n^2 d) time, O(n d) memory.
    """
    points = np.asarray(run.array("final_points"), dtype=float)
    n = len(points)
    found = np.arange(n, dtype=np.int32)
    block = max(1, BLOCK_PAIRS // n)
    for start in range(0, n, block):
        close = points[start : start + block] @ points[start:].T >= np.cos(angle)
        found = join(found, close, start)
    members: dict[int, list[int]] = {}
    for token, group in enumerate(found.tolist()):
        members.setdefault(group, []).append(token)
    return sorted((each for each in members.values() if len(each) > 1), key=len, reverse=True)


def chosen_layers(states: int, most: int) -> list[int]:
    """At most `most` states from the first to the last, evenly spaced."""
    return sorted({round(at) for at in np.linspace(0, states - 1, min(most, states))})
