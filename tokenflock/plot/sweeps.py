"""The default picture of a sweep: a heatmap, lines or points, whatever its axes are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .style import FAINT, INK, PALETTE, styled
from .sweep_facts import draw_curve, facts, heading_of, label_of, large_dimension_curve
from .sweep_numbers import (
    OWN_TIMES,
    TIME,
    Numbers,
    chosen_statistic,
    clock_of,
    each_run,
    measured,
    seed_axes,
    setting_axes,
)
from .sweep_panels import (
    CROSS,
    GREY,
    HATCH,
    MISSING_COLOUR,
    MOST_LINES,
    Cloud,
    Room,
    cloud_of,
    heatmap,
    histogram,
    line,
    lines,
    points,
)
from .sweep_scales import Scale, at_position, beside_of, scale_of, time_scale
from .sweep_text import cut, words, wrapped

MOST_PANELS = 6
# Letters of a title and of a legend per inch, and inches of a line.
LETTERS, LEGEND_LETTERS, LINE = 14, 15, 0.17
TITLE_LINES, NOTE_LINES = 2, 4


@dataclass(frozen=True)
class View:
    """What a picture shows: the axes it draws, small multiples over another one, the rest held fixed."""

    name: str
    across: list[str]
    panels: str | None
    shown: list[int]
    fixed: dict[str, int]
    keep_time: bool


def draw_sweep(dataset: Any, statistic: str | None = None) -> Any:
    """A matplotlib Figure of a sweep's dataset (its attributes `axes` and `seed_axes` say what was swept).

    Seeds are averaged; bands are one standard error. One numeric axis is drawn over time, two against
    each other at the last saved time, zipped settings along the first of them; a random search as
    points over the two settings that explain most of the statistic. Of more axes the shortest becomes
    small multiples and the others are held at their middle value. Runs that stopped early keep their last
    value, failed ones have none and are marked.

    statistic -- a number per run (and time); default: the first observable of the spec.
    """
    name = chosen_statistic(dataset, statistic)
    view = _view(dataset, name)
    with styled() as plt:
        return _drawn(plt, dataset, view)


def _view(dataset: Any, name: str) -> View:
    axes = setting_axes(dataset, name)
    fixed = {axis: 0 for axis in axes if dataset.sizes[axis] == 1}
    across = [axis for axis in axes if axis not in fixed]
    scattered = [axis for axis in across if scale_of(dataset, axis) is None]
    panels = None
    most = 1 if scattered else 2
    if len(across) > most:
        rest = [axis for axis in across if axis not in scattered[:1]]
        panels = min(rest, key=lambda axis: dataset.sizes[axis])
        rest.remove(panels)
        rest.sort(key=lambda axis: -dataset.sizes[axis])
        kept = scattered[:1] or rest[:2]
        fixed |= {axis: dataset.sizes[axis] // 2 for axis in rest if axis not in kept}
        across = [axis for axis in across if axis in kept]
    timed = clock_of(dataset[name]) == TIME and dataset.sizes[TIME] > 1
    keep_time = timed and len(across) < 2 and not scattered
    return View(name, across, panels, _spread(dataset, panels), fixed, keep_time)


def _spread(dataset: Any, panels: str | None) -> list[int]:
    """Positions that get a panel: all, or some evenly apart with both ends."""
    if panels is None:
        return [0]
    size = dataset.sizes[panels]
    return sorted({round(k) for k in np.linspace(0, size - 1, min(size, MOST_PANELS))})


def _drawn(plt: Any, dataset: Any, view: View) -> Any:
    chosen = dataset.isel(view.fixed)
    parts = [
        chosen.isel({view.panels: position}) if view.panels else chosen for position in view.shown
    ]
    numbers = [measured(part, view.name, view.across, view.keep_time) for part in parts]
    cloud = _cloud(dataset, view, numbers)
    rows = -(-len(parts) // 3)
    columns = -(-len(parts) // rows)
    wide, high = (5.4, 3.9) if len(parts) == 1 else (2.6 * columns + 0.9, 2.4 * rows + 1.1)
    room = Room(0.75 * (wide - 1.2) / columns, 0.7 * (high - 0.8) / rows)
    title = _title(dataset, view, numbers, cloud, round(wide * LETTERS))
    figure, grid = plt.subplots(
        rows, columns, figsize=(wide, high + LINE * title.count("\n")), squeeze=False,
        layout="constrained", sharex=True, sharey=True,
    )  # fmt: skip
    panels = list(grid.flat)[: len(parts)]
    limits = _limits(numbers)
    mapped = [
        _fill(axes, part, view, found, limits, room, cloud)
        for axes, part, found in zip(panels, parts, numbers, strict=True)
    ]
    for axes in list(grid.flat)[len(parts) :]:
        axes.set_visible(False)
    coloured = [picture for picture in mapped if picture is not None]
    if coloured:
        figure.colorbar(coloured[-1], ax=grid, label=label_of(dataset, view.name), shrink=0.9)
    _name_panels(dataset, view, grid, len(parts))
    _explain(figure, panels)
    figure.suptitle(title, fontsize=9, color=INK)
    return figure


def _cloud(dataset: Any, view: View, numbers: list[Numbers]) -> Cloud | None:
    if not view.across or scale_of(dataset, view.across[0]) is not None:
        return None
    return cloud_of(dataset, view.across[0], numbers)


def _limits(numbers: list[Numbers]) -> tuple[float, float]:
    """One colour scale for all panels."""
    known = np.concatenate([one.mean[np.isfinite(one.mean)] for one in numbers])
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def _fill(
    axes: Any,
    dataset: Any,
    view: View,
    numbers: Numbers,
    limits: tuple[float, float],
    room: Room,
    cloud: Cloud | None,
) -> Any:
    """Draw one panel; returns what a colour bar explains, or None."""
    label = label_of(dataset, view.name)
    if cloud is not None:
        beside = beside_of(dataset, view.across[0])
        picture = points(axes, beside, cloud, numbers, limits, room)
        if len(cloud.across) == 1:
            axes.set_ylabel(label)
        crossed = len(cloud.across) == 2 and numbers.failed.any()
        return picture if crossed else _or_say_why(axes, numbers, picture)
    places = [scale for axis in view.across if (scale := scale_of(dataset, axis)) is not None]
    if view.keep_time:
        places.append(time_scale(dataset))
    few = [k for k, scale in enumerate(places) if scale.names and len(scale.names) <= MOST_LINES]
    if len(places) == 2 and few != [0] and few != [1]:
        picture = heatmap(axes, places[0], places[1], numbers, view.keep_time, limits, room)
        curve = _curve(dataset, view, places)
        if curve is not None and picture is not None:
            draw_curve(axes, places[0], curve)
        return picture
    if len(places) == 0:
        histogram(axes, each_run(dataset, view.name), label)
        return _or_say_why(axes, numbers, None)
    if len(places) == 1:
        line(axes, places[0], numbers, 0, None, view.keep_time, room)
    else:
        lines(axes, places, few[0], numbers, view.keep_time, room)
    axes.set_ylabel(label)
    return _or_say_why(axes, numbers, None)


def _curve(dataset: Any, view: View, places: list[Scale]) -> tuple[np.ndarray, str] | None:
    """What theory says in a diagram of beta over time, where it says something."""
    swept = (dataset.attrs.get("axes") or {}).get(view.across[0], [])
    if not view.keep_time or swept != ["model.beta"]:
        return None
    return large_dimension_curve(dataset, view.name, places[0])


def _or_say_why(axes: Any, numbers: Numbers, picture: Any) -> Any:
    """An empty panel says that it is empty, and why."""
    if not np.isfinite(numbers.mean).any():
        why = HATCH if numbers.failed.any() else GREY
        axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=INK)
    return picture


def _name_panels(dataset: Any, view: View, grid: Any, count: int) -> None:
    if view.panels is None:
        return
    for axes, position in zip(grid.flat, view.shown, strict=False):
        axes.set_title(cut(at_position(dataset, view.panels, position), 38), fontsize=8)
    for row in range(grid.shape[0]):
        for column in range(grid.shape[1]):
            axes = grid[row, column]
            below = (row + 1) * grid.shape[1] + column
            axes.tick_params(labelbottom=below >= count)
            axes.set_xlabel(axes.get_xlabel() if below >= count else "")
            axes.set_ylabel(axes.get_ylabel() if column == 0 else "")


def _explain(figure: Any, panels: list[Any]) -> None:
    """A legend of the lines and of the marks that are in the picture."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = list(panels[0].get_legend_handles_labels()[0])
    there = {part.get_gid() for axes in panels for part in (axes.patch, *axes.get_children())}
    marks = {
        HATCH: Patch(facecolor="white", edgecolor=INK, hatch="/////", lw=0, label=HATCH),
        CROSS: Line2D([], [], ls="", marker="x", color=PALETTE[1], label=CROSS),
        GREY: Patch(facecolor=MISSING_COLOUR, edgecolor=FAINT, label=GREY),
    }
    handles += [mark for name, mark in marks.items() if name in there]
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles) + 6
    columns = max(1, min(4, int(figure.get_figwidth() * LEGEND_LETTERS / longest)))
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=7)


