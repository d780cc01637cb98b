"""Run a spec in a folder: in segments that are each complete on disk, so a killed run continues.

    folder/
      spec.toml         the full resolved spec
      segments/         finished parts while the run is going (removed at the end)
      trajectory.zarr   the whole run
      figure.png, animation.mp4, summary.json
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, StoreError
from ..integrate.api import initial_state, prepare
from ..integrate.assemble import final_state, from_segment, join, join_stored
from ..integrate.core import Plan, integrate
from ..integrate.outcome import succeeded
from ..integrate.steppers import Merge
from ..measure import Measure
from ..store import SEGMENTS, STORE, read, remove_segments, segment_paths, write
from ..trajectory import Trajectory
from .files import identity, parse, render
from .spec import RunSpec, build_model, build_tokens

SPEC = "spec.toml"
SUMMARY = "summary.json"
SEGMENT_COUNT = 40
FLUSH_SECONDS = 2.0
Report = Callable[[float, Trajectory], None]


class Job:
    """A checked spec, ready to be integrated."""

    def __init__(self, spec: RunSpec):
        self.spec = spec
        self.id = identity(spec)
        self.tokens: Measure = build_tokens(spec.tokens)
        self.model = build_model(spec.model, self.tokens.d)
        arguments = spec.solve.arguments()
        self.merge: Merge | None = arguments["merge"]
        self.plan: Plan
        self.plan, self.samples, self.times = prepare(
            self.model,
            self.tokens,
            save=spec.save.build(),
            stop=spec.stop.build(),
            progress=False,
            **arguments,
        )

    def parts(self) -> list[np.ndarray]:
        """Save times cut into segments; each starts with the last time of the one before."""
        steps = len(self.times) - 1
        rows = max(1, -(-steps // SEGMENT_COUNT))
        cuts = range(0, steps, rows)
        return [self.times[cut : cut + rows + 1] for cut in cuts]


def run_spec(spec: RunSpec, folder: Path, resume: bool, overwrite: bool, report: Report) -> Trajectory:
    """Integrate a spec into a folder and return the stored trajectory."""
    job = Job(spec)
    _open_folder(job, folder, resume, overwrite)
    if (folder / STORE).exists():
        return read(folder)
    run = _integrate(job, folder, report)
    write(run, folder / STORE, overwrite=True)
    remove_segments(folder)
    return run


def _open_folder(job: Job, folder: Path, resume: bool, overwrite: bool) -> None:
    spec_file = folder / SPEC
    if folder.exists() and any(folder.iterdir()):
        if resume:
            _check_same(job, spec_file)
            return
        if not overwrite:
            raise InputError(
                f"{folder} exists and is not empty; choose another --out, continue it with --resume, "
                "or replace it with --overwrite"
            )
        _clear(folder, spec_file)
    elif resume and not folder.exists():
        raise InputError(f"there is no run to resume in {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{SPEC}"
        scratch.write_text(render(job.spec))
        os.replace(scratch, spec_file)
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror or error}") from error


def _check_same(job: Job, spec_file: Path) -> None:
    if not spec_file.exists():
        raise InputError(f"{spec_file.parent} is not a run folder (no {SPEC}); choose another --out")
    stored = parse(spec_file.read_text(), source=str(spec_file))
    if identity(stored) != job.id:
        raise InputError(
            f"{spec_file.parent} holds another run (id {identity(stored)}, this spec is {job.id}); "
            "resume with the spec it was started with, or choose another --out"
        )


def _clear(folder: Path, spec_file: Path) -> None:
    """Remove our own results, and only them."""
    import shutil

    if not spec_file.exists():
        raise InputError(f"{folder} is not a run folder (no {SPEC}); refusing to overwrite it")
    for name in (STORE, SEGMENTS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (SUMMARY, "figure.png", "animation.mp4", "animation.gif"):
        (folder / name).unlink(missing_ok=True)


def _integrate(job: Job, folder: Path, report: Report) -> Trajectory:
    parts = job.parts()
    log = _Log(folder)
    state = initial_state(job.model, job.samples, job.merge)
    if log.pieces:
        state = final_state(log.pieces[-1].arrays)
        report(float(parts[log.done - 1][-1]), log.pieces[-1])
    try:
        while log.done < len(parts) and log.may_go_on():
            times = parts[log.done]
            segment = integrate(job.plan, job.samples, state, jnp.asarray(times))
            piece = from_segment(job.plan, job.tokens, jax.block_until_ready(segment))
            log.add(piece)
            state = segment.final
            report(float(times[-1]), piece)
    except KeyboardInterrupt:
        log.flush()
        raise
    return join(job.plan, job.tokens, log.pieces + log.waiting)


class _Log:
    """Finished segments, flushed to disk together every few seconds.

    Where a run is cut depends on its save times alone, never on when it was flushed or killed, so a
    resumed run makes the same steps as an uninterrupted one.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        paths = segment_paths(folder)
        self.pieces = [read(path) for path in paths]
        self.done = 1 + int(paths[-1].stem.split("-")[1]) if paths else 0
        self.waiting: list[Trajectory] = []
        self.flushed_at = -math.inf

    def may_go_on(self) -> bool:
        """False once a stop was met or the solver failed."""
        last = (self.pieces + self.waiting)[-1:]
        return not last or last[0].outcome == "finished"

    def add(self, piece: Trajectory) -> None:
        """Keep one more finished segment."""
        self.waiting.append(piece)
        self.done += 1
        if time.monotonic() - self.flushed_at > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one store named by the range of its segments."""
        if not self.waiting:
            return
        first, last = self.done - len(self.waiting), self.done - 1
        whole = join_stored(self.waiting)
        write(whole, self.folder / SEGMENTS / f"{first:06d}-{last:06d}.zarr", overwrite=True)
        self.pieces.append(whole)
        self.waiting = []
        self.flushed_at = time.monotonic()


def summary(job_id: str, run: Trajectory, folder: Path, seconds: float) -> dict[str, Any]:
    """What the command line prints as JSON."""
    return {
        "id": job_id,
        "label": run.attributes["label"],
        "outcome": run.outcome,
        "advice": run.advice,
        "time": run.reached,
        "clusters": _last(run, "clusters"),
        "energy": _last(run, "energy"),
        "health": run.health,
        "store": str(folder / STORE),
        "seconds": round(seconds, 3),
        "ok": succeeded(run.outcome),
    }


def _last(run: Trajectory, name: str) -> Any:
    """The last value of an observable; a nested list for a batch; None if it was not observed."""
    if f"final_{name}" not in run.arrays:
        return None
    return np.asarray(run.arrays[f"final_{name}"]).tolist()


def write_summary(folder: Path, content: dict[str, Any]) -> None:
    """Keep the summary beside the store."""
    scratch = folder / f".{SUMMARY}"
    scratch.write_text(json.dumps(content, indent=2))
    os.replace(scratch, folder / SUMMARY)


def new_folder(title: str, job_id: str) -> Path:
    """Default output folder: runs/TITLE-ID-TIME."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{title}-{job_id[:8]}-{stamp}"
