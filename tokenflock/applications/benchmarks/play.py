"""play: whether the server of the page answers at once while many pages have runs going.

The server is a process of its own (`tokenflock play`); so are the pages (`python -m
tokenflock.applications.benchmarks.play PORT PAGES`), which read every frame they get, so that what is timed
here, in a third process, is the server's answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from .core import BenchJob, Row, benchmark

PROMISED = 0.1
QUANTILE = 0.95
ALONE = "the same server, no page open"
LARGEST_MESSAGE = 2**26


@benchmark(
    "play",
    says="p95 of the seconds to a pong, with pages open and their runs going",
    quick={"pages": 50, "tokens": 256, "seconds": 12.0, "interval": 0.02},
    full={"seconds": 40.0},
)
def play(job: BenchJob) -> list[Row]:
    """One row for the WebSocket and one for HTTP, each beside the idle server."""
    # The page stands above the benchmarks; this one looks at it from outside.
    from ...web.serve import require_web

    require_web()
    asks = {"a ping over the WebSocket": _websocket, "GET /api/ping": _http}
    with _server(job.pages + 1) as port:
        job.report(0.1, "the server alone")
        alone = {name: _p95(job, ask, port, job.seconds / 4) for name, ask in asks.items()}
        with _pages(port, job.pages, job.tokens):
            job.report(0.4, f"{job.pages} pages")
            busy = {name: _p95(job, ask, port, job.seconds) for name, ask in asks.items()}
    return [_row(job, name, alone[name], busy[name]) for name in asks]


def _row(job: BenchJob, name: str, alone: float, busy: float) -> Row:
    case = f"{name}, {job.pages} pages with runs of {job.tokens} tokens"
    return Row(case, busy, "s", peers={ALONE: alone}).bar_below(PROMISED)


@contextlib.contextmanager
def _server(pages: int) -> Iterator[int]:
    """`tokenflock play` on a free port; the front end itself takes no part, so any file will do."""
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "tokenflock.js"
        module.write_text("export default {};\n")
        command = ["play", "--no-open", "--port", "0", "--max-pages", str(pages), folder]
        with _process("tokenflock", *command, TOKENFLOCK_BUNDLE=str(module)) as line:
            found = re.search(r":(\d+)/", line)
            if found is None:
                raise InputError("tokenflock play does not start here; run it by itself to see why")
            yield int(found[1])


@contextlib.contextmanager
def _pages(port: int, pages: int, tokens: int) -> Iterator[None]:
    """Pages in a process of their own; from the first frame on, runs are going."""
    module = ("tokenflock.applications.benchmarks.play", str(port), str(pages), str(tokens))
    with _process(*module):
        yield


@contextlib.contextmanager
def _process(module: str, *arguments: str, **environment: str) -> Iterator[str]:
    """A Python module as a process, and the first line it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
    finally:
        process.terminate()
        process.wait(20)


def _p95(job: BenchJob, ask: Callable[..., Any], port: int, seconds: float) -> float:
    """The quantile of the times of single questions, asked at an interval."""
    taken = []
    with ask(port) as question:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            question()
            taken.append(time.perf_counter() - start)
            job.pulse()
            time.sleep(job.interval)
    return float(np.quantile(taken, QUANTILE))


@contextlib.contextmanager
def _websocket(port: int) -> Iterator[Callable[[], None]]:
    from websockets.sync.client import connect

    with connect(_address(port), compression=None) as socket:
        socket.recv()

        def question() -> None:
            socket.send('{"type":"ping","id":1}')
            socket.recv()

        yield question


@contextlib.contextmanager
def _http(port: int) -> Iterator[Callable[[], None]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def question() -> None:
        connection.request("GET", "/api/ping")
        connection.getresponse().read()

    yield question
    connection.close()


def _address(port: int) -> str:
    return f"ws://127.0.0.1:{port}/api/exact"


async def many_pages(port: int, pages: int, tokens: int) -> None:
    """Pages that start a run, read it to its end, and start the next one."""
    started = asyncio.Event()
    tasks = [asyncio.create_task(_one_page(port, tokens, seed, started)) for seed in range(pages)]
    await started.wait()
    print("runs are going")
    await asyncio.gather(*tasks)


async def _one_page(port: int, tokens: int, seed: int, started: asyncio.Event) -> None:
    from websockets.asyncio.client import connect

    run = json.dumps(_start(tokens, seed))
    async with connect(_address(port), max_size=LARGEST_MESSAGE, compression=None) as socket:
        await socket.recv()
        while True:
            await socket.send(run)
            while '"done"' not in (news := str(await socket.recv()))[:20]:
                if '"frames"' in news[:20]:
                    started.set()


def _start(tokens: int, seed: int) -> dict[str, Any]:
    spec = {
        "title": "a page",
        "says": "",
        "model": {"name": "SA", "beta": 4.0},
        "tokens": {"law": "uniform", "d": 3, "n": tokens, "seed": seed},
        "solve": {"t1": 20.0, "method": "fixed", "dt": 0.05, "seed": 0},
    }
    return {"type": "start", "spec": spec, "t1": 20.0, "every": 0.05}


if __name__ == "__main__":
    asyncio.run(many_pages(*(int(argument) for argument in sys.argv[1:])))
