"""Finished parts of a run: joined, flushed to disk every few seconds, and picked up again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..errors import StoreError
from ..integrate.core import COUNTERS, Segment
from ..outcomes import OUTCOMES
from ..results.identity import PART_OF, require_same
from ..results.locking import Writer
from ..results.names import INITIAL, SEGMENTS
from ..results.part_names import part_name
from ..store import read_attributes, read_store, segment_paths, segment_range, write
from ..trajectory import Trajectory
from .files import content
from .job import Job

FLUSH_SECONDS = 0.5
# Writing may take at most this share of the time: a flush of 0.2 s is followed by 2 s of computing.
FLUSH_SHARE = 0.1
STEP_LIMIT = OUTCOMES.index("step-limit")


class Log:
    """What is done of a job: parts on disk, parts that wait to be written, and the last state.

    Without a writer nothing is written, and all parts wait in memory.
    """

    def __init__(self, job: Job, writer: Writer | None):
        self.job, self.writer = job, writer
        paths = [] if writer is None else segment_paths(writer.place)
        if writer is not None and (writer.place / SEGMENTS / INITIAL).exists():
            _require_start(writer.place / SEGMENTS / INITIAL, job)
        self.stored = [_read_part(path, job) for path in paths]
        self.done = 1 + segment_range(paths[-1])[1] if paths else 0
        self.waiting: list[Any] = []
        self.last = _last_of(self.stored[-1], job) if self.stored else None
        self.steps: Any = sum((piece.arrays["steps"] for piece in self.stored), 0)
        self.next_flush = time.monotonic() + FLUSH_SECONDS

    @property
    def state(self) -> Any:
        """Where the next part starts."""
        return self.job.start() if self.last is None else self.last.final

    def may_go_on(self) -> bool:
        """Whether parts are left and some sample is still on its way."""
        if self.last is None or self.done >= len(self.job.parts):
            return self.done < len(self.job.parts)
        return bool(np.any((self.last.outcome == 0) & self.job.finite(self.last.final)))

    def add(self, segment: Any) -> None:
        """Keep one more finished part; now and then write what waits."""
        segment = _held(segment, self.last)
        self.steps = self.steps + segment.stats["num_steps"]
        self.done += 1
        if self.done < len(self.job.parts):
            segment = _limited(segment, self.steps, self.job.plan.numerics.max_steps)
        self.last = segment
        self.waiting.append(segment)
        if time.monotonic() >= self.next_flush:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one store named by the range of its parts."""
        if not self.waiting or self.writer is None:
            return
        start = time.monotonic()
        first, last = self.done - len(self.waiting), self.done - 1
        piece = self._label(self.waiting)
        path = self.writer.place / SEGMENTS / part_name(first, last)
        write(piece, path, overwrite=True, check=self.writer.require_place)
        self.stored.append(piece)
        self.waiting = []
        now = time.monotonic()
        self.next_flush = now + max(FLUSH_SECONDS, (now - start) / FLUSH_SHARE)

    def _label(self, segments: list[Any]) -> Trajectory:
        first = self.done - len(segments)
        keeps = [part.keep for part in self.job.parts[first : self.done]]
        piece = self.job.label(_chained(segments, keeps))
        return with_spec(piece, self.job)

    def whole(self) -> Trajectory:
        """The run so far as one trajectory, with the health of the whole."""
        pieces = self.stored + ([self._label(self.waiting)] if self.waiting else [])
        return with_spec(self.job.joined(pieces), self.job)


def with_spec(run: Trajectory, job: Job) -> Trajectory:
    """The same run, with its identity and the full resolved spec among its attributes."""
    run.attributes.update({"id": job.id, "spec": content(job.spec), PART_OF: dict(job.identity)})
    return run


def nothing_yet(job: Job) -> Trajectory:
    """The tokens at t = 0, for a run that is killed before its first part is done."""
    start = jax.tree.map(np.asarray, job.start())
    lead = job.plan.lead_shape
    rows = {name: np.asarray(value) for name, value in job.rows(start).items()}
    empty = Segment(
        times=np.zeros((*lead, 1)),
        saved={name: np.expand_dims(value, len(lead)) for name, value in rows.items()},
        final=start,
        final_time=np.zeros(lead),
        final_saved=rows,
        outcome=np.zeros(lead, int),
        stats=dict.fromkeys(COUNTERS, np.zeros(lead, int)),
    )
    return with_spec(job.label(empty), job)


