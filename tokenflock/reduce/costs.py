"""What sums cost, measured: seconds per pair and per token and term, by platform.

Numbers of `benchmarks/crossovers.py`, from the machines named in benchmarks/results/crossovers-*.json.
They decide which reduction `Auto` takes, so only their ratios matter.
"""

from __future__ import annotations

import dataclasses

from .base import Task


@dataclasses.dataclass(frozen=True)
class PairCost:
    """Seconds of one evaluation: fixed + n^2 (pair + coordinate d)."""

    fixed: float
    pair: float
    coordinate: float

    def seconds(self, task: Task) -> float:
        """Of all heads and samples of a task."""
        each = self.pair + self.coordinate * task.d
        return self.fixed + task.heads * task.samples * task.n**2 * each


@dataclasses.dataclass(frozen=True)
class TermCost:
    """Seconds of one evaluation: fixed + n times the terms of a series."""

    fixed: float
    term: float

    def seconds(self, task: Task, terms: int) -> float:
        """Of all heads and samples of a task."""
        return self.fixed + task.heads * task.samples * task.n * terms * self.term


PAIRS = {
    "cpu": {
        "Dense": PairCost(7e-6, 1.3e-8, 9.4e-11),
        "Tiled": PairCost(1.2e-4, 2.4e-9, 9.4e-11),
        "Tiled float32": PairCost(3.8e-4, 6.9e-10, 4.4e-11),
    },
    "gpu": {
        "Dense": PairCost(1.7e-4, 1.7e-11, 1e-14),
        "Tiled": PairCost(1.7e-4, 9e-12, 6e-14),
        "Tiled float32": PairCost(3.2e-4, 5e-12, 6e-14),
        "GpuKernel": PairCost(3.5e-4, 4.0e-13, 1.7e-14),
    },
}
# By dimension: Fourier modes of the circle, and harmonics of S^2, which stand for all above.
TERMS = {
    "cpu": {2: TermCost(1e-4, 3.0e-9), 3: TermCost(4.3e-4, 2.7e-9)},
    "gpu": {2: TermCost(2e-3, 8.9e-10), 3: TermCost(2.2e-3, 9.6e-11)},
}


def platform_of(task: Task) -> str:
    """The table that applies: anything that is no CPU is priced as a GPU."""
    return "cpu" if task.platform == "cpu" else "gpu"


def term_cost(task: Task) -> TermCost:
    """What a term of the series costs in this dimension."""
    return TERMS[platform_of(task)][min(task.d, 3)]
