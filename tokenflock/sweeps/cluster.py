"""The workers of a dask cluster: one of our own on this machine, or any that runs already."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import InputError, SolveError, TokenflockError
from .lookout import ASK_SECONDS, Lookout, Say
from .remote import Sender
from .workers import WINDOW, Order, Positions, prepare_process, told_or_raised

if TYPE_CHECKING:
    from .grid import Block
    from .layout import BlockResult

HOW_TO_INSTALL = 'pip install "tokenflock[cluster]"'
T = TypeVar("T")
CONNECT_SECONDS = 10
START_SECONDS = 120.0
CLOSE_SECONDS = 5
STARTS = 3
# How often to see whether an answer has come, and how long one may take to travel.
PAUSE, FETCH_SECONDS = 0.01, 600.0
# A worker process of ours that dies is replaced in a few seconds.
PATIENCE_SECONDS = 60.0
CHATTY = ("distributed", "tornado", "asyncio")
# Cells are refused by their estimate; a worker that pauses for memory might never go on.
NO_PAUSES = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
NO_END = (TimeoutError, OSError, RuntimeError, CancelledError)


def is_installed() -> bool:
    """Whether the extra `cluster` is there."""
    return find_spec("distributed") is not None


def dask_setup(_worker: object) -> None:
    """What dask calls in each process of a cluster of ours as it starts."""
    prepare_process()
    # Ctrl-C reaches every process of a terminal; the client decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class OnCluster:
    """Blocks computed by whatever workers the client's cluster has; `patience` and `stop` as in Lookout."""

    def __init__(
        self,
        order: Order,
        client: Any,
        say: Say,
        patience: float | None = None,
        stop: Callable[[str], None] | None = None,
    ):
        self.client = client
        self.lookout = Lookout(client, say, patience, stop)
        self._sender = Sender(order)

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, BlockResult | Exception]]:
        finished = self._finished()
        under_way: dict[Any, Block] = {}
        coming = iter(blocks)

        def hand_out() -> None:
            while len(under_way) < self._room() and (block := next(coming, None)) is not None:
                future = self._start(block, None)
                under_way[future.key] = block
                finished.add(future)

        hand_out()
        while under_way:
            future = self._next(finished)
            answer = self._answer(future)
            block = under_way.pop(future.key)
            future.release()
            hand_out()
            yield block, answer

    def attempt(self, block: Block, only: Positions | None) -> BlockResult | Exception:
        finished = self._finished()
        finished.add(self._start(block, only))
        return self._answer(self._next(finished))

    def _finished(self) -> Any:
        from distributed import as_completed

        return as_completed(loop=self.client.loop)

    def _start(self, block: Block, only: Positions | None) -> Any:
        return self.client.submit(*self._sender.call(block.index, only), pure=False)

    def _room(self) -> int:
        """Workers come and go; with none of them there is still something to wait for."""
        return WINDOW * max(1, self.lookout.threads())

    def _next(self, finished: Any) -> Any:
        """The next future that is done, for as long as one can be expected."""
        self.lookout.begin()
        while not finished.has_ready():
            time.sleep(PAUSE)
            self.lookout.look()
        return next(finished)

    def _answer(self, future: Any) -> BlockResult | Exception:
        ask, seconds = self.lookout.ask, 0.0
        try:
            error = ask(lambda: future.exception(timeout=ASK_SECONDS))
            if error is None:
                answer = self._sender.accepted(ask(lambda: self._fetched(future)))
                seconds = getattr(answer, "seconds", 0.0)
                return answer
        except TokenflockError:
            raise
        except Exception as lost:  # with the worker that had the answer
            error = lost
        finally:
            self.lookout.answered(seconds)
        return told_or_raised(error)

    def _fetched(self, future: Any) -> Any:
        """An answer from the worker that has it, which may fall silent now: so somebody looks meanwhile."""
        fetching = _Apart(lambda: future.result(timeout=FETCH_SECONDS))
        while not fetching.ended(PAUSE):
            self.lookout.look()
        return fetching.answer()


