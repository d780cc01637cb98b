"""The workers of a dask cluster: one of our own on this machine, or any that runs already."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import InputError, SolveError
from .workers import WINDOW, Order, Positions, compute, prepare_process, told_or_raised, versions

if TYPE_CHECKING:
    from .grid import Block
    from .layout import BlockResult

HOW_TO_INSTALL = 'pip install "tokenflock[cluster]"'
Say = Callable[[str], None]
CONNECT_SECONDS = 10
CLOSE_SECONDS = 5
STARTS = 3
# How often to see whether an answer has come, and whether there are workers at all.
PAUSE, LOOK_SECONDS = 0.01, 2.0
# A worker process of ours that dies is replaced in a few seconds.
PATIENCE_SECONDS = 60.0
CHATTY = ("distributed", "tornado", "asyncio")


def is_installed() -> bool:
    """Whether the extra `cluster` is there."""
    return find_spec("distributed") is not None


def dask_setup(_worker: object) -> None:
    """What dask calls in each process of a cluster of ours as it starts."""
    prepare_process()
    # Ctrl-C reaches every process of a terminal; the client decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class ClusterLost(SolveError):
    """The scheduler is gone, and with it all that was under way."""


class OnCluster:
    """Blocks computed by whatever workers the client's cluster has.

    patience -- how many seconds it may be without any worker before it is given up (None: forever, as
        a queue may take its time).
    """

    def __init__(self, order: Order, client: Any, say: Say, patience: float | None = None):
        self.order, self.client, self.say, self.patience = order, client, say, patience
        self.address = client.scheduler.address
        self.versions = versions()

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
        return self.client.submit(compute, self.order, block.index, only, self.versions, pure=False)

    def _room(self) -> int:
        """Workers come and go; with none of them there is still something to wait for."""
        return WINDOW * max(1, self._threads())

    def _threads(self) -> int:
        return sum(self._ask(self.client.nthreads).values())

    def _next(self, finished: Any) -> Any:
        """The next future that is done; with nobody to compute it, a word about that."""
        looked = alone_since = time.monotonic()
        told = False
        while not finished.has_ready():
            time.sleep(PAUSE)
            now = time.monotonic()
            if now - looked < LOOK_SECONDS:
                continue
            looked = now
            if self._threads():
                alone_since = now
            elif self.patience is not None and now - alone_since > self.patience:
                raise ClusterLost("all worker processes are gone")
            elif self.patience is None and not told:
                self.say(f"the cluster at {self.address} has no workers; waiting for one")
                told = True
        return next(finished)

    def _answer(self, future: Any) -> BlockResult | Exception:
        error = self._ask(future.exception)
        return self._ask(future.result) if error is None else told_or_raised(error)

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Dask cancels everything when its scheduler is gone, and cannot be asked any more."""
        try:
            return question()
        except (CancelledError, OSError, TimeoutError) as error:
            raise ClusterLost(f"the scheduler at {self.address} is gone") from error


@contextlib.contextmanager
def own_cluster(order: Order, workers: int, say: Say) -> Iterator[OnCluster]:
    """Worker processes on this machine, one thread each; they end with this process, however it ends."""
    from distributed import Client

    with _quiet(), _main_left_alone(), contextlib.ExitStack() as opened:
        cluster = _started(workers)
        opened.callback(cluster.close, timeout=CLOSE_SECONDS)
        client = Client(cluster, set_as_default=False)
        opened.callback(client.close, timeout=CLOSE_SECONDS)
        yield OnCluster(order, client, say, PATIENCE_SECONDS)


def _started(workers: int) -> Any:
    """A local cluster; one whose processes die while they start is started again."""
    from distributed import LocalCluster

    reason: Exception | None = None
    for _ in range(STARTS):
        try:
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                # No page to look at; what dask serves in its place is for this machine alone.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                preload=[__name__],
            )
        except (RuntimeError, OSError, TimeoutError) as error:
            reason = error
    raise SolveError(
        f"{workers} worker processes did not start ({reason}); use fewer, or --workers 1 to compute in "
        "this process"
    ) from reason


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
        opened.callback(client.close, timeout=CLOSE_SECONDS)
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