def _require_start(path: Path, job: Job) -> None:
    """The tokens at t = 0 must be of this job; they are drawn anew, so that only their owner is read."""
    with _telling_to_compute_anew(path):
        attributes = read_attributes(path)
    _require_owner(path, attributes, job)


def _read_part(path: Path, job: Job) -> Trajectory:
    with _telling_to_compute_anew(path):
        piece = read_store(path)
    _require_owner(path, piece.attributes, job)
    return piece


@contextlib.contextmanager
def _telling_to_compute_anew(path: Path) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise StoreError(
            f"{path} cannot be read, so the run cannot continue after it; delete that folder and "
            "resume again to compute this part anew"
        ) from error


def _require_owner(path: Path, attributes: dict[str, Any], job: Job) -> None:
    remedy = (
        "the run cannot continue after it: start it again with --overwrite or another --out, or take the "
        "folder from a copy"
    )
    if PART_OF not in attributes:
        remedy += "; tokenflock.open reads what was done"
    require_same(path, attributes.get(PART_OF), job.identity, remedy)


def _last_of(piece: Trajectory, job: Job) -> Any:
    """The end of a stored part as a segment without rows."""
    arrays = {name: np.asarray(value) for name, value in piece.arrays.items()}
    ends = {
        name.removeprefix("final_"): v for name, v in arrays.items() if name.startswith("final_")
    }
    final = jax.tree.map(np.asarray, job.end_of(arrays))
    rows = {name: np.asarray(value) for name, value in job.rows(final).items()}
    return Segment(
        times=np.empty(0),
        saved={},
        final=final,
        final_time=ends["time"],
        final_saved={**ends, **rows},
        outcome=arrays["outcome_code"],
        stats={},
    )


def _held(segment: Any, before: Any) -> Any:
    """Samples of a batch that had stopped before stay where they were; the others went on."""
    if before is None or not np.any(before.outcome):
        return segment
    stopped = np.asarray(before.outcome) != 0

    def choose(old: Any, new: Any) -> np.ndarray:
        wide = stopped.reshape(stopped.shape + (1,) * (np.ndim(new) - stopped.ndim))
        return np.where(wide, old, new)

    def blank(new: Any) -> np.ndarray:
        return choose(np.inf, new)

    ends = {
        name: choose(before.final_saved.get(name, new), new)
        for name, new in segment.final_saved.items()
    }
    return type(segment)(
        times=blank(segment.times),
        saved={name: blank(new) for name, new in segment.saved.items()},
        final=jax.tree.map(choose, before.final, segment.final),
        final_time=choose(before.final_time, segment.final_time),
        final_saved=ends,
        outcome=choose(before.outcome, segment.outcome),
        stats={name: choose(0, new) for name, new in segment.stats.items()},
    )


def _limited(segment: Any, steps: Any, most: int) -> Any:
    """The step limit is that of the whole run, not of a part."""
    over = (np.asarray(segment.outcome) == 0) & (np.asarray(steps) >= most)
    outcome = np.where(over, STEP_LIMIT, segment.outcome)
    return type(segment)(**{**vars(segment), "outcome": outcome})


def _closing(times: np.ndarray) -> np.ndarray:
    """The first of the rows that repeat the last one, of a part in which the run ended early.

    Their times are infinite, which makes `from_segment` close with the state where it ended; or they are
    the end of the part, where the step limit came.
    """
    table = times.reshape(-1, times.shape[-1])
    found = np.zeros(times.shape[-1], bool)
    found[np.argmax(np.all(table == table[:, -1:], axis=0))] = True
    return found


def _chained(segments: list[Any], keeps: list[np.ndarray]) -> Any:
    """Consecutive segments as one: the rows to keep, the last end, all the steps."""
    axis = segments[0].times.ndim - 1
    if np.all(segments[-1].outcome != 0):
        keeps = [*keeps[:-1], keeps[-1] | _closing(segments[-1].times)]

    def chain(parts: list[Any]) -> Any:
        rows = [np.compress(keep, part, axis) for keep, part in zip(keeps, parts, strict=True)]
        return np.concatenate(rows, axis)

    last = segments[-1]
    return type(last)(
        times=chain([segment.times for segment in segments]),
        saved={name: chain([s.saved[name] for s in segments]) for name in last.saved},
        final=last.final,
        final_time=last.final_time,
        final_saved=last.final_saved,
        outcome=last.outcome,
        stats={name: np.sum([s.stats[name] for s in segments], axis=0) for name in last.stats},
    )