def _title(
    dataset: Any, view: View, numbers: list[Numbers], cloud: Cloud | None, width: int
) -> str:
    """The sweep's own title, and what one must know to read the picture."""
    title = heading_of(dataset)
    told = {*view.across, *view.fixed, *([view.panels] if view.panels else [])}
    known = facts(dataset, view.name, told)
    notes = ", ".join([*known, *_what(dataset, view, numbers, cloud), *_counts(numbers)])
    if len(title) + len(notes) + 2 <= width:
        return f"{title}: {notes}" if notes else title
    lines = [wrapped(title, width, TITLE_LINES), wrapped(notes, width, NOTE_LINES)]
    return "\n".join(part for part in lines if part)


def _what(dataset: Any, view: View, numbers: list[Numbers], cloud: Cloud | None) -> list[str]:
    """What is averaged, held fixed, and left out."""
    said = []
    if numbers[0].runs > 1:
        averaged = view.across or view.keep_time
        said.append(f"{'mean of ' if averaged else ''}{numbers[0].runs} {_repeated(dataset)}")
    said += [at_position(dataset, axis, position) for axis, position in view.fixed.items()]
    clock = clock_of(dataset[view.name])
    if clock == TIME and not view.keep_time:
        said.append(f"at t = {float(dataset[TIME][-1]):.4g}")
    elif clock == OWN_TIMES:
        said.append("at the end of each run")
    if any(one.held for one in numbers):
        said.append("stopped runs keep their last value")
    if cloud is not None and cloud.left:
        said.append(f"{', '.join(map(words, cloud.left))} not shown")
    if view.panels is not None and len(view.shown) < dataset.sizes[view.panels]:
        said.append(f"{len(view.shown)} of {dataset.sizes[view.panels]} {words(view.panels)} shown")
    return said


def _repeated(dataset: Any) -> str:
    """What a seed draws anew: the start alone, or anything else too."""
    paths = dataset.attrs.get("axes") or {}
    drawn = {path for axis in seed_axes(dataset) for path in paths.get(axis, [])}
    return "starts" if drawn == {"tokens.seed"} else "seeds"


def _counts(numbers: list[Numbers]) -> list[str]:
    """How many of the runs that are shown have no number."""
    total = sum(one.failed.size * one.runs for one in numbers)
    failed = sum(int(one.failed.sum()) for one in numbers)
    missing = sum(int(one.missing.sum()) for one in numbers)
    counts = {"failed": failed, "not computed": missing}
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    return [f"of {total:,} runs {' and '.join(told)}"] if told else []
