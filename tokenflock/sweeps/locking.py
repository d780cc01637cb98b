"""One writer at a time: a lock of the kernel, which falls when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import StoreError
from .disk import keeping_what_is_done
from .ownership import HOLDER, LOCK, open_own, refuse_links, write_own

LONGEST = 10_000


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder of a sweep, or say which process does."""
    import filelock

    refuse_links(folder)
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    with keeping_what_is_done(folder):
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise StoreError(
                f"{folder} is being written by {_holder(folder)}; wait until it ends, stop it, or "
                "choose another --out"
            ) from error
    try:
        with keeping_what_is_done(folder):
            write_own(folder / HOLDER, json.dumps(_this_process()))
        yield
    finally:
        with contextlib.suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def _this_process() -> dict[str, str | int]:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"pid": os.getpid(), "host": platform.node(), "since": now}


def _holder(folder: Path) -> str:
    try:
        with open_own(folder / HOLDER) as file:
            found = json.loads(file.read(LONGEST))
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
