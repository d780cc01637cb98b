"""Plain files of our own, never links or pipes.

Folders come from strangers: what is written must not land outside, and what is read must not lie there.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import StoreError
from .strict_json import is_deeper_than

NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
LARGEST_OBJECT = 8 * 2**20
# Models inside models are described in tables inside tables; ours have a dozen.
DEEPEST_OBJECT = 100
SHOWN = 200


def is_own_file(path: Path) -> bool:
    """A plain file itself: no link, which may lead anywhere, no pipe or device, which never ends."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_no_file(path: Path) -> bool:
    """Something that is there, and is a link, a folder, a pipe or a device."""
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


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


def read_object(path: Path, largest: int = LARGEST_OBJECT) -> dict[str, Any]:
    """A JSON object in a file of bounded size and depth; empty for anything else."""
    try:
        return _object(path, largest, None)
    except (OSError, ValueError, RecursionError):
        return {}


def required_object(path: Path, largest: int = LARGEST_OBJECT) -> dict[str, Any]:
    """As `read_object`, of strict JSON, or a sentence on what is wrong with the file."""
    try:
        return _object(path, largest, _no_constant)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except RecursionError as error:
        raise StoreError(f"{path} is nested too deeply") from error
    except ValueError as error:
        reason = str(error).split("\n")[0][:SHOWN]
        raise StoreError(f"{path} is not as it was written ({reason})") from error


def _object(path: Path, largest: int, constant: Callable[[str], Any] | None) -> dict[str, Any]:
    with open_own(path) as file:
        text = file.read(largest + 1)
    if len(text) > largest:
        raise ValueError(f"more than {largest} bytes")
    content = json.loads(text, parse_constant=constant)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    if is_deeper_than(content, DEEPEST_OBJECT):
        raise ValueError(f"more than {DEEPEST_OBJECT} tables and lists inside one another")
    return content


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of strict JSON")
