"""Where the positions of a sweep's axes lie in its picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .sweep_text import number, words

# A cell narrower than this share of the mean one would be lost in the picture.
NARROWEST = 0.1


@dataclass(frozen=True)
class Scale:
    """Where the positions of an axis lie in a picture.

    places -- one number per position, growing with `order`;
    names -- the words at these places, if they are no numbers;
    labels -- the values at these places, if they are numbers too unevenly spaced to lie by their size.
    """

    label: str
    places: np.ndarray
    order: np.ndarray
    names: tuple[str, ...] | None = None
    log: bool = False
    labels: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands at each place."""
        return self.names or self.labels or tuple(f"{place:.4g}" for place in self.places)

    @property
    def edges(self) -> np.ndarray:
        """Boundaries of the cells around the places, in the order of the places."""
        places = self.places[self.order]
        inner = np.log(places) if self.log else places
        if len(inner) == 1:
            middles = np.array([inner[0] - 0.5, inner[0] + 0.5])
        else:
            between = (inner[1:] + inner[:-1]) / 2
            ends = 2 * inner[[0, -1]] - between[[0, -1]]
            middles = np.concatenate([ends[:1], between, ends[1:]])
        return np.exp(middles) if self.log else middles


def scale_of(dataset: Any, axis: str) -> Scale | None:
    """Places of an axis, or None if its cells are points of a space of several settings (random search).

    Zipped settings lie along the first of them that grows or falls throughout.
    """
    beside = beside_of(dataset, axis)
    if not beside:
        given = dataset[axis].values if axis in dataset.coords else np.arange(dataset.sizes[axis])
        return _spaced(words(axis), np.asarray(given))
    for name, values in beside.items():
        if is_number(values) and abs(int(np.sign(np.diff(values)).sum())) == len(values) - 1:
            others = [words(other) for other in beside if other != name]
            note = f" (with {', '.join(others)})" if others else ""
            return _spaced(words(name) + note, values)
    if any(map(is_number, beside.values())):
        return None
    joined = [", ".join(map(number, row)) for row in zip(*beside.values(), strict=True)]
    return _spaced(words(axis), np.asarray(joined))


def beside_of(dataset: Any, axis: str) -> dict[str, np.ndarray]:
    """Coordinates of zipped and random settings along an axis."""
    return {
        str(name): np.asarray(coordinate.values)
        for name, coordinate in dataset.coords.items()
        if coordinate.dims == (axis,) and name != axis
    }


def is_number(values: np.ndarray) -> bool:
    """Whether values can be places, rather than words or truth values."""
    return values.dtype.kind in "fiu"


def at_position(dataset: Any, axis: str, position: int) -> str:
    """What an axis sets at a position, in words: all of it where several settings change together."""
    beside = beside_of(dataset, axis)
    if beside:
        values = {words(name): column[position] for name, column in beside.items()}
    else:
        own = dataset[axis].values if axis in dataset.coords else np.arange(dataset.sizes[axis])
        values = {words(axis): np.asarray(own)[position]}
    return ", ".join(f"{name} = {number(value.item())}" for name, value in values.items())


def time_scale(dataset: Any) -> Scale:
    """Places of the saved times; those of a log scale begin behind t = 0."""
    times = np.asarray(dataset["time"].values, float)
    if len(times) > 3 and times[0] == 0 and is_log(times[1:]):
        return Scale("time t", times, np.arange(1, len(times)), log=True)
    return _scale("time t", times)


def _spaced(label: str, values: np.ndarray) -> Scale:
    """A scale on which every cell can be seen: by size, or else one beside the other."""
    scale = _scale(label, values)
    if scale.names or scale.log or len(values) < 3:
        return scale
    widths = np.diff(scale.edges)
    if np.all(np.isfinite(widths)) and widths.min() >= NARROWEST * widths.mean():
        return scale
    ranks = np.empty(len(values))
    ranks[scale.order] = np.arange(len(values))
    return Scale(label, ranks, scale.order, labels=scale.texts)


def _scale(label: str, values: np.ndarray) -> Scale:
    if not is_number(values):
        names = tuple(number(value) for value in values.tolist())
        places = np.arange(len(names), dtype=float)
        return Scale(label, places, np.arange(len(names)), names)
    places = values.astype(float)
    return Scale(label, places, np.argsort(places, kind="stable"), log=is_log(np.sort(places)))


def is_log(places: np.ndarray) -> bool:
    """Whether growing numbers lie evenly on a log scale rather than on a plain one."""
    if len(places) < 3 or places[0] <= 0 or places[-1] < 4 * places[0]:
        return False

    def unevenness(gaps: np.ndarray) -> float:
        return float(gaps.std() / max(gaps.mean(), 1e-300))

    ratios = unevenness(np.diff(np.log(places)))
    return ratios < 0.3 and ratios < unevenness(np.diff(places))


def influence(setting: np.ndarray, values: np.ndarray) -> float:
    """Share of the values' variance that lies between groups of like settings.

    Less what as many groups explain by chance (the adjusted R^2 of one-way analysis of variance).
    """
    known = np.isfinite(values)
    count = int(known.sum())
    if not is_number(setting) or count < 3:
        return 0.0
    # By size, so that huge values do not overflow when they are squared.
    kept = values[known] / max(float(np.abs(values[known]).max()), 1e-300)
    if not np.var(kept):
        return 0.0
    ranks = np.searchsorted(np.unique(setting), setting)[known]
    groups = ranks * min(8, len(np.unique(ranks)), count // 2) // (ranks.max() + 1)
    names = np.unique(groups)
    within = sum(float(np.var(kept[groups == name])) * np.sum(groups == name) for name in names)
    left = within / (count * float(np.var(kept))) * (count - 1) / max(count - len(names), 1)
    return 1.0 - left
