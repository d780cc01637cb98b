"""Tokens, numbers, layers and interventions of a trace as they are written in sentences and tables."""

from __future__ import annotations

import numpy as np

from ..trajectory import Trajectory
from .trace_values import facts, labels, texts

# How byte-level and sentence-piece vocabularies write a space.
SPACE_MARKS = ("Ġ", "▁")


def attended_label(run: Trajectory, token: int, mark: str = "token ") -> str:
    """Name and place of a token that attention sees; the states may be without the first one.

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
