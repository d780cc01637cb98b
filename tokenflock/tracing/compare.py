"""Traces side by side: several checkpoints, or one with and without interventions.

The runs are called A, B, C, ... in the order given; differences are taken against A.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import require
from ..results.strict_json import plain
from ..trajectory import Trajectory
from .trace_values import depth, facts, labels, lengths, mean, texts
from .verdict import LAYER_SERIES, STATE_SERIES, verdict
from .wording import changes, number

# Mean cosines further apart than this are said to differ.
DIFFERS = 0.1
# Series whose means over depth differ by this factor are named.
FACTOR = 1.5
HEADS = ("attention_entropy_share", "sink_share", "first_mass", "beta_logits")


def compare(*runs: Trajectory) -> dict[str, Any]:
    """All verdicts, and every series that all runs have with its differences from A, as strict JSON.

    Layers are compared one to one where all have the same depth or are passes through the same
    checkpoint (then over the layers all have); otherwise at the same relative depth l/L, by linear
    interpolation on the deepest grid. `aligned` says which. Heads are averaged.
    """
    letters = letters_of(runs)
    how, grid = alignment(runs)
    series = {
        name: _side_by_side(runs, letters, name, how, grid)
        for name in (*STATE_SERIES, *LAYER_SERIES, *HEADS)
        if all(name in run for run in runs) and name != "outlier_dimension"
    }
    found = {
        **{letter: _about(run, runs[0]) for letter, run in zip(letters, runs, strict=True)},
        "runs": letters,
        "aligned": how,
        "depth": grid,
        "layers": series,
        "first_difference": _first(series, grid),
    }
    found["words"] = _words(runs, letters, found)
    return plain(found)


def letters_of(runs: Sequence[Trajectory]) -> list[str]:
    """ "a", "b", "c", ...: what the runs are called in the result."""
    most = len(string.ascii_lowercase)
    require(2 <= len(runs) <= most, f"two to {most} traces are compared at a time, got {len(runs)}")
    return list(string.ascii_lowercase[: len(runs)])


def names(*runs: Trajectory) -> list[str]:
    """What tells the runs apart: the intervention, the model, or both; letters where nothing does."""
    models = [facts(run)["model"]["name"] for run in runs]
    changed = [changes(run) for run in runs]
    if len(set(models)) == 1:
        said = changed
    elif set(changed) == {"as trained"}:
        said = models
    else:
        said = [f"{model}, {change}" for model, change in zip(models, changed, strict=True)]
    letters = letters_of(runs)
    return [f"{letter.upper()}: {words}" for letter, words in zip(letters, said, strict=True)]


def alignment(runs: Sequence[Trajectory]) -> tuple[str, np.ndarray]:
    """How layers are matched, and at which places: layers, or relative depths."""
    sources = {facts(run)["model"].get("source") for run in runs}
    same = len(sources) == 1 and bool(next(iter(sources)))
    depths = [depth(run) for run in runs]
    if len(set(depths)) == 1 or same:
        return "layer", np.arange(min(depths) + 1, dtype=float)
    return "relative depth", np.arange(max(depths) + 1) / max(depths)


def _about(run: Trajectory, first: Trajectory) -> dict[str, Any]:
    found = facts(run)
    return {
        "model": found["model"],
        "interventions": found["interventions"],
        "texts": texts(run),
        "tokens": float(lengths(run).mean()),
        "layers": depth(run),
        "verdict": asdict(verdict(run)),
        "notes": found["notes"],
        "missing": found["missing"],
        "same_tokens": labels(run) == labels(first),
    }


def _side_by_side(
    runs: Sequence[Trajectory], letters: list[str], name: str, how: str, grid: np.ndarray
) -> dict[str, Any]:
    values = {letter: _at(run, name, how, grid) for letter, run in zip(letters, runs, strict=True)}
    others = letters[1:]
    return {**values, "difference": {each: values[each] - values["a"] for each in others}}


def _at(run: Trajectory, name: str, how: str, grid: np.ndarray) -> np.ndarray:
    """One series on the grid; a step from l - 1 to l stands at the middle of the two depths."""
    values = mean(run, name)
    values = values.mean(axis=-1) if values.ndim > 1 else values
    steps = len(values) == depth(run)
    if how == "layer":
        return values[: len(grid) - 1] if steps else values[: len(grid)]
    places = (np.arange(len(values)) + (0.5 if steps else 0.0)) / depth(run)
    wanted = (grid[1:] + grid[:-1]) / 2 if steps else grid
    return np.interp(wanted, places, values)


def _first(series: dict[str, Any], grid: np.ndarray) -> dict[str, Any]:
    """Where the mean cosines of each run first differ from A's by more than 0.1."""
    places = {}
    for letter, gaps in series["mean_cosine"]["difference"].items():
        wide = np.flatnonzero(np.abs(gaps) > DIFFERS)
        places[letter] = float(grid[wide[0]]) if len(wide) else None
    return {"series": "mean_cosine", "threshold": DIFFERS, "at": places}


