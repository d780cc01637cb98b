"""A trace on disk and on the terminal.

    folder/
      trajectory.zarr   the Trajectory: flock.open(folder)
      summary.json      what --json prints
      report.html, *.png   with --report

The folder is filled under a hidden name beside its place and moved there in one step.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..results.atomic import complete_folder
from ..results.locking import only_writer
from ..results.names import RUN_SPEC, STORE, SUMMARY
from ..results.places import check_place, look_at
from ..store import write as write_store
from ..trajectory import Trajectory
from .pictures import PICTURES
from .report import REPORT, write_report
from .trace_values import mean
from .verdict import summary

ROWS = 14
COLUMNS = (
    ("layer", "time"),
    ("cosine", "mean_cosine"),
    ("without first", "mean_cosine_rest"),
    ("on the sphere", "sphere_cosine"),
    ("clusters", "clusters"),
    ("rank", "effective_rank"),
    ("norm", "norm_median"),
    ("largest norm", "norm_max"),
)


def default_place(name: str) -> Path:
    """runs/trace-NAME-TIME, for a report without --out."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "model"
    return Path("runs") / f"trace-{stem}-{time.strftime('%Y%m%d-%H%M%S')}"


def is_traced(place: Path) -> bool:
    """Whether a folder holds a stored trace."""
    return (place / STORE).is_dir()


def check_trace_place(place: Path, overwrite: bool) -> None:
    """Refuse a folder that a trace must not touch, before anything is computed."""
    check_place(place, overwrite, _holds_trace, "a trace")


def _holds_trace(place: Path) -> bool:
    # The store of a run has the same name, and stands beside its spec.
    return (is_traced(place) or (place / "compare.html").exists()) and not (
        place / RUN_SPEC
    ).exists()


def write(run: Trajectory, place: Path, overwrite: bool, report: bool) -> None:
    """Everything about one trace, all or nothing; in a folder that is there only its own is replaced."""
    with _replacing(place, overwrite) as names, complete_folder(place, names) as fresh:
        write_store(run, fresh / STORE)
        (fresh / SUMMARY).write_text(json.dumps(summary(run), indent=1, allow_nan=False) + "\n")
        if report:
            write_report(run, fresh)


@contextlib.contextmanager
def _replacing(place: Path, overwrite: bool) -> Iterator[tuple[str, ...] | None]:
    """What a trace replaces in a folder, which is held meanwhile; None where there is none yet."""
    if not place.exists():
        yield None
        return
    with only_writer(place):
        if not overwrite and not look_at(place)[1]:
            raise InputError(f"{place} was made by another process; choose another --out")
        yield (STORE, SUMMARY, REPORT, *(f"{picture}.png" for picture in PICTURES))


def asked_layers(text: str | None) -> list[tuple[int, int]] | None:
    """First and last layer of each part of "0,5,10-12"; [] for "all", None where nothing was asked."""
    if text is None:
        return None
    if text.strip() == "all":
        return []
    parts = [re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part) for part in text.split(",")]
    found = [(int(part[1]), int(part[2] or part[1])) for part in parts if part]
    if len(found) < len(parts) or any(first > last for first, last in found):
        raise InputError(f"--layers takes all, or layers as in 0,5,10-12; got {text!r}")
    return found


def shown_layers(asked: list[tuple[int, int]] | None, depth: int) -> list[int]:
    """The layers of a table: evenly chosen ones, all, or those asked for."""
    if asked is None:
        return np.unique(np.linspace(0, depth, ROWS).round().astype(int)).tolist()
    for _, last in asked:
        if last > depth:
            raise InputError(
                f"--layers: there is no layer {last}; they run from 0 (the embedding) to {depth}"
            )
    chosen = {layer for first, last in asked for layer in range(first, last + 1)}
    return sorted(chosen) or list(range(depth + 1))


def layers_left_out(shown: list[int], depth: int) -> str:
    """What a table says of the layers it does not show."""
    if len(shown) == depth + 1:
        return ""
    return f"{len(shown)} of the layers 0 to {depth} (0 is the embedding); all with --layers all or --json"


def table(run: Trajectory, layers: list[int]) -> Any:
    """Some layers with the main numbers; several texts: their means."""
    shown = [(title, name) for title, name in COLUMNS if name == "time" or name in run]
    columns = {
        title: np.asarray(run.time) if name == "time" else mean(run, name) for title, name in shown
    }
    return _grid(columns, layers)


def comparison_table(found: dict[str, Any], rows: list[int]) -> Any:
    """Mean cosines on the sphere and clusters of all runs of a comparison (`compare`)."""
    columns = {found["aligned"]: found["depth"]}
    for title, name in (("cosine", "sphere_cosine"), ("clusters", "clusters")):
        for letter in found["runs"]:
            columns[f"{title} {letter.upper()}"] = found["layers"][name][letter]
    return _grid(columns, rows)


def _grid(columns: dict[str, Any], rows: list[int]) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    for title in columns:
        grid.add_column(title, justify="right")
    for row in rows:
        values = [each[row] for each in columns.values()]
        grid.add_row(*("" if value is None else f"{value:.4g}" for value in values))
    return grid
