"""Integrating a spec in parts: one compiled program, run from state to state.

Where a run is cut depends on its spec alone, never on when it was flushed or killed, so a resumed run
makes the same steps as an uninterrupted one. All parts have the same number of times, so that one
compiled program serves them all.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ..integrate.clocks import Clock

PARTS = 40


class Part(NamedTuple):
    """Consecutive times; `keep` marks those to be saved that the part before has not saved."""

    times: np.ndarray
    keep: np.ndarray


def cut(times: np.ndarray, clock: Clock, step: float | None) -> list[Part]:
    """About PARTS parts of equal length: some saves each, or several per save if saves are few."""
    fine = _refine(times, clock, step)
    saved = np.isin(fine, times)
    rows = -(-(len(fine) - 1) // PARTS)
    return [_part(fine, saved, first, rows) for first in range(0, len(fine) - 1, rows)]


def _part(fine: np.ndarray, saved: np.ndarray, first: int, rows: int) -> Part:
    times, keep = fine[first : first + rows + 1], saved[first : first + rows + 1].copy()
    keep[0] = first == 0
    # The end is repeated, so that the last part needs no program of its own, nor do other numbers of saves up
    # to the next power of two.
    missing = 2 ** math.ceil(math.log2(rows + 1)) - len(times)
    return Part(np.pad(times, (0, missing), mode="edge"), np.pad(keep, (0, missing)))


def _refine(times: np.ndarray, clock: Clock, step: float | None) -> np.ndarray:
    """The save times, with times between them where they are fewer than PARTS."""
    pieces = PARTS // (len(times) - 1)
    if pieces <= 1:
        return times
    between = [_between(low, high, pieces, clock, step) for low, high in itertools.pairwise(times)]
    return np.unique(np.concatenate([times, *between]))


def _between(low: float, high: float, pieces: int, clock: Clock, step: float | None) -> np.ndarray:
    """Times strictly inside an interval: equal steps of the clock, or whole fixed steps."""
    if step is None:
        ends = np.asarray(clock.inverse(np.array([low, high])))
        inner = np.asarray(clock.time(np.linspace(ends[0], ends[1], pieces + 1)))[1:-1]
        margin = 1e-9 * (high - low)
    else:
        count = (high - low) / step
        inner = low + step * np.unique(np.round(np.linspace(0, count, pieces + 1)))
        margin = step / 2
    return inner[(inner > low + margin) & (inner < high - margin)]