# --- in words ---


def _words(runs: Sequence[Trajectory], letters: list[str], found: dict[str, Any]) -> list[str]:
    said = [
        _verdicts(letters, found),
        *(_apart(found, letter) for letter in letters[1:]),
        _ends(runs, letters),
        *_largest(letters, found),
        *_depths(runs, letters, found["aligned"]),
        *_tokens(letters, found),
    ]
    return [sentence[:1].upper() + sentence[1:] + "." for sentence in said]


def _verdicts(letters: list[str], found: dict[str, Any]) -> str:
    words = [found[letter]["verdict"]["word"] for letter in letters]
    if len(set(words)) == 1:
        return f"{'both' if len(words) == 2 else 'all'}: {words[0]}"
    return "; ".join(
        f"{letter.upper()}: {word}" for letter, word in zip(letters, words, strict=True)
    )


def _apart(found: dict[str, Any], letter: str) -> str:
    at, steps = found["first_difference"]["at"][letter], found["layers"]["mean_cosine"]
    change = steps["difference"][letter]
    gaps = np.abs(change)
    unit = "layer" if found["aligned"] == "layer" else "relative depth"
    both = f"mean cosines of A and {letter.upper()}"
    if at is None:
        largest = np.nanmax(gaps, initial=0.0)
        return f"{both} never differ by more than {DIFFERS:g} (most {largest:.3f})"
    place = int(np.nanargmax(gaps))
    return (
        f"{both} first differ by more than {DIFFERS:g} at {unit} {at:.3g}, and most at {unit} "
        f"{found['depth'][place]:.3g} ({change[place]:+.3f})"
    )


def _ends(runs: Sequence[Trajectory], letters: list[str]) -> str:
    parts = [
        f"{letter.upper()} has a sphere cosine of {mean(run, 'sphere_cosine')[-1]:.3f}, "
        f"{number(mean(run, 'clusters')[-1])} clusters of {number(lengths(run).mean())} tokens and an "
        f"effective rank of {number(mean(run, 'effective_rank')[-1])}"
        for letter, run in zip(letters, runs, strict=True)
    ]
    return "at the end " + "; ".join(parts)


def _largest(letters: list[str], found: dict[str, Any]) -> list[str]:
    """Other series whose means over depth differ by more than a factor of 1.5."""
    said = []
    for name in (
        "norm_median",
        "turning_angle",
        "attention_entropy_share",
        "sink_share",
        "beta_logits",
    ):
        values = found["layers"].get(name)
        if values is None:
            continue
        sizes = {letter: float(np.nanmean(np.abs(values[letter]))) for letter in letters}
        if min(sizes.values()) > 0 and max(sizes.values()) > FACTOR * min(sizes.values()):
            each = ", ".join(
                f"{number(size)} in {letter.upper()}" for letter, size in sizes.items()
            )
            said.append(f"{name.replace('_', ' ')} {each}")
    return ["means over depth that differ by half or more: " + "; ".join(said)] if said else []


def _depths(runs: Sequence[Trajectory], letters: list[str], aligned: str) -> list[str]:
    depths = [depth(run) for run in runs]
    if len(set(depths)) == 1:
        return []
    others = zip(letters[1:], depths[1:], strict=True)
    counts = [f"A has {depths[0]} layers", *(f"{name.upper()} {count}" for name, count in others)]
    listed = f"{', '.join(counts[:-1])} and {counts[-1]}"
    if aligned != "layer":
        return [f"{listed}: they are compared at equal relative depth"]
    return [
        f"{listed} of the same checkpoint: the common layers are compared one to one, the ends as they "
        "are"
    ]


def _tokens(letters: list[str], found: dict[str, Any]) -> list[str]:
    others = [letter.upper() for letter in letters if not found[letter]["same_tokens"]]
    if not others:
        return []
    return [
        f"{' and '.join(others)} did not read the same tokens as A: differences come from the text as "
        "well"
    ]
