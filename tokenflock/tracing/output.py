"""A trace on disk and on the terminal.

    folder/
      trajectory.zarr   the Trajectory: flock.open(folder)
      summary.json      what --json prints
      report.html, *.png   with --report

The folder is filled under a hidden name beside its place and moved there in one step.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..lab.folder import SPEC, SUMMARY, check_place, making
from ..locking import only_writer
from ..store import SCRATCH, STORE
from ..store import write as write_store
from ..trajectory import Trajectory
from .pictures import PICTURES
from .reading import mean
from .report import REPORT, write_report
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
    return (is_traced(place) or (place / "compare.html").exists()) and not (place / SPEC).exists()


def write(run: Trajectory, place: Path, overwrite: bool, report: bool) -> None:
    """Everything about one trace, all or nothing."""
    with making(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=SCRATCH) as scratch:
            fresh = Path(scratch) / place.name
            fresh.mkdir()
            write_store(run, fresh / STORE)
            content = json.dumps(summary(run), indent=1, allow_nan=False)
            (fresh / SUMMARY).write_text(content + "\n")
            if report:
                write_report(run, fresh)
            _move(fresh, place, Path(scratch) / "replaced", overwrite)


def _move(fresh: Path, place: Path, replaced: Path, overwrite: bool) -> None:
    """Into place; of a folder that is there only what a trace writes is replaced."""
    if not place.exists():
        os.rename(fresh, place)
        return
    if any(place.iterdir()) and not overwrite:
        raise InputError(f"{place} was made by another process; choose another --out")
    replaced.mkdir()
    with only_writer(place):
        for name in (STORE, SUMMARY, REPORT, *(f"{picture}.png" for picture in PICTURES)):
            if (place / name).exists():
                os.replace(place / name, replaced / name)
        for item in fresh.iterdir():
            os.replace(item, place / item.name)


def table(run: Trajectory) -> Any:
    """A dozen layers with the main numbers; several texts: their means."""
    from rich.table import Table

    shown = [(title, name) for title, name in COLUMNS if name == "time" or name in run]
    grid = Table(box=None, pad_edge=False)
    for title, _ in shown:
        grid.add_column(title, justify="right")
    times = np.asarray(run.time)
    series = [times if name == "time" else mean(run, name) for _, name in shown]
    for row in np.unique(np.linspace(0, len(times) - 1, ROWS).round().astype(int)):
        grid.add_row(*(f"{values[row]:.4g}" for values in series))
    return grid
