"""Timing: contestants run in turn, so that a slow minute of the machine falls on all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Name = TypeVar("Name")
Contestant = Callable[[], object]


@dataclass(frozen=True)
class Samples:
    """Seconds of the repeats of one contestant."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median time."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range of the repeats, relative to the median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median


def race(
    contestants: Mapping[Name, Contestant],
    repeats: int,
    budget: float,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], None] = lambda: None,
) -> dict[Name, Samples]:
    """Run every contestant once per round, another one first in each round, and keep its times.

    A contestant that has used up its share of `budget` seconds sits out the rounds that follow; each
    runs at least once. Contestants are warm (compiled, in cache) and return when the work is done;
    `before` is called before each.
    """
    names = list(contestants)
    taken: dict[Name, list[float]] = {name: [] for name in names}
    share = budget / max(len(names), 1)
    for turn in range(repeats):
        first = turn % len(names) if names else 0
        for name in names[first:] + names[:first]:
            if turn and sum(taken[name]) >= share:
                continue
            before()
            start = clock()
            contestants[name]()
            taken[name].append(clock() - start)
    return {name: Samples(tuple(times)) for name, times in taken.items()}


def again(call: Contestant, times: int) -> Contestant:
    """Several calls as one sample, so that neither a launch nor a cold start weighs on it."""

    def repeat() -> None:
        for _ in range(times):
            call()

    return repeat


def calls_within(
    call: Contestant, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> int:
    """How many calls fill so many seconds, at least one."""
    start = clock()
    call()
    return max(1, round(seconds / max(clock() - start, 1e-9)))
