"""One panel of a sweep's picture: a heatmap, lines, points of a random search, or a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .style import INK, PALETTE
from .sweep_numbers import Numbers
from .sweep_scales import Scale, beside_of, influence, is_number
from .sweep_text import number, words

MOST_LINES, MOST_TICKS = len(PALETTE), 8
MISSING_COLOUR = "#E6E6E6"
# Marks are found again by these names, so that a legend explains what is there and nothing else.
CROSS, HATCH, GREY = "runs failed", "no run succeeded", "not computed"
# Inches of a letter, and of a line, on an axis.
LETTER, LINE = 0.075, 0.16
MOST_BARS, FEWEST_IN_BARS = 40, 8


@dataclass(frozen=True)
class Room:
    """Inches that a panel has for what stands along its axes."""

    wide: float
    high: float


@dataclass(frozen=True)
class Cloud:
    """Which settings of a random search a picture shows: those that explain most of the statistic.

    colours -- a setting of words, told apart by colour; left -- settings that vary without being shown.
    """

    across: tuple[str, ...]
    colours: str | None
    left: tuple[str, ...]


def cloud_of(dataset: Any, axis: str, numbers: list[Numbers]) -> Cloud:
    """The same settings for all panels."""
    beside = beside_of(dataset, axis)
    values = [one.mean for one in numbers]
    found = [name for name in beside if is_number(beside[name])]
    ranked = sorted(found, key=lambda name: -sum(influence(beside[name], v) for v in values))
    few = [name for name in beside if name not in found and _kinds(beside[name]) <= MOST_LINES]
    across = tuple(ranked[:2])
    colours = few[0] if len(across) == 1 and few else None
    left = tuple(name for name in beside if name not in (*across, colours))
    return Cloud(across, colours, left)


def _kinds(values: np.ndarray) -> int:
    return len(set(values.tolist()))


def heatmap(
    axes: Any,
    down: Scale,
    along: Scale,
    numbers: Numbers,
    over_time: bool,
    limits: tuple[float, float],
    room: Room,
) -> Any:
    """The first axis upwards, the second (or time) to the right; returns what a colour bar explains."""
    at = np.ix_(down.order, along.order)
    shape = numbers.mean.shape
    failed, missing = (
        np.broadcast_to(count[:, None] if over_time else count, shape)
        for count in (numbers.failed, numbers.missing)
    )
    mean = numbers.mean[at]
    unknown = ~np.isfinite(mean)
    untouched = unknown & (missing > 0)[at] & (failed == 0)[at]
    # Where there is no number the hatched background shows, or the grey of what is not computed yet.
    axes.patch.set(facecolor="white", hatch="/////", edgecolor=INK, linewidth=0.0)
    axes.patch.set_gid(HATCH if np.any(unknown & ~untouched) else None)
    mesh = (along.edges, down.edges)
    if untouched.any():
        from matplotlib.colors import ListedColormap

        grey = np.where(untouched, 0.0, np.nan)
        axes.pcolormesh(
            *mesh, grey, cmap=ListedColormap([MISSING_COLOUR]), rasterized=True, gid=GREY
        )
    picture = axes.pcolormesh(
        *mesh, mean, cmap="cividis", vmin=limits[0], vmax=limits[1], rasterized=True
    )
    _mark_partly_failed(axes, down, along, numbers, over_time)
    use_scale(axes, "x", along, room)
    use_scale(axes, "y", down, room)
    axes.set(xlabel=along.label, ylabel=down.label)
    return picture if not unknown.all() else None


def _mark_partly_failed(
    axes: Any, down: Scale, along: Scale, numbers: Numbers, over_time: bool
) -> None:
    partly = (numbers.failed > 0) & (numbers.failed + numbers.missing < numbers.runs)
    if not partly.any():
        return
    if over_time:
        y = down.places[partly]
        x = np.full(len(y), along.places[along.order[-1]])
    else:
        rows, columns = np.nonzero(partly)
        x, y = along.places[columns], down.places[rows]
    axes.plot(x, y, "x", color=PALETTE[1], ms=4, mew=1.2, clip_on=False, gid=CROSS)


def lines(
    axes: Any, places: list[Scale], coloured: int, numbers: Numbers, over_time: bool, room: Room
) -> None:
    """One line for every word of one axis, over the other axis or time."""
    for k, name in enumerate(places[coloured].names or ()):
        taken = {
            field: np.take(
                getattr(numbers, field), k, axis=min(coloured, getattr(numbers, field).ndim - 1)
            )
            for field in ("mean", "error", "failed", "missing")
        }
        one = Numbers(**taken, runs=numbers.runs, held=numbers.held)
        line(axes, places[1 - coloured], one, k, name, over_time, room)


def line(
    axes: Any,
    scale: Scale,
    numbers: Numbers,
    colour: int,
    label: str | None,
    over_time: bool,
    room: Room,
) -> None:
    """The mean along a scale, with a band of one standard error."""
    order, tint = scale.order, PALETTE[colour % len(PALETTE)]
    x, mean, error = scale.places[order], numbers.mean[order], np.nan_to_num(numbers.error[order])
    if scale.names:
        axes.errorbar(x, mean, yerr=error, fmt="o", color=tint, ms=4, label=label)
    else:
        style = "-" if over_time else "o-"
        axes.plot(x, mean, style, color=tint, lw=1.3, ms=2.5, label=label)
        axes.fill_between(x, mean - error, mean + error, color=tint, alpha=0.2, lw=0)
    if not over_time:
        _cross_below(axes, x, numbers.failed[order])
    use_scale(axes, "x", scale, room)
    axes.set_xlabel(scale.label)


def _cross_below(axes: Any, x: np.ndarray, failed: np.ndarray) -> None:
    """A cross on the axis below every place where runs failed."""
    at = x[failed > 0]
    if not len(at):
        return
    axes.plot(
        at, np.zeros(len(at)), "x", color=PALETTE[1], ms=5, clip_on=False, gid=CROSS,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def points(
    axes: Any,
    beside: dict[str, np.ndarray],
    cloud: Cloud,
    numbers: Numbers,
    limits: tuple[float, float],
    room: Room,
) -> Any:
    """Cells of a random search; returns what a colour bar explains, or None."""
    x = beside[cloud.across[0]]
    axes.set_xlabel(words(cloud.across[0]))
    _use_drawn(axes, "x", x, room)
    if len(cloud.across) == 1:
        return _against_statistic(axes, x, beside.get(cloud.colours or ""), numbers)
    y, known, failed = beside[cloud.across[1]], np.isfinite(numbers.mean), numbers.failed > 0
    picture = axes.scatter(
        x[known], y[known], c=numbers.mean[known], cmap="cividis", vmin=limits[0], vmax=limits[1],
        s=26, edgecolors="white", linewidths=0.4,
    )  # fmt: skip
    if failed.any():
        axes.plot(x[failed], y[failed], "x", color=PALETTE[1], ms=5, mew=1.2, gid=CROSS)
    axes.set_ylabel(words(cloud.across[1]))
    _use_drawn(axes, "y", y, room)
    return picture if known.any() else None


def _against_statistic(axes: Any, x: np.ndarray, kinds: Any, numbers: Numbers) -> None:
    """A single setting to the right, the statistic upwards; words beside it have colours."""
    error = np.nan_to_num(numbers.error)
    named = ["" for _ in x] if kinds is None else kinds.tolist()
    for k, kind in enumerate(dict.fromkeys(named)):
        own = np.array([name == kind for name in named])
        axes.errorbar(
            x[own], numbers.mean[own], yerr=error[own], fmt="o", ms=3, lw=0.8,
            color=PALETTE[k % len(PALETTE)], label=number(kind) if kinds is not None else None,
        )  # fmt: skip
    _cross_below(axes, x, numbers.failed)


def histogram(axes: Any, values: np.ndarray, label: str) -> None:
    """Of a sweep over seeds alone; a few runs are points."""
    known = values[np.isfinite(values)]
    axes.set_xlabel(label)
    if len(known) < FEWEST_IN_BARS or not np.isfinite(np.ptp(known)):
        axes.plot(known, np.zeros(len(known)), "o", color=PALETTE[0], ms=5, alpha=0.7)
        axes.set_yticks([])
        return
    bars = min(MOST_BARS, 2 + int(np.sqrt(len(known))))
    axes.hist(known, bins=bars, color=PALETTE[0], edgecolor="white")
    axes.set_ylabel("runs")


def use_scale(axes: Any, side: str, scale: Scale, room: Room) -> None:
    """The kind of an axis, its ticks and its ends."""
    if scale.log:
        axes.set(**{f"{side}scale": "log"})
    low, high = (float(end) for end in scale.edges[[0, -1]])
    axes.set(**{f"{side}lim": (low, high)})
    shown = scale.places[scale.order]
    texts = [scale.texts[k] for k in scale.order]
    if scale.names or scale.labels or (len(shown) <= MOST_TICKS and _apart(shown, scale.log)):
        set_ticks(axes, side, shown, texts, room, every=scale.names is not None)
    elif scale.log and shown[-1] < 100 * shown[0]:
        set_ticks(axes, side, shown, texts, room)


def _apart(places: np.ndarray, log: bool) -> bool:
    """Whether ticks at all places are far enough from one another."""
    inner = np.log(places) if log else places
    return len(inner) < 2 or bool(np.diff(inner).min() >= (inner[-1] - inner[0]) / 12)


def set_ticks(
    axes: Any, side: str, places: np.ndarray, texts: list[str], room: Room, every: bool = False
) -> None:
    """Ticks with texts, as many as there is room for; words are turned before any is left out."""
    across = max(len(text) for text in texts) * LETTER + LETTER
    turned = side == "x" and every and across * len(texts) > room.wide
    each = LINE if turned or side == "y" else across
    count = max(1, min(len(places), int((room.wide if side == "x" else room.high) / each)))
    at = np.arange(0, len(places), -(-len(places) // count))
    getattr(axes, f"set_{side}ticks")(places[at], [texts[k] for k in at])
    getattr(axes, f"set_{side}ticks")([], minor=True)
    if turned:
        axes.tick_params(axis="x", labelrotation=90)


def _use_drawn(axes: Any, side: str, values: np.ndarray, room: Room) -> None:
    """Settings drawn at random: over decades on a log scale, from a few choices with a tick for each."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 10 * low and np.median(values) < (low + high) / 4:
        axes.set(**{f"{side}scale": "log"})
    chosen = np.unique(values).astype(float)
    if len(chosen) <= min(MOST_TICKS, len(values) // 2):
        set_ticks(axes, side, chosen, [f"{value:.4g}" for value in chosen], room)
