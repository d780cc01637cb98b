"""Run a sweep into its folder: hand out what is unfinished, write down what comes back.

Everything that can be refused is refused before the folder is made or touched, and everything may be
killed at any moment: what the store has taken is kept, and the rest is computed by the next `resume`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, SolveError, TokenflockError
from ..lab.folder import write_summary
from ..provenance import provenance
from ..results.durable import how_to_continue, what_is_kept
from ..results.locking import Writer, only_writer
from ..results.names import JOURNAL, SUMMARY, SWEEP_SPEC, SWEEP_STORE
from ..results.strict_json import plain
from .cluster import HOW_TO_INSTALL, is_installed, own_cluster, running_cluster
from .estimate import Estimate, cores, estimate, refuse_too_much
from .folder import check_folder, clear_results, read_summary, replaced
from .grid import Grid, Index
from .isolation import computed
from .layout import Layout
from .lookout import ClusterLost
from .ownership import refuse_links
from .plan import Sweep
from .probe import layout_of
from .store import SweepStore
from .watching import Silent, Standing, Watcher
from .workers import Crew, InProcess, Order

SHOWN_FAILURES = 5


@dataclass(frozen=True)
class Wishes:
    """How a sweep is to be run; nothing of it changes a number.

    workers -- processes on this machine (default: one per core); 1 computes in this process;
    apart -- compute in a process of its own even with one worker;
    scheduler -- address of a running dask cluster to use instead;
    strict -- stop at the first failed cell; retry_failed -- compute failed cells again on resume.
    """

    resume: bool = False
    overwrite: bool = False
    workers: int | None = None
    apart: bool = False
    scheduler: str | None = None
    strict: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class SweepJob:
    """What is to be computed: a sweep, how it is stored, which of its blocks are done, and where."""

    sweep: Sweep
    layout: Layout
    done: np.ndarray
    folder: Path


def conduct(
    sweep: Sweep | None, folder: Path, wishes: Wishes, watch: Watcher | None = None
) -> dict[str, Any]:
    """Run or continue a sweep and return its summary, which is written last.

    Without `sweep` the one in the folder is continued.
    """
    start = time.perf_counter()
    watch = watch or Silent()
    check_folder(folder, wishes.resume, wishes.overwrite)
    with contextlib.ExitStack() as held:
        # Before anything is computed, so that a second process is told at once.
        writer = None
        if _is_to_change(folder, wishes):
            writer = held.enter_context(only_writer(folder, what_is_kept))
        if wishes.resume:
            store = held.enter_context(_continued(sweep, folder, wishes, watch, writer))
            finished = read_summary(folder, store.sweep.id)
            if finished is not None and store.done().all():
                if wishes.strict:
                    _refuse_failures(store)
                watch.say(f"{folder} is finished; this is its stored result")
                return finished
            job = SweepJob(store.sweep, store.layout, store.done(), folder)
            crew = held.enter_context(_crew(job, wishes, watch))
            clear_results(folder)
        else:
            assert sweep is not None, "a new sweep needs a spec"
            job = SweepJob(sweep, layout_of(sweep), np.zeros(sweep.grid.block_count, bool), folder)
            # A cluster that does not answer is no reason to make a folder.
            crew = held.enter_context(_crew(job, wishes, watch))
            store = held.enter_context(_begun(job, writer))
        count = _work(store, crew, wishes.strict, watch)
        result = _summary(store, count, wishes, time.perf_counter() - start)
        store.require_place()
        write_summary(folder, result)
    return result


def would_need(
    sweep: Sweep | None, folder: Path | None, wishes: Wishes
) -> tuple[Sweep, int, Estimate, TokenflockError | None]:
    """What `conduct` would do: the sweep, on how many workers, what it takes, and why it is refused."""
    refusal: TokenflockError | None = None
    done = np.zeros(0 if sweep is None else sweep.grid.block_count, bool)
    if wishes.resume:
        assert folder is not None, "a folder says which sweep is continued"
        store = SweepStore.open(folder, sweep)
        sweep, layout, done = store.sweep, store.layout, store.done()
    else:
        assert sweep is not None, "a new sweep needs a spec"
        layout = layout_of(sweep)
    count = worker_count(wishes, int(np.sum(~done)))
    needed = estimate(sweep, layout, _here(wishes, count))
    try:
        if folder is not None:
            check_folder(folder, wishes.resume, wishes.overwrite)
        refuse_too_much(needed, folder or Path(), float(np.mean(done)))
    except TokenflockError as error:
        refusal = error
    return sweep, count, needed, refusal


def _is_to_change(folder: Path, wishes: Wishes) -> bool:
    """Whether there is a folder that is continued or replaced; what holds no sweep is not touched."""
    if wishes.resume:
        refuse_links(folder)
        return any((folder / name).is_file() for name in (SWEEP_SPEC, JOURNAL))
    return wishes.overwrite and folder.exists()


@contextlib.contextmanager
def _begun(job: SweepJob, writer: Writer | None) -> Iterator[SweepStore]:
    if writer is None:
        store = SweepStore.create(job.folder, job.sweep, job.layout)
    else:
        store = replaced(job.folder, job.sweep, job.layout, writer)
    with store.lock(writer):
        yield store


@contextlib.contextmanager
def _continued(
    sweep: Sweep | None, folder: Path, wishes: Wishes, watch: Watcher, writer: Writer | None
) -> Iterator[SweepStore]:
    """The store of a sweep in which everything that counts as done is as it was written."""
    store = SweepStore.open(folder, sweep)
    with store.lock(writer) as repaired:
        for name in repaired:
            watch.say(f"{name} was damaged and is written again")
        damages = store.verify()
        for damage in damages:
            how = "written" if damage.file == SUMMARY else "computed"
            watch.say(f"{damage}; it will be {how} again")
        again = {damage.block for damage in damages if damage.block is not None}
        if wishes.retry_failed:
            again |= {block_of(store.sweep.grid, cell) for cell, _, _ in store.failures()}
        if again or any(damage.file in (JOURNAL, SUMMARY) for damage in damages):
            # In this order: a sweep with a summary is a finished one.
            clear_results(folder)
        if again or damages:
            store.forget(again)
        yield store


def block_of(grid: Grid, cell: Index) -> int:
    """The block a cell lies in."""
    place = [position // size for position, size in zip(cell, grid.block_shape, strict=True)]
    return int(np.ravel_multi_index(place, grid.blocks_along))


@contextlib.contextmanager
def _crew(job: SweepJob, wishes: Wishes, watch: Watcher) -> Iterator[Crew]:
    """Those who compute what is left, after what they will need is found to be there."""
    left = int(np.sum(~job.done))
    count = worker_count(wishes, left)
    needed = estimate(job.sweep, job.layout, _here(wishes, count))
    refuse_too_much(needed, job.folder, float(np.mean(job.done)))
    order = Order(job.sweep.text, job.layout)
    if wishes.scheduler is not None:
        _require_dask("--scheduler")
        with running_cluster(order, wishes.scheduler, watch.say) as crew:
            yield crew
    elif (count > 1 or (wishes.apart and left and _on_cpu())) and is_installed():
        with own_cluster(order, count, watch.say) as crew:
            yield crew
    else:
        if count > 1:
            watch.say(f"one process computes; for {count} workers {HOW_TO_INSTALL}")
        with contextlib.closing(InProcess(order)) as crew:
            yield crew


def _here(wishes: Wishes, count: int) -> int:
    """How many workers share this machine's memory: those of a foreign cluster have their own."""
    return count if wishes.scheduler is None else 1


