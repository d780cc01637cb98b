"""One open page: its WebSocket, and the run it may have."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import time
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from ..errors import InputError
from .messages import Cancel, Ping, Start, parse, say
from .page_limits import Limits
from .pool import Pool, WorkerDied

TRY_AGAIN_LATER = 1013
# Seconds of rest for every second that reading a page's messages took; below a millisecond nobody minds.
SHARE, NOTHING, LONGEST_REST = 9.0, 1e-3, 5.0
GONE = (WebSocketDisconnect, RuntimeError)


class Pages:
    """All open pages; their number is limited."""

    def __init__(self, pool: Pool, limits: Limits):
        self.pool, self.limits = pool, limits
        self.open = 0

    async def welcome(self, socket: WebSocket) -> None:
        """Talk to a page until it closes, or say that there are too many."""
        await socket.accept()
        if self.open >= self.limits.pages:
            message = (
                f"{self.open} pages are open here, which is the limit; close one, or start the "
                "server with a larger --max-pages"
            )
            with contextlib.suppress(*GONE):
                await socket.send_text(say("error", message=message))
                await socket.close(TRY_AGAIN_LATER)
            return
        self.open += 1
        try:
            await Page(socket, self.pool, self.limits).talk()
        finally:
            self.open -= 1


class Page:
    """Answers messages in order; the run, if there is one, goes on beside."""

    def __init__(self, socket: WebSocket, pool: Pool, limits: Limits):
        self.socket, self.pool, self.limits = socket, pool, limits
        self.run: asyncio.Task[None] | None = None
        self.starts: collections.deque[float] = collections.deque()
        self._turn = asyncio.Lock()
        self._spent = 0.0

    async def talk(self) -> None:
        """Until the page closes; then its run is freed."""
        try:
            await self.send(say("hello", limits=self.limits.as_json()))
            while (message := await self.socket.receive())["type"] != "websocket.disconnect":
                await self.answer(message.get("text"))
                await self._rest()
        except GONE:
            pass
        finally:
            await self.end_run()

    async def send(self, text: str) -> None:
        """Send; a page that does not read for long is given up."""
        async with self._turn:
            try:
                async with asyncio.timeout(self.limits.stall_seconds):
                    await self.socket.send_text(text)
            except TimeoutError as error:
                raise WebSocketDisconnect(TRY_AGAIN_LATER) from error

    async def answer(self, text: str | None) -> None:
        """Act on one message; a wrong one is answered with a sentence."""
        try:
            if text is None:
                raise InputError("messages are JSON text, this one is binary")
            message = self._parsed(text)
            if isinstance(message, Ping):
                await self.send(say("pong", id=message.id))
            elif isinstance(message, Cancel):
                await self.end_run()
                await self.send(say("cancelled"))
            else:
                await self.begin_run(message)
        except InputError as error:
            await self.send(say("error", message=str(error)))

    def _parsed(self, text: str) -> Start | Cancel | Ping:
        began = time.perf_counter()
        try:
            return parse(text)
        finally:
            self._spent += time.perf_counter() - began

    async def _rest(self) -> None:
        """Reading its messages may take a page a tenth of the server's time, so that others have theirs."""
        spent, self._spent = self._spent, 0.0
        if spent > NOTHING:
            await asyncio.sleep(min(SHARE * spent, LONGEST_REST))

    async def begin_run(self, start: Start) -> None:
        """Start a run; the one before, if it is still going, is cancelled."""
        self.count_start()
        if await self.end_run():
            await self.send(say("cancelled"))
        self.run = asyncio.create_task(self._run(start))

    def count_start(self) -> None:
        """Refuse more starts within a minute than the limit."""
        now = time.monotonic()
        while self.starts and self.starts[0] < now - 60.0:
            self.starts.popleft()
        most = self.limits.starts_per_minute
        if len(self.starts) >= most:
            raise InputError(f"more than {most} runs were started within a minute; wait a little")
        self.starts.append(now)

    async def end_run(self) -> bool:
        """Free the run; whether there was one that had not ended."""
        run, self.run = self.run, None
        if run is None or run.done():
            return False
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        return True

    async def _run(self, start: Start) -> None:
        """Wait for a worker and forward what it says. A slow page slows its own run, nothing else."""
        request = {"start": start.model_dump(exclude_none=True)}
        try:
            if not await self._forward(request, again=True):
                # The worker was gone before it said a word: it had died while nobody needed it.
                await self._forward(request)
        except WorkerDied as error:
            await self._last_words(str(error))
        except TimeoutError:
            await self._last_words(
                f"the run took longer than {self.limits.run_seconds:g} seconds and was ended; what has "
                "arrived is exact. Lower the number of tokens, beta or t1, or use tokenflock run"
            )
        except GONE:
            # The page is gone or does not read: nothing more to tell it, and no run to keep.
            with contextlib.suppress(*GONE):
                await self.socket.close(TRY_AGAIN_LATER)

    async def _forward(self, request: dict[str, Any], again: bool = False) -> bool:
        """Pass on what a worker says; False if it died before its first word and may be asked `again`."""
        heard = False
        try:
            async with self.pool.lease(self._tell_place) as worker:
                await worker.ask("run", request)
                async with asyncio.timeout(self.limits.run_seconds):
                    while worker.busy:
                        _, body = await worker.hear()
                        heard = True
                        await self.send(body)
        except WorkerDied:
            if heard or not again:
                raise
            return False
        return True

    async def _tell_place(self, ahead: int) -> None:
        await self.send(say("queued", ahead=ahead))

    async def _last_words(self, message: str) -> None:
        with contextlib.suppress(*GONE):
            await self.send(say("error", message=message))
