"""Run a spec in a folder: in parts that are each complete on disk, so a killed run continues."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import WriteError
from ..outcomes import succeeded
from ..results.identity import require_same
from ..results.locking import Writer, only_writer
from ..results.names import STORE
from ..results.strict_json import plain
from ..store import read, remove_segments, write
from ..trajectory import Trajectory
from .files import identity
from .folder import check_folder, claim, require_undamaged, sweep
from .job import Job
from .segments import Log, nothing_yet
from .spec import RunSpec

# Called with the fraction done, the time reached and the last values of the observables.
RunReport = Callable[[float, float, dict[str, Any]], None]


def run_spec(
    spec: RunSpec, folder: Path, resume: bool, overwrite: bool, report: RunReport
) -> Trajectory:
    """Integrate a spec into a folder and return the stored trajectory.

    Everything that can be refused is refused before the folder is made or touched.
    """
    with running(spec, folder, resume, overwrite, report) as (run, _):
        return run


@contextlib.contextmanager
def running(
    spec: RunSpec, folder: Path, resume: bool, overwrite: bool, report: RunReport
) -> Iterator[tuple[Trajectory, Writer]]:
    """As `run_spec`; no other process writes into the folder until the caller is done with it, too."""
    check_folder(spec, folder, resume, overwrite)
    with contextlib.ExitStack() as held:
        there = (resume or overwrite) and folder.exists()
        writer = held.enter_context(only_writer(folder)) if there else None
        if resume:
            # Once more: another process may have replaced it before it was ours.
            check_folder(spec, folder, resume, overwrite)
        if writer is not None and resume and (folder / STORE).exists():
            yield _finished(spec, folder), writer
            return
        job = Job(spec)
        job.compile()
        if not resume:
            claim(spec, folder, nothing_yet(job), writer)
        writer = writer or held.enter_context(only_writer(folder))
        log = Log(job, writer)
        sweep(folder)
        with _saying_how_to_continue(folder):
            run = _integrate(log, report)
            write(run, folder / STORE, overwrite=True, check=writer.require_place)
        writer.require_place()
        remove_segments(folder)
        yield run, writer


@contextlib.contextmanager
def _saying_how_to_continue(folder: Path) -> Iterator[None]:
    try:
        yield
    except WriteError as error:
        if not isinstance(error.__cause__, OSError):  # the folder is not there any more
            raise
        again = f"tokenflock run --resume --out {shlex.quote(str(folder))}"
        raise WriteError(
            f"{error}. What is done is kept: free some space, then continue with {again}"
        ) from error


def _finished(spec: RunSpec, folder: Path) -> Trajectory:
    require_undamaged(folder)
    run = read(folder)
    # Release 0.1 wrote the id of the spec, too: what it has finished is still a result.
    require_same(
        folder / STORE,
        {"spec": run.attributes.get("id")},
        {"spec": identity(spec)},
        "it is not the result of the spec beside it: take the folder from a copy, or start the run again "
        "with --overwrite or another --out",
    )
    # A kill between the store and its clean-up leaves both.
    remove_segments(folder)
    sweep(folder)
    return run


def _integrate(log: Log, report: RunReport) -> Trajectory:
    job = log.job
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
        "time": np.asarray(run.arrays["final_time"]).tolist(),
        "clusters": _last(run, "clusters"),
        "energy": _last(run, "energy"),
        "notes": run.notes,
        "health": run.health,
        "store": str(folder / STORE),
        "seconds": round(seconds, 3),
        "ok": succeeded(run.outcome),
    }
    return plain(content)


def time_text(result: dict[str, Any]) -> str:
    """The time that a summary says was reached: `3`, or of a batch `0.5 to 3`."""
    times = np.asarray(result["time"], dtype=float)
    low, high = f"{np.min(times):g}", f"{np.max(times):g}"
    return low if low == high else f"{low} to {high}"


def _last(run: Trajectory, name: str) -> Any:
    """The last value of an observable; a nested list for a batch; None if it was not observed."""
    if f"final_{name}" not in run.arrays:
        return None
    if run.axes[name][0] == "time":
        # The number a reader of the store finds, to the last bit.
        return np.asarray(run.arrays[name])[-1].tolist()
    return np.asarray(run.arrays[f"final_{name}"]).tolist()
