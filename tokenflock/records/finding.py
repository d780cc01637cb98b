"""Stored results found in folders; links are not followed out of them, pipes and devices not read.

A Zarr v3 store is a folder with zarr.json, whose attributes say what it is, and one folder per array,
whose zarr.json names its dimensions. Nothing here reads an array, and JAX is not needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..results.names import (
    INITIAL,
    METADATA,
    SEGMENTS,
    STORE,
    SWEEP_STORE,
)
from ..results.own_files import read_object
from ..results.part_names import chained


def folders(folder: Path, roots: list[Path], depth: int, visited: set[Path]) -> Iterator[Path]:
    """Folders from here down, links resolved; what is a store or a run is not searched further."""
    place = inside(folder, roots)
    if place is None or place in visited or not os.path.isdir(place):
        return
    visited.add(place)
    yield place
    if depth == 0 or is_result(place):
        return
    for name in _searched(place):
        yield from folders(place / name, roots, depth - 1, visited)


def _searched(place: Path) -> list[str]:
    """Names of what may be a folder, hidden ones left out."""
    try:
        with os.scandir(place) as entries:
            found = [e.name for e in entries if not e.name.startswith(".") and _may_be_folder(e)]
    except OSError:
        return []
    return sorted(found)


def _may_be_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_result(folder: Path) -> bool:
    """Whether the names in a folder are those of a result."""
    return any(os.path.lexists(folder / name) for name in (METADATA, STORE, SEGMENTS, SWEEP_STORE))


def is_own_folder(path: Path) -> bool:
    """A folder itself, not a link to one, which may lead anywhere."""
    return os.path.isdir(path) and not os.path.islink(path)


def inside(path: Path, roots: list[Path]) -> Path | None:
    """The path with its links resolved, if it lies in one of the (resolved) folders."""
    try:
        place = path.resolve()
    except (OSError, RuntimeError):
        return None
    return place if any(place.is_relative_to(root) for root in roots) else None


def require_inside(store: Path, roots: list[Path]) -> None:
    """Refuse a store in which a link leads out of the folders: its bytes would be read as numbers."""
    for here, inner, files in os.walk(store):
        for name in (*inner, *files):
            path = Path(here) / name
            if path.is_symlink() and inside(path, roots) is None:
                raise StoreError(f"{store.name} holds a link that leads out of the given folders")


def store_of(folder: Path) -> Path | None:
    """The store that says what a folder is: its own, the last part of an unfinished run, or itself."""
    for name in (STORE, SWEEP_STORE):
        if is_own_folder(folder / name):
            return folder / name
    if is_own_folder(folder / SEGMENTS):
        return _last_part(folder / SEGMENTS)
    return folder


def _last_part(segments: Path) -> Path | None:
    """The last finished part, or the tokens at t = 0 where there is none."""
    parts = [INITIAL, *chained(path.name for path in segments.glob("*"))]
    found = segments / parts[-1]
    return found if is_own_folder(found) else None


def attributes(store: Path) -> dict[str, Any] | None:
    """What a store says of itself, or None if it is no store."""
    content = metadata(store)
    found = content.get("attributes", {}) if content.get("node_type") == "group" else None
    return found if isinstance(found, dict) else None


def metadata(folder: Path) -> dict[str, Any]:
    """The zarr.json of a store or an array; empty if there is none that can be read."""
    return read_object(folder / METADATA)


def list_in(content: dict[str, Any], key: str) -> list[Any]:
    """A list under a key, whatever a stranger's file holds there."""
    found = content.get(key)
    return found if isinstance(found, list) else []


def arrays(store: Path) -> list[Path]:
    """Folders of the arrays of a store."""
    try:
        return sorted(path for path in store.iterdir() if (path / METADATA).is_file())
    except OSError:
        return []
