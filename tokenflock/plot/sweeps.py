"""The default picture of a sweep: a heatmap, lines or points, whatever its axes are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .style import FAINT, INK, PALETTE, styled
from .sweep_numbers import (
    OWN_TIMES,
    TIME,
    Numbers,
    Scale,
    beside_of,
    chosen_statistic,
    clock_of,
    influence,
    measured,
    scale_of,
    setting_axes,
    time_scale,
    words,
)

MOST_PANELS, MOST_LINES, MOST_TICKS = 6, len(PALETTE), 8
MISSING_COLOUR = "#E6E6E6"


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
    rows = -(-len(parts) // 3)
    columns = -(-len(parts) // rows)
    size = (5.4, 3.9) if len(parts) == 1 else (2.6 * columns + 0.9, 2.4 * rows + 1.1)
    figure, grid = plt.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained", sharex=True, sharey=True
    )
    panels = list(grid.flat)
    mapped = [
        _fill(axes, dataset, view, found, _limits(numbers))
        for axes, found in zip(panels, numbers, strict=False)
    ]
    for axes in panels[len(parts) :]:
        axes.set_visible(False)
    if mapped[-1] is not None:
        figure.colorbar(mapped[-1], ax=grid, label=_label(dataset, view.name), shrink=0.9)
    _name_panels(dataset, view, grid, len(parts))
    hatched = panels[0].patch.get_hatch() is not None
    handles = [*_line_handles(panels[0]), *_marks(numbers, hatched)]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=7)
    figure.suptitle(_title(dataset, view, numbers), fontsize=9, color=INK)
    return figure


def _limits(numbers: list[Numbers]) -> tuple[float, float]:
    """One colour scale for all panels."""
    known = np.concatenate([one.mean[np.isfinite(one.mean)] for one in numbers])
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def _fill(
    axes: Any, dataset: Any, view: View, numbers: Numbers, limits: tuple[float, float]
) -> Any:
    """Draw one panel; returns what a colour bar explains, or None."""
    scales = [scale_of(dataset, axis) for axis in view.across]
    if None in scales:
        return _points(axes, dataset, view, numbers, limits)
    places = [scale for scale in scales if scale is not None]
    if view.keep_time:
        places.append(time_scale(dataset))
    few = [k for k, scale in enumerate(places) if scale.names and len(scale.names) <= MOST_LINES]
    if len(places) == 2 and few != [0] and few != [1]:
        return _heatmap(axes, places[0], places[1], numbers, view.keep_time, limits)
    if len(places) == 0:
        _histogram(axes, dataset, view)
    elif len(places) == 1:
        _line(axes, places[0], numbers, 0, None, view.keep_time)
        axes.set_ylabel(_label(dataset, view.name))
    else:
        _lines(axes, places, few[0], numbers, view.keep_time)
        axes.set_ylabel(_label(dataset, view.name))
    return None


def _heatmap(
    axes: Any, down: Scale, along: Scale, numbers: Numbers, over_time: bool, limits: Any
) -> Any:
    """The first axis upwards, the second (or time) to the right."""
    at = np.ix_(down.order, along.order)
    shape = numbers.mean.shape
    failed, missing = (
        np.broadcast_to(count[:, None] if over_time else count, shape)
        for count in (numbers.failed, numbers.missing)
    )
    mean = numbers.mean[at]
    # Where there is no number the hatched background shows, or the grey of what is not computed yet.
    axes.patch.set(facecolor="white", hatch="/////", edgecolor=INK, linewidth=0.0)
    untouched = np.where(~np.isfinite(mean) & (missing > 0)[at] & (failed == 0)[at], 0.0, np.nan)
    mesh = (along.edges, down.edges)
    if np.isfinite(untouched).any():
        from matplotlib.colors import ListedColormap

        axes.pcolormesh(*mesh, untouched, cmap=ListedColormap([MISSING_COLOUR]), rasterized=True)
    picture = axes.pcolormesh(
        *mesh, mean, cmap="cividis", vmin=limits[0], vmax=limits[1], rasterized=True
    )
    _mark_partly_failed(axes, down, along, numbers, over_time)
    _use(axes, "x", along)
    _use(axes, "y", down)
    axes.set(xlabel=along.label, ylabel=down.label)
    return picture


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
    axes.plot(x, y, "x", color=PALETTE[1], ms=4, mew=1.2, clip_on=False)


def _lines(
    axes: Any, places: list[Scale], coloured: int, numbers: Numbers, over_time: bool
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
        _line(axes, places[1 - coloured], one, k, name, over_time)


def _line(
    axes: Any, scale: Scale, numbers: Numbers, colour: int, label: str | None, over_time: bool
) -> None:
    order, tint = scale.order, PALETTE[colour % len(PALETTE)]
    x, mean, error = scale.places[order], numbers.mean[order], numbers.error[order]
    style = "-" if over_time else "o-"
    if scale.names:
        axes.errorbar(x, mean, yerr=np.nan_to_num(error), fmt="o", color=tint, ms=4, label=label)
    else:
        axes.plot(x, mean, style, color=tint, lw=1.3, ms=2.5, label=label)
        axes.fill_between(x, mean - error, mean + error, color=tint, alpha=0.2, lw=0)
    if not over_time:
        _mark_without_number(axes, x, numbers.failed[order], PALETTE[1])
    _use(axes, "x", scale)
    axes.set_xlabel(scale.label)


def _mark_without_number(axes: Any, x: np.ndarray, failed: np.ndarray, colour: str) -> None:
    """A cross on the axis below every place where runs failed."""
    at = x[failed > 0]
    axes.plot(
        at, np.zeros(len(at)), "x", color=colour, ms=5, clip_on=False,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def _points(axes: Any, dataset: Any, view: View, numbers: Numbers, limits: Any) -> Any:
    """Cells of a random search over the settings that explain most of the statistic."""
    beside = {
        name: values
        for name, values in beside_of(dataset, view.across[0]).items()
        if values.dtype.kind in "fiu"
    }
    ranked = sorted(beside, key=lambda name: -influence(beside[name], numbers.mean))
    known = np.isfinite(numbers.mean)
    if len(ranked) == 1:
        x, y = beside[ranked[0]], numbers.mean
        axes.errorbar(
            x, y, yerr=np.nan_to_num(numbers.error), fmt="o", color=PALETTE[0], ms=3, lw=0.8
        )
        _mark_without_number(axes, x, numbers.failed, PALETTE[1])
        axes.set(xlabel=words(ranked[0]), ylabel=_label(dataset, view.name))
        _use_drawn(axes, "x", x)
        return None
    x, y = beside[ranked[0]], beside[ranked[1]]
    picture = axes.scatter(
        x[known], y[known], c=numbers.mean[known], cmap="cividis", vmin=limits[0], vmax=limits[1],
        s=26, edgecolors="white", linewidths=0.4,
    )  # fmt: skip
    failed = numbers.failed > 0
    axes.plot(x[failed], y[failed], "x", color=PALETTE[1], ms=5, mew=1.2)
    axes.set(xlabel=words(ranked[0]), ylabel=words(ranked[1]))
    _use_drawn(axes, "x", x)
    _use_drawn(axes, "y", y)
    return picture


def _histogram(axes: Any, dataset: Any, view: View) -> None:
    """Of a sweep over seeds alone."""
    values = np.asarray(dataset.isel(view.fixed)[view.name].values, float).ravel()
    axes.hist(values[np.isfinite(values)], bins="auto", color=PALETTE[0], edgecolor="white")
    axes.set(xlabel=_label(dataset, view.name), ylabel="runs")


def _use(axes: Any, side: str, scale: Scale) -> None:
    set_ticks = getattr(axes, f"set_{side}ticks")
    if scale.names:
        set_ticks(scale.places, scale.names)
    elif scale.log:
        axes.set(**{f"{side}scale": "log"})
        if len(scale.places) <= MOST_TICKS:
            set_ticks(scale.places, [f"{place:g}" for place in scale.places])
            set_ticks([], minor=True)


def _use_drawn(axes: Any, side: str, values: np.ndarray) -> None:
    """Settings drawn at random: over decades on a log scale, from a few choices with a tick for each."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 10 * low and np.median(values) < (low + high) / 4:
        axes.set(**{f"{side}scale": "log"})
    elif len(chosen := np.unique(values)) <= MOST_TICKS:
        getattr(axes, f"set_{side}ticks")(chosen)


