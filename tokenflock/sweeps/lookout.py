"""Whether a cluster still works: asked while nothing comes back, so that nobody waits for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from ..errors import SolveError
from .silence import Silence

Say = Callable[[str], None]
# How often to see whether there are workers, and whether they have something to do.
LOOK_SECONDS = 2.0
# How long a scheduler may take to answer a question, and workers may stand idle while blocks wait.
ASK_SECONDS, IDLE_SECONDS = 60.0, 120.0
# Dask itself gives up a block after the death of its fourth worker, and that block is then looked into.
LEAVINGS = 5


class ClusterLost(SolveError):
    """The cluster is gone, or of no use any more, and with it all that was under way."""


class Lookout:
    """Watches the cluster of a client.

    patience -- how many seconds it may be without any worker before it is given up (None: as long as a
        queue takes);
    stop -- ends the process of a worker that has fallen silent, so that others get its blocks and another
        takes its place; None where it is not ours.
    """

    def __init__(
        self,
        client: Any,
        say: Say,
        patience: float | None,
        stop: Callable[[str], None] | None = None,
    ):
        self.client, self.say, self.patience, self.stop = client, say, patience, stop
        self.silence = Silence()
        self.address = client.scheduler.address
        self._leavings, self._had_workers = 0, False
        self.begin()

    def begin(self) -> None:
        """Another answer is waited for."""
        self._looked = self._alone_since = self._idle_since = time.monotonic()
        self._told = False

    def answered(self, seconds: float = 0.0) -> None:
        """A worker has done something, which took it so long."""
        self._leavings = 0
        self.silence.took(seconds)

    def threads(self) -> int:
        """How many blocks can be computed at once."""
        return sum(self.ask(self._asker("ncores")).values())

    def look(self) -> None:
        """Raise if nothing can be expected any more; costs nothing most of the time."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if self.threads():
            self._had_workers, self._alone_since = True, now
            self._check_silent(now)
            self._check_busy(now)
        else:
            self._idle_since = now
            self._check_alone(now)

    def _check_alone(self, now: float) -> None:
        if self._had_workers:
            self._had_workers = False
            self._leavings += 1
        if self.patience is not None:
            if now - self._alone_since > self.patience:
                raise ClusterLost("all worker processes are gone")
        elif self._leavings >= LEAVINGS:
            raise ClusterLost(
                f"all workers of the cluster at {self.address} have left {LEAVINGS} times before one of "
                "them had finished a block; their logs say why (too little memory, or a time limit that "
                "is shorter than a block?)"
            )
        elif not self._told:
            self.say(f"the cluster at {self.address} has no workers; waiting for one")
            self._told = True

    def _check_busy(self, now: float) -> None:
        if any(self.ask(self._asker("processing")).values()):
            self._idle_since = now
        elif now - self._idle_since > IDLE_SECONDS:
            raise ClusterLost(
                f"the scheduler at {self.address} has workers and blocks that wait, and has handed out "
                f"none for {IDLE_SECONDS:.0f} s"
            )

    def _check_silent(self, now: float) -> None:
        """Workers that are there and say nothing."""
        known = self.ask(self._asker("identity"))["workers"]
        marks = {address: worker["last_seen"] for address, worker in known.items()}
        for address, seconds in self.silence.fallen_silent(marks, now).items():
            told = (
                f"the worker at {address} has given no sign of life for {seconds:.0f} s "
                f"({self.silence.allowed:.0f} s are allowed)"
            )
            if self.stop is None:
                self.say(f"{told}; its scheduler gives its blocks to others when it gives it up")
            else:
                self.say(f"{told}; it is ended, and others compute its blocks")
                self.stop(address)

    def _asker(self, question: str) -> Callable[[], Any]:
        asked = getattr(self.client.scheduler, question)
        return lambda: self.client.sync(asked, callback_timeout=ASK_SECONDS)

    def ask(self, question: Callable[[], Any]) -> Any:
        """Dask cancels everything when its scheduler is gone, and cannot be asked any more."""
        try:
            return question()
        except TimeoutError as error:
            raise ClusterLost(f"the cluster at {self.address} does not answer any more") from error
        except (CancelledError, OSError) as error:
            raise ClusterLost(f"the scheduler at {self.address} is gone") from error
