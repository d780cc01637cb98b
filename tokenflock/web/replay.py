"""Stored results as a page shows them (web/src/replay/types.ts): runs, traces, sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..records.finding import inside, require_inside
from ..results.strict_json import plain
from ..space import Sphere
from ..store import read
from ..trajectory import Trajectory
from .packing import numbers, pack
from .projection import clusters_of, project, spread
from .stores import describe
from .sweep import sweep_replay

MOST_FRAMES = 600
MOST_TOKENS = 4_096
MOST_SERIES = 40


def read_replay(path: str | Path, roots: list[str] | None = None) -> dict[str, Any]:
    """The replay of a run folder, a store, a trace or a sweep; links may not lead out of `roots`."""
    folder = Path(path)
    if roots is not None:
        allowed = [Path(root) for root in roots]
        if inside(folder, allowed) != folder:
            raise InputError(f"{folder.name} does not lie in the given folders")
        require_inside(folder, allowed)
    found = describe(folder) if folder.is_dir() else None
    if found is not None and found.kind == "sweep":
        return sweep_replay(found.path, found.title)
    return run_replay(read(folder), folder.name.removesuffix(".zarr"))


def run_replay(run: Trajectory, name: str | None = None) -> dict[str, Any]:
    """Tokens along a clock, thinned and projected to what a page can draw."""
    if run.is_density:
        raise InputError(
            "this run moved a density, which a page of tokens cannot show; draw it with run.plot()"
        )
    trace, spec = _table(run, "trace"), _table(run, "spec") or {}
    times, states, notes = _tokens(run)
    frames, rows = spread(len(times), MOST_FRAMES), spread(states.shape[1], MOST_TOKENS)
    notes += _thinned(times, frames, states, rows)
    on_sphere = isinstance(run.blank_measure.space, Sphere)
    shown = states[np.ix_(frames, rows)]
    points, projection = project(shown, on_sphere)
    clusters = None if projection is None else clusters_of(shown, on_sphere)
    if projection is not None and clusters is None:
        notes.append(
            "colours show clusters of the picture, not of the tokens in their own dimension"
        )
    return plain(
        {
            "kind": "run" if trace is None else "trace",
            "title": str(spec.get("title") or name or run.attributes.get("label") or "run"),
            "says": str(spec.get("says", "")),
            "clock": "time" if trace is None else "layer",
            "times": times[frames].tolist(),
            "space": "sphere" if on_sphere else "euclidean",
            "points": pack(points, "float32"),
            "dimension": states.shape[-1],
            "projection": projection,
            "clusters": None if clusters is None else pack(clusters, "int32"),
            "series": _series(run, times, frames),
            "labels": _labels(trace, rows, states.shape[1]),
            "spec": spec or None,
            "notes": [
                *_outcome(run),
                *(f"{name}: {note}" for name, note in run.notes.items()),
                *notes,
                *(trace or {}).get("notes", []),
            ],
        }
    )


def _table(run: Trajectory, name: str) -> dict[str, Any] | None:
    """An attribute that is a table; a stored file may say anything there."""
    found = run.attributes.get(name)
    return found if isinstance(found, dict) else None


def _outcome(run: Trajectory) -> list[str]:
    return [f"{run.outcome}: {run.advice}"]


def _tokens(run: Trajectory) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Times, tokens (frames, n, d) of one system, and notes on what was left out."""
    if "states" in run:
        name, times, notes = "states", np.asarray(run.time, float), []
    elif "initial_points" in run and "final_points" in run:
        name, times = "final_points", np.asarray([0.0, float(_first(run, "final_time"))])
        notes = ["only the first and the last tokens were kept: save states to see the way"]
    else:
        raise InputError(
            "this run kept no tokens, so there is nothing to show; a trace keeps those of one text, a "
            "run those saved with states=True"
        )
    values = np.asarray(_first(run, name), float)
    if name == "final_points":
        values = np.stack([np.asarray(_first(run, "initial_points"), float), values])
    finite = np.all(np.isfinite(values), axis=(1, 2)) & np.isfinite(times)
    if not finite.any():
        raise InputError("no frame of this run has finite tokens; there is nothing to show")
    if not finite.all():
        notes.append(f"{int(np.sum(~finite))} frames without finite tokens are left out")
    return times[finite], values[finite], [*_batch_notes(run, name), *notes]


def _batch_axes(run: Trajectory, name: str) -> list[str]:
    known = ("time", "token", "coordinate", "layer")
    return [axis for axis in run.axes[name] if axis not in known]


def _first(run: Trajectory, name: str) -> Any:
    """The first system of a batch."""
    first = tuple(0 if axis in _batch_axes(run, name) else slice(None) for axis in run.axes[name])
    return np.asarray(run.arrays[name])[first]


def _batch_notes(run: Trajectory, name: str) -> list[str]:
    notes = []
    for axis, size in zip(run.axes[name], np.shape(run.arrays[name]), strict=True):
        if axis in _batch_axes(run, name) and size > 1:
            at = f" ({axis} = {float(run.coords[axis][0]):g})" if axis == "beta" else ""
            notes.append(f"the first of {size} along {axis}{at} is shown")
    return notes


def _thinned(
    times: np.ndarray, frames: np.ndarray, states: np.ndarray, rows: np.ndarray
) -> list[str]:
    notes = []
    if len(frames) < len(times):
        notes.append(f"{len(frames)} of {len(times)} saved times are shown")
    if len(rows) < states.shape[1]:
        notes.append(f"{len(rows)} of {states.shape[1]} tokens are shown")
    return notes


def _series(run: Trajectory, times: np.ndarray, frames: np.ndarray) -> list[dict[str, Any]]:
    """What has one number per frame; what belongs to a layer stands at the state behind it."""
    found = []
    saved = np.asarray(run.time, float)
    if len(saved) < len(times):
        return []
    kept = np.isin(saved, times)
    for name in run.arrays:
        own = [axis for axis in run.axes[name] if not axis.startswith(("beta", "sample"))]
        if own not in (["time"], ["layer"]) or not _is_numeric(run.arrays[name]):
            continue
        values = np.asarray(_first(run, name), float)
        if own == ["layer"]:
            values = np.append(np.nan, values)
        if len(values) == len(kept):
            found.append({"name": name, "values": numbers(values[kept][frames])})
    return found[:MOST_SERIES]


def _is_numeric(array: Any) -> bool:
    return np.asarray(array).dtype.kind in "fiub"


def _labels(trace: Any, rows: np.ndarray, n: int) -> list[str] | None:
    texts = (trace or {}).get("tokens") or [[]]
    return [str(texts[0][row]) for row in rows] if len(texts[0]) == n else None
