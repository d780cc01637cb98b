"""Worker processes, lent to one request at a time in the order of asking."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ..errors import TokenflockError
from . import wire
from .page_limits import Limits

# What ends a request; everything else is news on the way.
ENDS = ("done", "cancelled", "error", "list", "replay")
DEBUG_VARIABLE = "TOKENFLOCK_DEBUG"

TellPlace = Callable[[int], Awaitable[None]]


class WorkerDied(TokenflockError):
    """A worker process ended in the middle of a request."""


class Worker:
    """One child process, and the request it is working on."""

    def __init__(self, limits: Limits, loads_engine: bool = True):
        self.limits, self.loads_engine = limits, loads_engine
        self.number = 0
        self.busy = False
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; it may load the engine while nobody waits for it."""
        debugging = bool(os.environ.get(DEBUG_VARIABLE))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tokenflock.web.worker",
            json.dumps(self.limits.as_json()),
            *(["engine"] if self.loads_engine else []),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if debugging else asyncio.subprocess.DEVNULL,
            # Ctrl-C in the terminal is the server's to hear.
            start_new_session=True,
        )

    @property
    def id(self) -> int:
        """The process id."""
        return self._running.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._running.returncode is not None

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "the worker was not started"
        return self._process

    async def ask(self, kind: str, request: dict[str, Any]) -> None:
        """Begin a request."""
        self.number += 1
        self.busy = True
        await self._tell(kind, json.dumps({**request, "number": self.number}))

    async def _tell(self, kind: str, body: str) -> None:
        stream = self._running.stdin
        assert stream is not None
        try:
            stream.write(wire.encode(kind, body))
            await stream.drain()
        except ConnectionError as error:
            raise WorkerDied(await self._obituary()) from error

    async def hear(self) -> tuple[str, str]:
        """The next message of the request: its kind and its JSON."""
        stream = self._running.stdout
        assert stream is not None
        try:
            kind, body = await wire.receive(stream)
        except asyncio.IncompleteReadError as error:
            raise WorkerDied(await self._obituary()) from error
        except ValueError as error:
            await self.kill()
            raise WorkerDied(f"the engine's answer cannot be used ({error})") from error
        self.busy = kind not in ENDS
        return kind, body

    async def _obituary(self) -> str:
        code = await self._running.wait()
        if code == -getattr(signal, "SIGXCPU", 0):
            return (
                f"the run used more than {self.limits.cpu_seconds} seconds of processor time and was "
                "ended; lower the number of tokens or t1"
            )
        return (
            f"the engine's process ended unexpectedly (code {code}), perhaps for want of memory; try "
            "again, with fewer tokens if it happens again"
        )

    async def come_to_rest(self) -> bool:
        """Cancel the request and read what is still on its way; whether the process can go on."""
        try:
            async with asyncio.timeout(self.limits.grace_seconds):
                await self._tell("cancel", str(self.number))
                while self.busy:
                    await self.hear()
        except (TimeoutError, WorkerDied):
            return False
        return True

    async def kill(self) -> None:
        """End the process now."""
        with contextlib.suppress(ProcessLookupError):
            self._running.kill()
        # asyncio waits for the end of the pipe as well, and stops reading a pipe that nobody empties.
        stream = self._running.stdout
        assert stream is not None
        with contextlib.suppress(OSError, RuntimeError):
            while await stream.read(2**16):
                pass
        await self._running.wait()


class _Ticket:
    """A place in the queue."""

    def __init__(self) -> None:
        self.news: asyncio.Queue[int | Worker] = asyncio.Queue()
        self._place: int | None = None

    def tell(self, place: int) -> None:
        """Say how many are ahead, if that has changed."""
        if place != self._place:
            self._place = place
            self.news.put_nowait(place)


class Pool:
    """Some warm workers and a queue: who asked first is served first, and is told how many are ahead."""

    def __init__(self, size: int, limits: Limits, loads_engine: bool = True):
        self.size, self.limits, self.loads_engine = size, limits, loads_engine
        self.workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._queue: list[_Ticket] = []
        self._recoveries: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the processes."""
        for _ in range(self.size):
            await self._add()

    async def close(self) -> None:
        """End all processes, whatever they are doing."""
        for recovery in list(self._recoveries):
            recovery.cancel()
        await asyncio.gather(*self._recoveries, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in self.workers))
        self.workers.clear()
        self._idle.clear()

    @property
    def idle(self) -> int:
        """Workers that wait for something to do."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        return len(self._queue)

    @contextlib.asynccontextmanager
    async def lease(self, tell_place: TellPlace | None = None) -> AsyncIterator[Worker]:
        """A worker for one request. Left in the middle of it, the worker is stopped or replaced."""
        worker = await self._take(tell_place)
        try:
            yield worker
        finally:
            if worker.busy:
                self._begin_recovery(worker)
            else:
                self._free(worker)

    async def _take(self, tell_place: TellPlace | None) -> Worker:
        ticket = _Ticket()
        self._queue.append(ticket)
        self._serve()
        try:
            while True:
                news = await ticket.news.get()
                if isinstance(news, Worker):
                    return news
                if tell_place is not None:
                    await tell_place(news)
        except BaseException:
            self._withdraw(ticket)
            raise

    def _withdraw(self, ticket: _Ticket) -> None:
        """Leave the queue; a worker that was granted in the same moment goes back."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        while not ticket.news.empty():
            news = ticket.news.get_nowait()
            if isinstance(news, Worker):
                self._idle.append(news)
        self._serve()

    def _serve(self) -> None:
        """Give idle workers to the first in the queue and tell the others their places."""
        while self._idle and self._queue:
            worker = self._idle.pop()
            if worker.has_ended:
                self._begin_recovery(worker)
            else:
                self._queue.pop(0).news.put_nowait(worker)
        for place, ticket in enumerate(self._queue):
            ticket.tell(place)

    def _free(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._serve()

    def _begin_recovery(self, worker: Worker) -> None:
        recovery = asyncio.create_task(self._recover(worker))
        self._recoveries.add(recovery)
        recovery.add_done_callback(self._recoveries.discard)

    async def _recover(self, worker: Worker) -> None:
        """Free a worker that was left in the middle of a request: as it is, or by a new process."""
        if not worker.has_ended and await worker.come_to_rest():
            self._free(worker)
            return
        await worker.kill()
        self.workers.remove(worker)
        while True:
            try:
                return await self._add()
            except OSError:
                # The machine has no process or memory to give at the moment.
                await asyncio.sleep(self.limits.grace_seconds)

    async def _add(self) -> None:
        worker = Worker(self.limits, self.loads_engine)
        await worker.start()
        self.workers.append(worker)
        self._free(worker)
