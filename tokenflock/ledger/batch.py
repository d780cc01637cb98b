"""Check one claim, or many over several processes; the order of the answers never depends on either."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import groupby
from multiprocessing import get_context
from typing import Any

from ..compiled_programs import forget_compiled_programs
from .claim import Scale, Value
from .examine import Report, examine
from .finding import find_claim


def check(claim_id: str, scale: Scale = "quick", seed: int = 0, **settings: Value) -> Report:
    """Check one claim; settings move its parameters: check("2312.10794v4/thm-6.8", n=64, beta=6)."""
    return examine(find_claim(claim_id), scale, seed, settings)


def check_many(
    ids: Sequence[str], scale: Scale = "quick", seed: int = 0, jobs: int | None = None
) -> Iterator[Report]:
    """Reports of many claims, as they come in; `jobs` processes (default: one per core, one on a GPU)."""
    jobs = min(default_jobs() if jobs is None else jobs, len(ids))
    if jobs <= 1:
        yield from (check(claim_id, scale, seed) for claim_id in ids)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        with _interrupts_later():
            waiting: set[Future[list[Report]]] = {
                pool.submit(_check_each, names, scale, seed) for names in _neighbours(ids)
            }
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()
    finally:
        _stop(pool)


def _check_each(names: Sequence[str], scale: Scale, seed: int) -> list[Report]:
    """The claims of one file; the next file has other models, so the programs of these are forgotten."""
    reports = [check(name, scale, seed) for name in names]
    forget_compiled_programs()
    return reports


def _neighbours(ids: Sequence[str]) -> list[list[str]]:
    """The claims of one file together: they share compiled programs, so one process takes them."""
    groups = groupby(ids, key=lambda name: find_claim(name).measure.__module__)
    return [list(names) for _, names in groups]


def default_jobs() -> int:
    """One process per core; a GPU is shared by nobody."""
    import jax

    if jax.default_backend() != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C is heard at the end: a process that loses its parent while it starts shows a traceback.

    Processes started here never hear it; who started them ends them.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the pool at once, also in the middle of a claim (Ctrl-C), and leave nothing behind."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def summary(reports: Sequence[Report]) -> dict[str, Any]:
    """Counts of the verdicts, and how many controls failed as they must."""
    verdicts = Counter(report.verdict for report in reports)
    return {
        "claims": len(reports),
        **{verdict: verdicts[verdict] for verdict in ("holds", "fails", "inconclusive")},
        "controls_failed": sum(bool(report.control_failed) for report in reports),
        "outside_hypotheses": sum(bool(report.outside) for report in reports),
        "broke_off": sum(report.run_failed for report in reports),
        "seconds": sum(report.seconds for report in reports),
    }
