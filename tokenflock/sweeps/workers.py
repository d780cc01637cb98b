"""Who computes the blocks of a sweep: this process (here), or the workers of a dask cluster (cluster.py).

Both take blocks and give answers as they come, with a few blocks under way at a time, so that neither
memory nor a lost machine costs more than those. Importing this module loads neither JAX nor dask: a
process is set up (`prepare_process`) before it computes.
"""

from __future__ import annotations

import os
import platform
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import TokenflockError

if TYPE_CHECKING:
    from .grid import Block
    from .layout import BlockResult, Layout

Positions = tuple[int, ...]
# Blocks under way for each thread that computes: one in work, one waiting for it.
WINDOW = 2
COMPARED = ("tokenflock", "jax", "jaxlib")


class Order(NamedTuple):
    """What a worker is told of a sweep: its spec, and how its cells are stored."""

    text: str
    layout: Layout


class Crew(Protocol):
    """Computes blocks; an answer that is an exception says that the block could not be computed."""

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, BlockResult | Exception]]:
        """Answers in the order in which they are ready."""
        ...

    def attempt(self, block: Block, only: Positions | None) -> BlockResult | Exception:
        """One block, or some of its cells, with nothing else under way."""
        ...


def prepare_process() -> None:
    """One thread per process, before JAX is loaded: workers share the cores, so threads would wait."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def versions() -> dict[str, str]:
    """What must be equal wherever the cells of one sweep are computed."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {name: metadata.version(name) for name in COMPARED} | {"Python": python}


def listed(found: dict[str, str | None]) -> str:
    """Versions in words."""
    return ", ".join(
        f"{name} {version}" if version else f"no {name}" for name, version in found.items()
    )


def compute(order: Order, index: int, only: Positions | None) -> BlockResult:
    """A block, in the process of a worker."""
    prepare_process()
    from .block import compute_block

    return compute_block(order.text, index, only, order.layout)


def told_or_raised(error: Exception) -> Exception:
    """What is wrong with the whole sweep is raised; anything else is told of one block."""
    if isinstance(error, TokenflockError):
        raise error
    return error


class InProcess:
    """Blocks computed here, in a thread, so that Ctrl-C is heard and the disk written meanwhile."""

    def __init__(self, order: Order):
        self.order = order
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sweep")

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, BlockResult | Exception]]:
        waiting: deque[tuple[Block, Future[BlockResult]]] = deque()
        for block in blocks:
            waiting.append((block, self._start(block, None)))
            if len(waiting) == WINDOW:
                yield self._oldest(waiting)
        while waiting:
            yield self._oldest(waiting)

    def attempt(self, block: Block, only: Positions | None) -> BlockResult | Exception:
        return self._answer(self._start(block, only))

    def close(self) -> None:
        """Leave without waiting for the block in work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, block: Block, only: Positions | None) -> Future[BlockResult]:
        return self._pool.submit(compute, self.order, block.index, only)

    def _oldest(
        self, waiting: deque[tuple[Block, Future[BlockResult]]]
    ) -> tuple[Block, BlockResult | Exception]:
        block, future = waiting.popleft()
        return block, self._answer(future)

    @staticmethod
    def _answer(future: Future[BlockResult]) -> BlockResult | Exception:
        try:
            return future.result()
        except Exception as error:
            return told_or_raised(error)