def _name_panels(dataset: Any, view: View, grid: Any, count: int) -> None:
    if view.panels is None:
        return
    scale = scale_of(dataset, view.panels)
    for axes, position in zip(grid.flat, view.shown, strict=False):
        value = scale.name_of(position) if scale else str(position)
        axes.set_title(f"{words(view.panels)} = {value}", fontsize=8)
    for row in range(grid.shape[0]):
        for column in range(grid.shape[1]):
            axes = grid[row, column]
            below = (row + 1) * grid.shape[1] + column
            axes.tick_params(labelbottom=below >= count)
            axes.set_xlabel(axes.get_xlabel() if below >= count else "")
            axes.set_ylabel(axes.get_ylabel() if column == 0 else "")


def _line_handles(axes: Any) -> list[Any]:
    return axes.get_legend_handles_labels()[0]


def _marks(numbers: list[Numbers], hatched: bool) -> list[Any]:
    """What the marks of failed and missing runs mean, with their numbers."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    total = sum(one.failed.size * one.runs for one in numbers)
    failed = sum(int(one.failed.sum()) for one in numbers)
    missing = sum(int(one.missing.sum()) for one in numbers)
    handles: list[Any] = []
    without = [(one.failed > 0) & (one.failed + one.missing == one.runs) for one in numbers]
    if hatched and any(np.any(cells) for cells in without):
        handles.append(
            Patch(facecolor="white", edgecolor=INK, hatch="/////", lw=0, label="no run succeeded")
        )
    if failed:
        label = f"runs failed ({failed:,} of {total:,})"
        handles.append(Line2D([], [], ls="", marker="x", color=PALETTE[1], label=label))
    if missing:
        label = f"not computed ({missing:,} of {total:,} runs)"
        handles.append(Patch(facecolor=MISSING_COLOUR, edgecolor=FAINT, label=label))
    return handles


def _label(dataset: Any, name: str) -> str:
    """The name of a statistic with its unit and, for clusters, the angle that defines them."""
    details = dataset[name].attrs
    units, angle = details.get("units"), details.get("angle")
    unit = f" [{units}]" if units and units not in ("1", "dimensionless") else ""
    return words(name) + unit + (f" (angle {angle:g})" if isinstance(angle, int | float) else "")


def _title(dataset: Any, view: View, numbers: list[Numbers]) -> str:
    said = []
    if numbers[0].runs > 1:
        averaged = view.across or view.keep_time
        said.append(f"{'mean of ' if averaged else ''}{numbers[0].runs} seeds")
    for axis, position in view.fixed.items():
        scale = scale_of(dataset, axis)
        said.append(f"{words(axis)} = {scale.name_of(position) if scale else position}")
    clock = clock_of(dataset[view.name])
    if clock == TIME and not view.keep_time:
        said.append(f"at t = {float(dataset[TIME][-1]):.4g}")
    elif clock == OWN_TIMES:
        said.append("at the end of each run")
    if any(one.held for one in numbers):
        said.append("stopped runs keep their last value")
    if view.panels is not None and len(view.shown) < dataset.sizes[view.panels]:
        said.append(f"{len(view.shown)} of {dataset.sizes[view.panels]} {words(view.panels)} shown")
    title = str(dataset.attrs.get("title") or "sweep")
    return title + (": " + ", ".join(said) if said else "")
