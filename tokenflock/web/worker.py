"""A worker process: `python -m tokenflock.web.worker`. Runs and reads for the server, never in it.

Requests come on stdin, answers go to stdout (wire.py). A thread listens, so that a cancel is heard
while the engine computes, and so that the process ends with the server, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..compiled_programs import forget_compiled_programs
from ..errors import InputError
from . import wire
from .messages import say
from .page_limits import Limits

NICENESS = 10
Write = Callable[[str, str], None]
Task = Callable[[dict[str, Any], Write], None]


class Inbox:
    """Requests in order; a cancel names the request it ends."""

    def __init__(self, source: BinaryIO):
        self.requests: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self.last_cancelled = 0
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: BinaryIO) -> None:
        while (message := wire.read(source)) is not None:
            kind, body = message
            if kind == "cancel":
                self.last_cancelled = int(body)
            else:
                self.requests.put((kind, json.loads(body)))
        # The server is gone, or wants us to be. A running program is not waited for.
        os._exit(0)


def main() -> None:
    """Answer requests until stdin ends."""
    source, sink = _own_the_pipes()
    _be_nice()
    inbox = Inbox(source)
    limits = Limits(**json.loads(sys.argv[1])) if len(sys.argv) > 1 else Limits()
    _bound_memory(limits.process_gib)
    if "engine" in sys.argv[2:]:
        # Now, before the first request: the engine takes seconds to load.
        from . import exact  # noqa: F401
    tasks, write = _tasks(limits, inbox), _writer(sink)
    while True:
        kind, request = inbox.requests.get()
        with _cpu_limit(limits.cpu_seconds):
            tasks[kind](request, write)
        _tidy_up(limits.tidy_gib)


def _own_the_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep stdin and stdout for the messages; what libraries print goes to stderr."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return source, sink


def _be_nice() -> None:
    """The server's event loop and the user's browser come first."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _writer(sink: BinaryIO) -> Write:
    def write(kind: str, body: str) -> None:
        sink.write(wire.encode(kind, body))
        sink.flush()

    return write


def _tasks(limits: Limits, inbox: Inbox) -> dict[str, Task]:
    def run(request: dict[str, Any], write: Write) -> None:
        from ..host_memory import LIMIT_VARIABLE
        from .exact import stream

        os.environ.setdefault(LIMIT_VARIABLE, str(limits.memory_gib))

        def send(kind: str, **content: Any) -> None:
            write(kind, say(kind, **content))

        number = request["number"]
        stream(request["start"], limits, send, lambda: inbox.last_cancelled >= number)

    def listing(request: dict[str, Any], write: Write) -> None:
        from .stores import find

        found = find([Path(root) for root in request["roots"]])
        entries = [{**each.as_json(), "path": os.fsdecode(each.path)} for each in found]
        write("list", json.dumps(entries))

    def replay(request: dict[str, Any], write: Write) -> None:
        from .replay import read_replay

        found = read_replay(request["path"], request["roots"])
        body = json.dumps(found, allow_nan=False, separators=(",", ":"))
        if len(body) > limits.replay_bytes:
            raise InputError(
                f"this is {len(body) / 2**20:.0f} MiB as a page reads it, and a page takes "
                f"{limits.replay_bytes // 2**20} MiB"
            )
        write("replay", body)

    return {"run": _told(run), "list": _told(listing), "replay": _told(replay)}


def _told(task: Task) -> Task:
    """A task whose errors become a sentence to the page."""

    def guarded(request: dict[str, Any], write: Write) -> None:
        try:
            task(request, write)
        except Exception as error:
            write("error", say("error", message=_sentence(error)))

    return guarded


def _sentence(error: Exception) -> str:
    from ..errors import TokenflockError

    if isinstance(error, TokenflockError):
        return str(error)
    if isinstance(error, MemoryError):
        return "this run does not fit in memory; lower the number of tokens or of frames"
    reason = (str(error).strip() or type(error).__name__).split("\n")[0][:300]
    return f"the engine refused this: {reason} ({type(error).__name__})"


@contextlib.contextmanager
def _cpu_limit(seconds: int) -> Iterator[None]:
    """Within this block the process is ended after so many more seconds of processor time."""
    _end_after(seconds)
    try:
        yield
    finally:
        _end_after(None)


def _end_after(seconds: int | None) -> None:
    try:
        import resource
    except ImportError:  # Windows: the server's wall clock still ends a long run
        return
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = most if seconds is None else int(used.ru_utime + used.ru_stime) + 1 + seconds
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_CPU, (wanted, most))


def _bound_memory(gib: float) -> None:
    """What a file or a run makes this process ask for beyond it is refused, not taken from others."""
    try:
        import resource
    except ImportError:
        return
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = int(gib * 2**30)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def _tidy_up(gib: float) -> None:
    """Every new setting leaves a compiled program behind: forget them, and if that is not enough, end.

    A process that ended is replaced by a new one.
    """
    if _resident_gib() > gib:
        forget_compiled_programs()
    if _resident_gib() > 2 * gib:
        os._exit(0)


def _resident_gib() -> float:
    try:
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30
    except OSError:  # no such file on other systems
        return 0.0


if __name__ == "__main__":
    main()
