"""Files that survive a power cut: written whole, flushed, and only then given their name."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FULL, StoreError, WriteError
from .atomic import flush
from .own_files import open_own

PIECE = 1 << 20
THREADS = 8
FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


class Mark(NamedTuple):
    """What a file must look like: its size, so that a truncation is told apart, and its digest."""

    size: int
    digest: str


def mark(content: bytes) -> Mark:
    """The mark of what is about to be written."""
    return Mark(len(content), hashlib.blake2b(content, digest_size=16).hexdigest())


def mark_of(path: Path) -> Mark:
    """The mark of what is on disk, read piece by piece."""
    size, digest = 0, hashlib.blake2b(digest_size=16)
    with open_own(path) as file:
        while piece := file.read(PIECE):
            size += len(piece)
            digest.update(piece)
    return Mark(size, digest.hexdigest())


def flush_tree(folder: Path) -> None:
    """Flush everything below a folder, and the folder."""
    side_by_side(flush, [*folder.rglob("*"), folder])


def side_by_side(task: Callable[..., None], *arguments: Iterable[Any]) -> None:
    """Do a task for many files in threads: a disk that waits for all at once waits about once."""
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(task, *arguments):
            pass


def write_flushed(path: Path, content: bytes) -> None:
    """A file that is on the disk itself when this returns; its name may not be."""
    with path.open("xb", buffering=0) as file:
        write_all(file.fileno(), content)
        os.fsync(file.fileno())


def write_all(descriptor: int, content: bytes) -> None:
    """Every byte: a disk that fills up takes only the first ones, and says so at the next call."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def replace_files(
    folder: Path, files: dict[str, bytes], scratch: Path, check: Callable[[], None]
) -> None:
    """Give files below `folder` new contents; a reader sees each one old or new, never in between.

    scratch -- where they are written: on the same disk, of a name that no other writer uses;
    check -- raises if the folder is not the writer's own any more. Moved away after that, nothing of
        the scratch is found in the place of the folder, so nothing is moved there.
    """
    waiting = {name: scratch / str(number) for number, name in enumerate(files)}
    try:
        scratch.mkdir(exist_ok=True)
        side_by_side(write_flushed, waiting.values(), files.values())
        check()
        for name, file in waiting.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, folder / name)
        side_by_side(flush, {(folder / name).parent for name in files} | {folder})
    except BaseException:
        for file in waiting.values():
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        raise


def how_to_continue(folder: Path) -> str:
    """The command that picks a sweep up where it is."""
    return f"tokenflock sweep --resume --out {shlex.quote(str(folder))}"


@contextlib.contextmanager
def keeping_what_is_done(folder: Path) -> Iterator[None]:
    """Turn the errors of a disk into a sentence that says what is kept and how to go on."""
    try:
        yield
    except OSError as error:
        raise what_is_kept(folder, error) from error


def what_is_kept(folder: Path, error: OSError) -> StoreError:
    """What a disk says that takes no more of a sweep."""
    if error.errno in FULL:
        remedy = "free some space"
    else:
        remedy = "make it writable" if error.errno in FORBIDDEN else "check the disk"
    kind = WriteError if error.errno in FULL else StoreError
    return kind(
        f"cannot write to {folder}: {error.strerror or error}; all finished cells are kept: "
        f"{remedy}, then continue with {how_to_continue(folder)}"
    )
