"""How a sweep is going: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol

from ..results.strict_json import printable

SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class Standing:
    """How far a sweep is: its cells, those done, those of them that failed, and those done by us."""

    cells: int
    done: int
    failed: int
    computed: int = 0

    @property
    def fraction(self) -> float:
        """The part that is done."""
        return self.done / self.cells


class Watcher(Protocol):
    """Hears of a sweep."""

    def standing(self, now: Standing) -> None:
        """Another block is on the disk."""
        ...

    def say(self, sentence: str) -> None:
        """Something the user should know."""
        ...

    def stop(self, failed: bool = False) -> None:
        """Nothing more will come; after a failure nothing of it need remain to be seen."""
        ...


def watcher(title: str) -> Watcher:
    """What suits the stream that people look at."""
    return Bar(title) if sys.stderr.isatty() else Lines(title)


class Silent:
    """Hears and says nothing."""

    def standing(self, now: Standing) -> None: ...

    def say(self, sentence: str) -> None: ...

    def stop(self, failed: bool = False) -> None: ...


class Rate:
    """Cells per second since the first block came in: before that, processes start and compile."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def per_second(self, now: Standing) -> float | None:
        """None until there is something to count."""
        moment = time.monotonic()
        if self._first is None and now.computed:
            self._first = (moment, now.computed)
        if self._first is None or now.computed == self._first[1]:
            return None
        return (now.computed - self._first[1]) / max(moment - self._first[0], 1e-9)


class Bar:
    """A bar with the house's columns on a terminal."""

    def __init__(self, title: str):
        from rich.markup import escape

        from ..integrate.progress import make_bar

        self._bar: Any = make_bar(escape(printable(title)))
        self._rate = Rate()

    def standing(self, now: Standing) -> None:
        note = _note(now, self._rate)
        self._bar.update(self._bar.task_ids[0], completed=now.fraction, note=note)

    def say(self, sentence: str) -> None:
        self._bar.console.print(printable(sentence), markup=False, highlight=False, soft_wrap=True)

    def stop(self, failed: bool = False) -> None:
        self._bar.live.transient = failed
        self._bar.stop()


class Lines:
    """A line at the start, at the end and every few seconds, for logs."""

    def __init__(self, title: str):
        self._title, self._rate = title, Rate()
        self._last = float("-inf")

    def standing(self, now: Standing) -> None:
        note, rate = _note(now, self._rate), self._rate.per_second(now)
        moment = time.monotonic()
        if moment - self._last < SECONDS_BETWEEN_LINES and now.done < now.cells:
            return
        self._last = moment
        left = f", {(now.cells - now.done) / rate:.0f} s left" if rate else ""
        self.say(f"{self._title}: {now.fraction:.0%}, {note}{left}")

    def say(self, sentence: str) -> None:
        print(printable(sentence), file=sys.stderr, flush=True)

    def stop(self, failed: bool = False) -> None: ...


def _note(now: Standing, rate: Rate) -> str:
    speed = rate.per_second(now)
    parts = [
        f"{now.done}/{now.cells} cells",
        *([] if speed is None else [f"{speed:.3g} cells/s"]),
        *([f"{now.failed} failed"] if now.failed else []),
    ]
    return ", ".join(parts)
