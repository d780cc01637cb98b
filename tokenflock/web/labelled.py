"""A dataset of `tokenflock sweep` as a page shows it: two axes, or one and time; seeds are averaged.

Its attributes say which settings each axis sets, so that a page can run any of its cells.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

import numpy as np

from ..lab.setting_paths import last_name
from ..plot.sweep_numbers import OWN_TIMES, TIME, Numbers, clock_of, measured, statistics
from .packing import pack
from .projection import spread

MOST_CELLS = 400
MOST_STATISTICS = 24
CLOCKS = (TIME, OWN_TIMES)
# A code, not a number to average; failed runs are counted instead.
OUTCOME = "outcome"


def shown_axes(labels: dict[str, Any], sizes: dict[str, int]) -> tuple[str, str] | None:
    """The two longest axes of settings; beside a single one, or beside seeds alone, the clock."""
    axes, seeds = labels.get("axes"), labels.get("seed_axes")
    if not isinstance(axes, dict) or not isinstance(seeds, list) or not axes.keys() <= sizes.keys():
        return None
    settings = [name for name in axes if name not in seeds]
    longer = [name for name in settings if sizes[name] > 1] or settings
    longest = sorted(longer, key=lambda name: -sizes[name])[:2]
    if len(longest) == 2:
        return (longer[0], longer[1]) if len(longer) == 2 else _ordered(longer, longest)
    alone = [*longest, *(name for name in axes if name in seeds)]
    clocks = [clock for clock in CLOCKS if clock in sizes]
    return (alone[0], clocks[0]) if alone and clocks else None


def _ordered(names: list[str], chosen: list[str]) -> tuple[str, str]:
    first, second = (name for name in names if name in chosen)
    return first, second


def labelled_replay(
    dataset: Any, axes: tuple[str, str], damaged: Collection[str] = ()
) -> dict[str, Any]:
    """Rows, columns, statistics, seeds, spec and notes of the replay; the caller adds its title.

    damaged -- the chunks that were found damaged; they are when their numbers have been read.
    """
    kept = [axis for axis in axes if axis not in CLOCKS]
    over_time = len(kept) == 1
    fixed = {
        name: dataset.sizes[name] // 2
        for name in dataset.attrs["axes"]
        if name not in (*kept, *dataset.attrs["seed_axes"])
    }
    thin = {axis: spread(dataset.sizes[axis], MOST_CELLS) for axis in axes}
    selected = dataset.isel({**fixed, **thin})
    own = _own_seeds(selected, kept)
    chosen = selected.assign_attrs(
        seed_axes=[name for name in dataset.attrs["seed_axes"] if name not in kept]
    )
    found = {
        name: measured(chosen, name, kept, over_time)
        for name in statistics(chosen)
        if name != OUTCOME and (clock_of(chosen[name]) or not over_time)
    }
    tables = {name: numbers.mean for name, numbers in found.items()}
    one = next(iter(found.values()), None)
    if one is not None and one.failed.any():
        shape = next(iter(tables.values())).shape
        count = one.failed[..., None] if over_time else one.failed
        tables["failed runs"] = np.broadcast_to(count, shape)
    return {
        "rows": _axis(dataset.isel(thin), axes[0]),
        "columns": _axis(dataset.isel(thin), axes[1]),
        "statistics": [
            {"name": name, "values": pack(table, "float32")} for name, table in tables.items()
        ][:MOST_STATISTICS],
        "seeds": [
            {"path": path, "values": pack(values.reshape(len(values), -1))}
            for path, values in own.items()
        ],
        "spec": _spec(dataset, fixed),
        "notes": [
            *_fixed_notes(dataset, fixed),
            *_seed_notes(chosen, one, own),
            *_notes(one, damaged),
        ],
    }


def _own_seeds(dataset: Any, kept: list[str]) -> dict[str, np.ndarray]:
    """Seeds that every cell has of its own, by the path they set: those of the first of its runs.

    NaN where a cell is not computed yet.
    """
    labels = dataset.attrs
    first = dataset.isel({axis: 0 for axis in labels["seed_axes"] if axis not in kept})
    found = {}
    for path in (path for axis in labels["seed_axes"] for path in _paths(dataset, axis)):
        name = _seed_name(path)
        if (
            name in first.data_vars
            and {*first[name].dims} == {*kept}
            and first[name].dtype.kind == "i"
        ):
            seeds = first[name].transpose(*kept).values
            found[path] = np.where(seeds < 0, np.nan, seeds)
    return found


def _seed_name(path: str) -> str:
    """What the derived seeds of a setting are called in a dataset."""
    return path.replace(".", "_")


def _paths(dataset: Any, axis: str) -> list[str]:
    """The settings that an axis says it sets."""
    paths = dataset.attrs["axes"].get(axis)
    return [str(path) for path in paths] if isinstance(paths, list) else []


def _axis(dataset: Any, name: str) -> dict[str, Any]:
    """An axis with its values; words and several settings at once are labels of positions."""
    values = np.asarray(dataset[name].values)
    sets = _settings(dataset, name)
    beside = {path: column for path, column in sets.items() if len(sets) > 1}
    texts = None
    if beside:
        texts = [
            ", ".join(f"{path.rsplit('.', 1)[-1]} = {_text(value)}" for path, value in row)
            for row in (
                zip(beside, values, strict=True) for values in zip(*beside.values(), strict=True)
            )
        ]
    elif values.dtype.kind not in "fiu" or not np.all(np.isfinite(values)):
        texts = [_text(value) for value in values.tolist()]
    found: dict[str, Any] = {
        "name": name,
        "values": (np.arange(len(values)) if texts else values).astype(float),
    }
    # A page has its own way to go to a time.
    own = {} if name == TIME else {"sets": sets}
    return found | ({"labels": texts} if texts else {}) | own


def _settings(dataset: Any, axis: str) -> dict[str, list[Any]]:
    """For every path of the run spec that an axis sets, the value at each position.

    They stand in the axis itself, or beside it under the last key of the path; derived seeds under all
    its keys. Seeds that differ from cell to cell are no settings of the axis.
    """
    paths = _paths(dataset, axis)
    found = {}
    for path in paths:
        names = [path, _seed_name(path)]
        if axis not in dataset.attrs["seed_axes"]:
            names += [last_name(path), *([axis] if len(paths) == 1 else [])]
        for name in names:
            if name in dataset.variables and dataset[name].dims == (axis,):
                found[path] = dataset[name].values.tolist()
                break
    return found


def _spec(dataset: Any, fixed: dict[str, int]) -> dict[str, Any] | None:
    """The spec of the first cell with the settings of the axes that are held fixed."""
    given = dataset.attrs.get("spec")
    if not isinstance(given, dict):
        return None
    spec = copy.deepcopy(given)
    for axis, position in fixed.items():
        for path, values in _settings(dataset, axis).items():
            *tables, key = path.split(".")
            place: Any = spec
            for name in tables:
                place = place.get(name) if isinstance(place, dict) else None
            if not isinstance(place, dict):
                return None
            place[key] = values[position]
    return spec


def _fixed_notes(dataset: Any, fixed: dict[str, int]) -> list[str]:
    notes = []
    for axis, position in fixed.items():
        size = dataset.sizes[axis]
        values = ", ".join(
            f"{path.rsplit('.', 1)[-1]} = {_text(values[position])}"
            for path, values in _settings(dataset, axis).items()
        )
        if size > 1:
            notes.append(f"of {size} along {axis} the middle one is shown ({values})")
    return notes


def _seed_notes(dataset: Any, numbers: Numbers | None, own: dict[str, Any]) -> list[str]:
    """What is averaged, and which run a cell opens."""
    if numbers is None:
        return []
    known = {path for axis in dataset.attrs["axes"] for path in _settings(dataset, axis)} | {*own}
    asked = {path for axis in dataset.attrs["seed_axes"] for path in _paths(dataset, axis)}
    if asked and asked <= known:
        first = "a cell opens the first of them"
    else:
        first = "a cell opens one with the seed of the first cell"
    return (
        [f"means of {numbers.runs} runs with their own seeds; {first}"] if numbers.runs > 1 else []
    )


def _notes(numbers: Numbers | None, damaged: Collection[str]) -> list[str]:
    if numbers is None:
        return []
    total, notes = numbers.failed.size * numbers.runs, []
    lost = any(name.startswith(f"{OUTCOME}/") for name in damaged)
    missing = "are damaged or not computed yet" if lost else "are not computed yet"
    for count, said in ((numbers.failed, "failed"), (numbers.missing, missing)):
        if count.any():
            notes.append(f"{int(count.sum())} of {total} runs {said}")
    if numbers.held:
        notes.append("runs that stopped early keep their last value")
    return notes


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