def _require_dask(option: str) -> None:
    if not is_installed():
        raise InputError(f"{option} needs dask; {HOW_TO_INSTALL}")


def worker_count(wishes: Wishes, blocks: int) -> int:
    """One per core, or as many as asked for, and never more than there are blocks."""
    asked = wishes.workers
    if asked is not None and (type(asked) is not int or asked < 1):
        raise InputError(
            f"a sweep needs a whole number of workers, at least one worker, got {asked!r}"
        )
    return max(1, min(wishes.workers or _default_workers(), blocks))


def _default_workers() -> int:
    """A GPU is shared by nobody."""
    return cores() if _on_cpu() else 1


def _on_cpu() -> bool:
    import jax

    return jax.default_backend() == "cpu"


def _work(store: SweepStore, crew: Crew, strict: bool, watch: Watcher) -> int:
    """Compute and write what is left; gives the number of cells."""
    grid = store.sweep.grid
    left = [int(block) for block in np.flatnonzero(~store.done())]
    before = grid.size - sum(grid.block(block).size for block in left)
    count = 0
    watch.standing(Standing(grid.size, before, store.journal.failed))
    if strict:
        _refuse_failures(store)
    blocks = (grid.block(block) for block in left)
    with _saying_how_to_continue(store.folder):
        for block, result in computed(crew, blocks, store.layout):
            store.write(block, result)
            count += block.size
            watch.standing(Standing(grid.size, before + count, store.journal.failed, count))
            if strict and result.failures:
                _refuse_failures(store)
    return count


def _refuse_failures(store: SweepStore) -> None:
    for cell, _, told in store.failures():
        raise SolveError(
            f"strict: the cell {store.sweep.says_where(cell)} failed: {told}. What is done is kept; "
            f"go on without it: {how_to_continue(store.folder)}"
        )


@contextlib.contextmanager
def _saying_how_to_continue(folder: Path) -> Iterator[None]:
    try:
        yield
    except ClusterLost as error:
        raise SolveError(
            f"{error}; what is done is kept, continue with {how_to_continue(folder)}"
        ) from error


def _summary(
    store: SweepStore, computed_now: int, wishes: Wishes, seconds: float
) -> dict[str, Any]:
    """What the command line prints as JSON."""
    sweep, failed = store.sweep, store.journal.failed
    found = provenance()
    content = {
        "id": sweep.id,
        "title": sweep.title,
        "label": sweep.spec.model.name,
        "cells": sweep.grid.size,
        "failed": failed,
        "failures": [
            {"coordinates": where, "error": told}
            for _, where, told in store.failures()[:SHOWN_FAILURES]
        ],
        "notes": {
            variable.name: variable.attributes["note"]
            for variable in store.layout.variables
            if "note" in variable.attributes
        },
        "axes": {axis.name: len(axis) for axis in sweep.axes},
        "blocks": sweep.grid.block_count,
        "computed": computed_now,
        "seconds": round(seconds, 3),
        "scheduler": wishes.scheduler,
        "versions": found["versions"],
        "device": found["device"],
        "store": str(store.folder / SWEEP_STORE),
        "ok": failed < sweep.grid.size,
    }
    return plain(content)
