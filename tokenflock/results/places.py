"""Where a result may go: looked at before anything is computed, and told in a sentence where it may not."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError, StoreError
from .atomic import told_by_the_disk
from .locking import MARKS
from .names import SCRATCH


def new_folder(title: str, job_id: str) -> Path:
    """Default output folder: runs/TITLE-ID-TIME, with a number if two start in one second."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-") or "run"
    stem = f"{name}-{job_id[:8]}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        folder = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise InputError("a thousand runs started in one second; give --out")


def look_at(folder: Path) -> tuple[bool, bool]:
    """Whether a place for results exists, and whether it is empty; what can be no folder is refused."""
    try:
        if "\0" in str(folder):
            raise ValueError("a path has no null characters")
        exists, is_folder = folder.exists() or folder.is_symlink(), folder.is_dir()
        empty = is_folder and all(item.name in MARKS for item in folder.iterdir())
    except (OSError, ValueError) as error:
        raise InputError(f"--out {str(folder)!r} cannot be used: {error}") from error
    if exists and not is_folder:
        raise InputError(f"{folder} is a file; choose another --out")
    return exists, empty


def check_place(
    folder: Path,
    overwrite: bool,
    holds: Callable[[Path], bool],
    what: str,
    ways: str = "or replace it with --overwrite",
) -> None:
    """Refuse a folder that results of one kind must not touch: taken, or not `what` these replace."""
    exists, empty = look_at(folder)
    if exists and not empty and not overwrite:
        raise InputError(f"{folder} exists; choose another --out, {ways}")
    if exists and not empty and not holds(folder):
        raise InputError(f"{folder} does not hold {what}; refusing to overwrite it")
    check_parent(folder)


def check_parent(folder: Path) -> None:
    """The nearest existing parent must be a folder one can write in."""
    whole = folder.absolute()
    parent = next((parent for parent in whole.parents if parent.exists()), whole)
    if not parent.is_dir():
        raise StoreError(f"cannot write {folder}: {parent} is a file; choose another --out")
    place = folder if folder.exists() else parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise StoreError(f"cannot write {folder}: {parent} is not writable; choose another --out")
    # Permissions do not tell all: some file systems take no new folder from anyone.
    with told_by_the_disk(folder), tempfile.TemporaryDirectory(dir=place, prefix=SCRATCH):
        pass
