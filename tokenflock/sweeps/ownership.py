"""What belongs to the folder of a sweep: files and folders of its own, never links or pipes.

Folders come from strangers: what is written must not land outside, and what is read must not lie there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ..errors import StoreError
from ..lab.folder import SUMMARY
from ..store import SCRATCH
from ..store import SWEEP as STORE

SPEC, JOURNAL, FIGURE = "sweep.toml", "journal.jsonl", "figure.png"
LOCK = ".lock"
# Beside the lock and not in it: some versions of filelock empty the lock file of the other process.
HOLDER = ".writer.json"
OWN = {STORE, SPEC, JOURNAL, SUMMARY, FIGURE, LOCK, HOLDER}
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def refuse_links(folder: Path, chunks: bool = True) -> None:
    """Refuse a folder in which something of a sweep is a link, or neither a file nor a folder.

    chunks -- look at each of them; readers do so only when they open one.
    """
    for item in _items(folder):
        if item.name in OWN or item.name.startswith(SCRATCH):
            _require_own(item)
    for array in _items(folder / STORE):
        _require_own(array)
        if chunks and array.is_dir():
            for chunk in _items(array.path):
                _require_own(chunk)


def _items(place: str | Path) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"cannot read {place}: {error.strerror or error}") from error


def _require_own(item: os.DirEntry[str]) -> None:
    if item.is_file(follow_symlinks=False) or item.is_dir(follow_symlinks=False):
        return
    what = "a link" if item.is_symlink() else "neither a file nor a folder"
    raise StoreError(
        f"{item.path} is {what}, and could lead out of the sweep; remove it, or take the folder from a "
        "copy in which it is a file of its own"
    )


def open_own(path: Path) -> BinaryIO:
    """Open a file to read it, if it is one and no link; a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | NO_LINKS | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(descriptor, "rb")


def write_own(path: Path, text: str) -> None:
    """Write a small file in its place, if that is no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINKS
    with open(os.open(path, flags, 0o666), "w") as file:
        file.write(text)
