"""The numbers behind the picture of a sweep: seeds averaged, runs carried to their ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError

# What every sweep stores about its runs beside what they observed.
BOOKKEEPING = ("outcome", "final_time", "steps", "accepted_steps", "rejected_steps")
FINISHED, STOPPED, MISSING = 0, 1, -2
# Along which a run was looked at: at common times, or at its own (then `time` is an array of the runs).
TIME, OWN_TIMES = "time", "save"
# Numbers that are loaded at once, in bytes: a sweep may be larger than the memory.
SLAB = 64 * 2**20


@dataclass(frozen=True)
class Numbers:
    """A statistic over the axes (and time, if kept), averaged over seeds.

    mean, error -- the mean and its standard error (NaN where there are fewer than two runs);
    runs -- how many runs an average may have; failed, missing -- how many of them have no number, per
    cell of the axes; held -- whether a run that stopped early kept its last value until the end.
    """

    mean: np.ndarray
    error: np.ndarray
    failed: np.ndarray
    missing: np.ndarray
    runs: int
    held: bool


def setting_axes(dataset: Any, name: str) -> list[str]:
    """Axes of the sweep that are settings, in the order of the array."""
    axes, seeds = dataset.attrs.get("axes"), seed_axes(dataset)
    if not isinstance(axes, dict):
        raise InputError(
            "this dataset is no sweep: it lacks the attribute 'axes'; open a sweep folder"
        )
    return [dim for dim in dataset[name].dims if dim in axes and dim not in seeds]


def seed_axes(dataset: Any) -> list[str]:
    """Axes along which cells are repetitions of one another."""
    return list(dataset.attrs.get("seed_axes") or [])


def statistics(dataset: Any) -> list[str]:
    """Names of what has one number per run and time, in the order they were asked for."""
    paths = dataset.attrs.get("axes") or {}
    axes = {*paths, *seed_axes(dataset)}
    seeds = {path.replace(".", "_") for axis in seed_axes(dataset) for path in paths.get(axis, [])}
    found = [
        str(name)
        for name, array in dataset.data_vars.items()
        if name not in (*seeds, TIME)
        and axes & set(array.dims)
        and set(array.dims) <= axes | {TIME, OWN_TIMES}
        and array.dtype.kind in "fiub"
    ]
    asked = _asked(dataset)
    place = {name: k for k, name in enumerate([*asked, *(f for f in found if f not in asked)])}
    late = len(place)
    return sorted(found, key=lambda name: place[name] + late * (name in BOOKKEEPING))


def chosen_statistic(dataset: Any, statistic: str | None) -> str:
    """The statistic asked for, or the first observable of the runs."""
    known = statistics(dataset)
    if not known:
        raise InputError("this sweep has no number per run to draw; observe one, such as 'energy'")
    if statistic is None:
        return known[0]
    if statistic not in known:
        raise InputError(f"statistic must be one of {', '.join(known)}, got {statistic!r}")
    return statistic


def _asked(dataset: Any) -> list[str]:
    """Observables in the order of the spec; stores list their arrays by the alphabet."""
    spec = dataset.attrs.get("spec")
    save = spec.get("save") if isinstance(spec, dict) else None
    asked = save.get("observe") if isinstance(save, dict) else None
    names = []
    for one in asked if isinstance(asked, list) else []:
        names.append(one if isinstance(one, str) else one.get("as") or one.get("name"))
    return [str(name) for name in names if name]


def clock_of(array: Any) -> str | None:
    """The dimension along which an array follows its runs."""
    return next((dim for dim in (TIME, OWN_TIMES) if dim in array.dims), None)


def measured(dataset: Any, name: str, axes: list[str], keep_time: bool) -> Numbers:
    """The statistic of the selected cells; without `keep_time` its last value of each run."""
    if not axes:
        return _of_slab(dataset, name, axes, keep_time)
    size = dataset.sizes[axes[0]]
    each = dataset[name].dtype.itemsize * math.prod(dataset[name].shape) / size
    step = max(1, int(SLAB // max(each, 1)))
    slabs = [
        _of_slab(dataset.isel({axes[0]: slice(k, k + step)}), name, axes, keep_time)
        for k in range(0, size, step)
    ]
    joined = {
        field: np.concatenate([getattr(slab, field) for slab in slabs])
        for field in ("mean", "error", "failed", "missing")
    }
    return Numbers(**joined, runs=slabs[0].runs, held=any(slab.held for slab in slabs))


def each_run(dataset: Any, name: str) -> np.ndarray:
    """The last value of every run of a sweep over seeds alone; NaN for those that have none."""
    seeds = [str(dim) for dim in dataset[name].dims if dim in seed_axes(dataset)]
    return np.ravel(measured(dataset.assign_attrs(seed_axes=[]), name, seeds, False).mean)


def _of_slab(dataset: Any, name: str, axes: list[str], keep_time: bool) -> Numbers:
    array = dataset[name]
    seeds = [dim for dim in array.dims if dim in seed_axes(dataset)]
    cells = tuple(dataset.sizes[axis] for axis in axes)
    runs = math.prod(dataset.sizes[seed] for seed in seeds)
    clock = clock_of(array)
    dims = (*axes, *seeds, *([clock] if clock else []))
    values = np.array(array.transpose(*dims).values, float).reshape(*cells, runs, -1)
    outcome = _per_run(dataset, "outcome", axes, seeds, FINISHED).reshape(*cells, runs)
    missing = outcome == MISSING
    failed = ~np.isin(outcome, (FINISHED, STOPPED, MISSING))
    held = False
    if clock:
        ends = _per_run(dataset, "final_time", axes, seeds, np.inf).reshape(*cells, runs, 1)
        times = dataset[TIME].values
        if clock == OWN_TIMES:
            times = dataset[TIME].transpose(*dims).values.reshape(values.shape)
        over = (outcome == STOPPED)[..., None] & (times > ends)
        values[over] = np.nan
        held = bool(over.any())
        values = _carried(values)
    # Numbers of a run before it failed would weigh its early times only.
    values[failed | missing] = np.nan
    if not keep_time:
        values = values[..., -1:]
    mean, error = _average(values)
    mean, error = (mean, error) if keep_time and clock else (mean[..., 0], error[..., 0])
    return Numbers(mean, error, failed.sum(-1), missing.sum(-1), runs, held)


def _per_run(dataset: Any, name: str, axes: list[str], seeds: list[str], default: float) -> Any:
    if name in dataset:
        return np.asarray(dataset[name].transpose(*axes, *seeds).values)
    return np.full([dataset.sizes[dim] for dim in (*axes, *seeds)], default)


def _carried(values: np.ndarray) -> np.ndarray:
    """Every value that is not finite replaced by the last finite one before it."""
    known = np.isfinite(values)
    last = np.maximum.accumulate(np.where(known, np.arange(values.shape[-1]), 0), axis=-1)
    return np.take_along_axis(values, last, axis=-1)


def _average(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the last axis but one, of what is finite."""
    known = np.isfinite(values)
    count = known.sum(axis=-2)
    # In units of a power of two that keeps the squares of huge numbers finite, and changes no digit.
    largest = float(np.abs(values, where=known, out=np.zeros(values.shape)).max(initial=0.0))
    unit = 2.0 ** max(0, math.frexp(largest)[1] - 400)
    scaled = np.where(known, values, 0.0) / unit
    mean = scaled.sum(axis=-2) / np.maximum(count, 1)
    squares = (np.where(known, scaled - mean[..., None, :], 0.0) ** 2).sum(axis=-2)
    error = np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1)) * unit
    mean = mean * unit
    return np.where(count > 0, mean, np.nan), np.where(count > 1, error, np.nan)
