"""Which workers have fallen silent: their process is stopped, or their machine is gone, and nobody says so.

A worker tells its scheduler twice a second that it lives, also while it computes. One that is stopped
keeps its connection and its blocks, and dask waits five minutes for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

# A machine under load may keep a process waiting, and one that traces a program is busy.
SILENT_SECONDS, SILENT_BLOCKS = 20.0, 3.0
# Who has not looked for so long was stopped himself, and hears of everybody's silence at once.
NOT_LOOKED_SECONDS = 10.0


class Silence:
    """Remembers when each worker was last heard of; the clocks of other machines are not compared."""

    def __init__(self) -> None:
        self.longest_block = 0.0
        self._heard: dict[str, tuple[float, float]] = {}
        self._looked = time.monotonic()
        self._told: set[str] = set()

    @property
    def allowed(self) -> float:
        """Seconds a worker may be silent: longer where its blocks take long."""
        return max(SILENT_SECONDS, SILENT_BLOCKS * self.longest_block)

    def took(self, seconds: float) -> None:
        """A block took so long."""
        self.longest_block = max(self.longest_block, seconds)

    def fallen_silent(self, marks: Mapping[str, float], now: float) -> dict[str, float]:
        """Workers that are silent for longer than is allowed, and for how long; each is told once.

        marks -- by worker the time at which its scheduler last heard of it, on the scheduler's clock.
        """
        away, self._looked = now - self._looked > NOT_LOOKED_SECONDS, now
        for worker, mark in marks.items():
            known = self._heard.get(worker)
            if known is None or known[0] != mark or away:
                self._heard[worker] = (mark, now)
                self._told.discard(worker)
        self._heard = {worker: self._heard[worker] for worker in marks}
        found = {worker: now - since for worker, (_, since) in self._heard.items()}
        late = {w: s for w, s in found.items() if s > self.allowed and w not in self._told}
        self._told |= late.keys()
        return late