@contextlib.contextmanager
def own_cluster(order: Order, workers: int, say: Say) -> Iterator[OnCluster]:
    """Worker processes on this machine, one thread each; they end with this process, however it ends."""
    import dask.config
    from distributed import Client

    with _quiet(), _main_left_alone(), dask.config.set(NO_PAUSES), contextlib.ExitStack() as opened:
        cluster = _started(workers)
        opened.callback(_end, cluster)
        client = Client(cluster, set_as_default=False)
        opened.callback(_close, client)
        yield OnCluster(order, client, say, PATIENCE_SECONDS, functools.partial(_kill, cluster))


def _kill(cluster: Any, address: str) -> None:
    """End the process of one worker, stopped or not; dask hands its blocks on, and starts another."""
    for nanny in list(cluster.workers.values()):
        if nanny.worker_address == address and nanny.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def _started(workers: int) -> Any:
    """A local cluster; one whose processes die while they start is started again."""
    from distributed import LocalCluster

    # Not above: worker processes load this module before they are set up, and this loads JAX.
    from ..host_memory import GIB, LIMIT_VARIABLE
    from ..memory import available_bytes

    reason: Exception | None = None
    # What one process may use, shared by all: a cell that does not fit is refused, and not killed.
    share = {LIMIT_VARIABLE: repr(available_bytes() / GIB / workers)}

    def start() -> Any:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            # No page to look at; what dask serves in its place is for this machine alone.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            preload=[__name__],
            env=share,
        )

    for _ in range(STARTS):
        try:
            return _within(START_SECONDS, start)
        except (RuntimeError, OSError) as error:
            reason = error
    raise SolveError(
        f"{workers} worker processes did not start ({reason}); use fewer, or --workers 1 to compute in "
        "this process"
    ) from reason


class _Apart(Generic[T]):
    """A call in a thread that nobody need wait for."""

    def __init__(self, make: Callable[[], T]):
        self._make = make
        self._made: list[T] = []
        self._raised: list[Exception] = []
        self._thread = threading.Thread(target=self._try, daemon=True)
        self._thread.start()

    def _try(self) -> None:
        try:
            self._made.append(self._make())
        except Exception as error:
            self._raised.append(error)

    def ended(self, seconds: float) -> bool:
        """Whether there is an answer; waits so long for one."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def answer(self) -> T:
        """What it returned, or raised."""
        if self._raised:
            raise self._raised[0]
        return self._made[0]


def _within(seconds: float, make: Callable[[], T]) -> T:
    """What `make` returns or raises, if that is soon; dask starts processes without any limit of time."""
    made = _Apart(make)
    if not made.ended(seconds):
        raise TimeoutError(f"nothing happened for {seconds:.0f} s")
    return made.answer()


def _close(client: Any) -> None:
    """What does not end by itself is left: all that counts is on the disk."""
    with contextlib.suppress(*NO_END):
        client.close(timeout=CLOSE_SECONDS)


def _end(cluster: Any) -> None:
    """Stop the worker processes, and kill those that do not stop."""
    workers = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
    try:
        cluster.close(timeout=CLOSE_SECONDS)
    except NO_END:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


@contextlib.contextmanager
def running_cluster(order: Order, address: str, say: Say) -> Iterator[OnCluster]:
    """The cluster of a scheduler that runs somewhere."""
    from distributed import Client

    with _quiet(), contextlib.ExitStack() as opened:
        try:
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            raise InputError(
                f"no dask scheduler answers at {address!r}; give the address it printed when it "
                "started, for example --scheduler tcp://10.0.0.5:8786"
            ) from error
        opened.callback(_close, client)
        yield OnCluster(order, client, say)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What happens to workers is told in our words, not in dask's log.

    Dask has given levels of their own to parts of itself by the time it is imported.
    """
    known = [*CHATTY, *logging.root.manager.loggerDict]
    loggers = [logging.getLogger(name) for name in known if name.split(".")[0] in CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _main_left_alone() -> Iterator[None]:
    """Worker processes must not run the caller's script again, as new Python processes do.

    They look it up as __main__.__file__ or __spec__, at their first start and whenever one is replaced.
    """
    main = sys.modules["__main__"]
    hidden = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)
