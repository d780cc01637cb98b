"""Read a finished trace: means over texts, bands, groups of merged tokens, numbers as words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import require
from ..trajectory import Trajectory
from .cloud import BLOCK_PAIRS, join

BAND = (5.0, 95.0)
# How byte-level and sentence-piece vocabularies write a space.
SPACE_MARKS = ("Ġ", "▁")
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

    Connected components as in `cloud`. O(n^2 d) time, O(n d) memory.
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


def attended_label(run: Trajectory, token: int, mark: str = "token ") -> str:
    """Name and place of a token that attention sees; the cloud may have left out the first one.

    With several texts there is no common name: the place is said.
    """
    if texts(run) > 1 or "column_mass" not in run:
        return "the first token" if token == 0 else f"token {token}"
    skipped = 1 if facts(run).get("without_first") else 0
    if token < skipped:
        return "the first token"
    return token_label(run, token - skipped, mark)


def token_label(run: Trajectory, token: int, mark: str = "token ") -> str:
    """A token of a single text by name and place, counted from 0."""
    return f"{shown(labels(run)[0][token])} ({mark}{token})"


def shown(label: str, most: int = 16) -> str:
    """A label on one line: the marks of a space read as one, and what does not print is escaped."""
    for mark in SPACE_MARKS:
        label = label.replace(mark, "␣")
    visible = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in label)
    return visible if len(visible) <= most else visible[: most - 1] + "…"


def drawn(text: str) -> str:
    """Text for matplotlib, which would read dollar signs as formulas."""
    return text.replace("$", r"\$")


def number(value: float) -> str:
    """Three figures, thousands separated."""
    if not np.isfinite(value):
        return "no number"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def count(value: float, what: str) -> str:
    """A number of things; a mean over texts has one decimal."""
    whole = float(value).is_integer()
    return f"{value:.0f} {what}{'' if value == 1 else 's'}" if whole else f"{value:.1f} {what}s"


def percent(share: float | np.floating) -> str:
    """A share in per cent; neither end is reached by rounding."""
    value = 100.0 * float(share)
    if 0 < value < 0.1:
        return "under 0.1 %"
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def in_layers(places: list[int]) -> str:
    """[2, 3, 4, 7] as "layers 2-4, 7"."""
    return f"layer{'' if len(places) == 1 else 's'} {ranges(places)}"


def ranges(places: list[int]) -> str:
    """[2, 3, 4, 7] as "2-4, 7"."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def changes(run: Trajectory) -> str:
    """The interventions in a few words, "as trained" without any."""
    said = {
        "mlp": lambda value: "no feed-forward",
        "attention": lambda value: "no attention",
        "repeat": lambda value: f"stack x {value}",
        "beta_scale": lambda value: f"beta x {value:g}",
        "swap_values": lambda value: f"values {value}",
        "start": lambda value: f"{value} start",
    }
    found = facts(run)["interventions"]
    words = [said[name](value) for name, value in found.items() if name in said]
    return ", ".join(words) or "as trained"
