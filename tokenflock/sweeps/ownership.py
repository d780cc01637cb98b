"""What belongs to the folder of a sweep: files and folders of its own, never links or pipes.

Folders come from strangers: what is written must not land outside, and what is read must not lie there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import StoreError
from ..results.locking import MARKS
from ..results.names import FIGURE, JOURNAL, SCRATCH, SUMMARY, SWEEP_SPEC, SWEEP_STORE

OWN = {SWEEP_STORE, SWEEP_SPEC, JOURNAL, SUMMARY, FIGURE, *MARKS}


def refuse_links(folder: Path, chunks: bool = True) -> None:
    """Refuse a folder in which something of a sweep is a link, or neither a file nor a folder.

    chunks -- look at each of them; readers do so only when they open one.
    """
    for item in _items(folder):
        if item.name in OWN or item.name.startswith(SCRATCH):
            _require_own(item)
    for array in _items(folder / SWEEP_STORE):
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
