"""Run a spec in a folder: in parts that are each complete on disk, so a killed run continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..integrate.outcome import succeeded
from ..plain import plain
from ..store import STORE, read, remove_segments, write
from ..trajectory import Trajectory
from .files import AnySpec
from .folder import check_folder, claim, sweep
from .job import Job
from .parts import Integration
from .segments import Log, nothing_yet
from .spec import RunSpec

# Called with the fraction done, the time reached and the last values of the observables.
Report = Callable[[float, float, dict[str, Any]], None]


def run_spec(
    spec: AnySpec, folder: Path, resume: bool, overwrite: bool, report: Report
) -> Trajectory:
    """Integrate a spec into a folder and return the stored trajectory.

    Everything that can be refused is refused before the folder is made or touched.
    """
    check_folder(spec, folder, resume, overwrite)
    if resume and (folder / STORE).exists():
        return _finished(folder)
    job = make_job(spec)
    job.compile()
    if resume:
        sweep(folder)
    else:
        claim(spec, folder, nothing_yet(job), overwrite)
    run = _integrate(job, folder, report)
    write(run, folder / STORE, overwrite=True)
    remove_segments(folder)
    return run


def make_job(spec: AnySpec) -> Integration:
    """The job of a spec: of tokens, or of a density."""
    if isinstance(spec, RunSpec):
        return Job(spec)
    from .density import DensityJob

    return DensityJob(spec)


def _finished(folder: Path) -> Trajectory:
    run = read(folder)
    # A kill between the store and its clean-up leaves both.
    remove_segments(folder)
    sweep(folder)
    return run


def _integrate(job: Integration, folder: Path, report: Report) -> Trajectory:
    log = Log(job, folder)
    try:
        while log.may_go_on():
            part = job.parts[log.done]
            segment = job.advance(log.state, part)
            log.add(segment)
            report(log.done / len(job.parts), float(part.times[-1]), segment.final_saved)
    except KeyboardInterrupt:
        log.flush()
        raise
    return log.whole()


def summary(job_id: str, run: Trajectory, folder: Path, seconds: float) -> dict[str, Any]:
    """What the command line prints as JSON."""
    content = {
        "id": job_id,
        "label": run.attributes["label"],
        "outcome": run.outcome,
        "advice": run.advice,
        "time": run.reached,
        "clusters": _last(run, "clusters"),
        "energy": _last(run, "energy"),
        "notes": run.notes,
        "health": run.health,
        "store": str(folder / STORE),
        "seconds": round(seconds, 3),
        "ok": succeeded(run.outcome),
    }
    return plain(content)


def _last(run: Trajectory, name: str) -> Any:
    """The last value of an observable; a nested list for a batch; None if it was not observed."""
    if f"final_{name}" not in run.arrays:
        return None
    if run.axes[name][0] == "time":
        # The number a reader of the store finds, to the last bit.
        return np.asarray(run.arrays[name])[-1].tolist()
    return np.asarray(run.arrays[f"final_{name}"]).tolist()
