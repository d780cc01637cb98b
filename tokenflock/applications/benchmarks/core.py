"""What a benchmark is: settings for two scales, a function that measures rows, and the JSON it gives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import InputError
from ...ledger.case import Settled, changed
from ...ledger.paper import NOTHING
from ...progress import NotedReport
from .machine import describe_machine, has_gpu, versions
from .timing import Contestant, Name, Samples, race

Settings = Mapping[str, Any]
Scale = Literal["quick", "full"]
Device = Literal["cpu", "gpu"]
# Whether a larger number of the unit is the better one.
UNITS = {"pairs/s": True, "s": False, "GB": False, "exponent": False}
OURS = "ours"


def rounded(value: float | None, digits: int = 4) -> float | None:
    """The value as it is written: a few digits; None where there is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Bar:
    """A number this project has promised: `says` in words, what was measured, whether it is met."""

    says: str
    measured: float | None
    met: bool | None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"says": self.says, "measured": rounded(self.measured), "met": self.met}


@dataclass
class Row:
    """One case: our number, the peers' numbers in the same unit, and the error of ours.

    `peers` that did not run are named in `missing`, with why. `bound` is the error our method states.
    """

    case: str
    ours: float
    unit: str
    error: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    spread: float | None = None
    missing: list[str] = field(default_factory=list)
    peer_errors: dict[str, float] = field(default_factory=dict)
    bound: float | None = None
    bars: list[Bar] = field(default_factory=list)

    def against(self, peer: str) -> float | None:
        """How much better ours is than this peer, above 1 is better; None where it did not run."""
        if peer not in self.peers:
            return None
        theirs = self.peers[peer]
        return self.ours / theirs if UNITS[self.unit] else theirs / self.ours

    @property
    def ratio(self) -> float | None:
        """Ours against the best peer, above 1 is better."""
        ratios = [self.against(peer) for peer in self.peers]
        return min((ratio for ratio in ratios if ratio is not None), default=None)

    def bar_against(self, peer: str, factor: float) -> Row:
        """Promise to be `factor` times better than a peer."""
        measured = self.against(peer)
        met = None if measured is None else measured >= factor
        self.bars.append(Bar(f"at least {factor:g} x {peer}", measured, met))
        return self

    def bar_below(self, limit: float) -> Row:
        """Promise a number of at most `limit`."""
        self.bars.append(Bar(f"at most {limit:g} {self.unit}", self.ours, self.ours <= limit))
        return self

    def bar_above(self, limit: float) -> Row:
        """Promise a number of at least `limit`."""
        self.bars.append(Bar(f"at least {limit:g} {self.unit}", self.ours, self.ours >= limit))
        return self

    def bar_error(self, limit: float, says: str) -> Row:
        """Promise an error of at most `limit`."""
        met = self.error is not None and self.error <= limit
        self.bars.append(Bar(says, self.error, met))
        return self

    def as_json(self) -> dict[str, Any]:
        """Plain data, in the form docs/benchmarks.md describes."""
        return {
            "case": self.case,
            "ours": rounded(self.ours),
            "unit": self.unit,
            "error": rounded(self.error, 2),
            "bound": rounded(self.bound, 2),
            "peers": {name: rounded(value) for name, value in self.peers.items()},
            "peer_errors": {name: rounded(value, 2) for name, value in self.peer_errors.items()},
            "missing": self.missing,
            "ratio": rounded(self.ratio),
            "spread": rounded(self.spread, 2),
            "bars": [bar.as_json() for bar in self.bars],
        }


class BenchJob(Settled):
    """What a benchmark measures from: the settings as attributes, and a progress report."""

    KIND = "benchmark"

    def __init__(self, values: Settings, report: NotedReport | None = None):
        super().__init__(values)
        self._report: NotedReport = report or (lambda done, note: None)
        self._last = (0.0, "")

    def report(self, done: float, note: str) -> None:
        """Say how much is done and what comes next."""
        self._last = (done, note)
        self.pulse()

    def pulse(self) -> None:
        """Repeat the last report: a place where whoever listens may end the benchmark."""
        self._report(*self._last)

    def row_per_dimension(self, measure: Callable[[BenchJob, int], Row]) -> list[Row]:
        """measure(job, d) for every one of the job's dimensions, with a report before each."""
        rows = []
        for index, d in enumerate(self.dimensions):
            self.report(index / len(self.dimensions), f"d = {d}")
            rows.append(measure(self, d))
        return rows

    def race(self, contestants: Mapping[Name, Contestant]) -> dict[Name, Samples]:
        """Time contestants in turn, with this job's `repeats`, `budget` and `rest` in between."""
        return race(contestants, self.repeats, self.budget, before=self._before_each)

    def _before_each(self) -> None:
        self.pulse()
        # Threads of OpenMP spin for 0.2 s after their work, on the cores of whoever comes next.
        time.sleep(self.values.get("rest", 0.0))


@dataclass(frozen=True)
class Benchmark:
    """One speed statement. `full` is laid over the settings of `quick`, which ends within a minute."""

    name: str
    says: str
    quick: Settings
    full: Settings
    measure: Callable[[BenchJob], list[Row]]
    device: Device = "cpu"

    def settings(self, scale: Scale) -> dict[str, Any]:
        """The settings of a scale."""
        return {**self.quick, **(self.full if scale == "full" else {})}

    def runs_here(self) -> bool:
        """Whether this machine has the device."""
        return self.device == "cpu" or has_gpu()

    def run(
        self, scale: Scale = "quick", report: NotedReport | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Measure, and return the JSON object; `changes` replace settings of the scale."""
        values = changed(self.name, self.settings(scale), changes)
        start = time.perf_counter()
        with _on(self.device):
            rows = self.measure(BenchJob(values, report))
        return {
            "name": self.name,
            "scale": scale,
            "machine": describe_machine(self.device),
            "command": f"tokenflock bench {self.name} --scale {scale} --json",
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "seconds": round(time.perf_counter() - start, 1),
            "versions": versions(),
            "rows": [row.as_json() for row in rows],
        }

    def require_device(self) -> None:
        """Refuse to start where the device is missing."""
        if not self.runs_here():
            raise InputError(
                f"{self.name} measures an NVIDIA GPU and JAX sees none here; run it on a machine with "
                "one, or choose a benchmark without gpu in its name"
            )


def _on(device: Device) -> Any:
    """The place where arrays are made: a benchmark of the CPU stays there on a machine with a GPU."""
    import jax

    return jax.default_device(jax.devices("cpu" if device == "cpu" else None)[0])


def benchmark(
    name: str,
    *,
    says: str,
    quick: Settings,
    full: Settings = NOTHING,
    device: Device = "cpu",
) -> Callable[[Callable[[BenchJob], list[Row]]], Benchmark]:
    """Make the decorated function, which measures rows, the benchmark `name`."""
    return lambda measure: Benchmark(name, says, quick, full, measure, device)
