"""Stored results found in folders, by their own labels; no array is read here and JAX is not needed.

A Zarr v3 store is a folder with zarr.json, whose attributes say what it is, and one folder per array,
whose zarr.json names its dimensions.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import StoreError

STORE, SEGMENTS, METADATA = "trajectory.zarr", "segments", "zarr.json"
TRAJECTORY = "tokenflock-trajectory-1"
MOST_ENTRIES, MOST_FOLDERS = 1_000, 20_000
DEEPEST = 4
LARGEST_METADATA = 8 * 2**20
# Averaged over.
SAMPLES = "sample"
# Axes of states and observables: never settings that someone has swept.
NOT_SWEPT = {
    *(
        "token",
        "other_token",
        "attended",
        "coordinate",
        "direction",
        "axis",
        "axis2",
        "row",
        "column",
    ),
    *("bin", "side", "moment", "cosine", "quantile", "angle", "head", "layer", "eigen", "eigen2"),
}

Kind = Literal["run", "trace", "sweep"]


@dataclass(frozen=True)
class Found:
    """Something a page can open: where, and what its label says."""

    path: Path
    kind: Kind
    title: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """A line of the library. Names on a disk need not be text; what is none becomes '?'."""
        lines = {"id": self.id, "kind": self.kind, "title": self.title, "detail": self.detail}
        return {key: line.encode("utf-8", "replace").decode() for key, line in lines.items()}

    @property
    def id(self) -> str:
        """A name that tells nothing about the path, and cannot be turned into another."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]


def find(roots: list[Path]) -> list[Found]:
    """What lies in the folders, each once, in the order of their names."""
    visited: set[Path] = set()
    found: list[Found] = []
    for root in roots:
        for folder in _folders(root, roots, DEEPEST, visited):
            entry = describe(folder)
            if entry is not None:
                found.append(entry)
            if len(found) >= MOST_ENTRIES or len(visited) >= MOST_FOLDERS:
                return found
    return found


def _folders(folder: Path, roots: list[Path], depth: int, visited: set[Path]) -> Iterator[Path]:
    """Folders from here down, links resolved; what is a store or a run is not searched further."""
    place = inside(folder, roots)
    if place is None or place in visited or not place.is_dir():
        return
    visited.add(place)
    yield place
    if depth == 0 or _is_result(place):
        return
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        if not name.startswith("."):
            yield from _folders(place / name, roots, depth - 1, visited)


def _is_result(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (METADATA, STORE, SEGMENTS))


def _is_own_folder(path: Path) -> bool:
    """A folder itself, not a link to one, which may lead anywhere."""
    return path.is_dir() and not path.is_symlink()


def inside(path: Path, roots: list[Path]) -> Path | None:
    """The path with its links resolved, if it lies in one of the (resolved) folders."""
    try:
        place = path.resolve()
    except (OSError, RuntimeError):
        return None
    return place if any(place.is_relative_to(root) for root in roots) else None


def require_inside(store: Path, roots: list[Path]) -> None:
    """Refuse a store in which a link leads out of the folders: its bytes would be read as numbers."""
    for here, folders, files in os.walk(store):
        for name in (*folders, *files):
            path = Path(here) / name
            if path.is_symlink() and inside(path, roots) is None:
                raise StoreError(f"{store.name} holds a link that leads out of the given folders")


def describe(folder: Path) -> Found | None:
    """What a folder is, or None."""
    if _is_own_folder(folder / STORE):
        return _trajectory(folder, folder / STORE)
    if _is_own_folder(folder / SEGMENTS):
        parts = sorted(path for path in (folder / SEGMENTS).glob("*.zarr") if _is_own_folder(path))
        return _trajectory(folder, parts[-1]) if parts else None
    attributes = _attributes(folder)
    if attributes is None:
        return None
    if attributes.get("format") == TRAJECTORY:
        return _trajectory(folder, folder)
    return _sweep(folder, attributes)


def _attributes(store: Path) -> dict[str, Any] | None:
    content = _metadata(store)
    found = content.get("attributes", {}) if content.get("node_type") == "group" else None
    return found if isinstance(found, dict) else None


def _metadata(folder: Path) -> dict[str, Any]:
    try:
        path = folder / METADATA
        # Neither a link, which may lead out of the folder, nor a pipe or device, which never ends.
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_METADATA:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _list(content: dict[str, Any], key: str) -> list[Any]:
    found = content.get(key)
    return found if isinstance(found, list) else []


def _trajectory(folder: Path, store: Path) -> Found | None:
    attributes = _attributes(store)
    if attributes is None or attributes.get("format") != TRAJECTORY:
        return None
    label = str(attributes.get("label") or folder.stem)
    shape = _list(_metadata(store / "initial_points"), "shape")
    size = f"{shape[-2]} tokens in {shape[-1]} dimensions, " if len(shape) >= 2 else ""
    if isinstance(attributes.get("trace"), dict):
        return Found(folder, "trace", label, f"{size}{folder.name}")
    spec = attributes.get("spec")
    title = spec.get("title") if isinstance(spec, dict) else None
    outcome = attributes.get("outcome", "")
    return Found(folder, "run", str(title or label), f"{label}, {size}{outcome}, {folder.name}")


def _sweep(folder: Path, attributes: dict[str, Any]) -> Found | None:
    axes = swept(folder)
    if axes is None:
        return None
    title = attributes.get("title") or attributes.get("label") or folder.stem
    return Found(folder, "sweep", str(title), f"sweep over {axes[0]} and {axes[1]}")


def swept(store: Path) -> tuple[str, str] | None:
    """The two settings, with their values, that most numeric arrays of a store are over, or None.

    Samples are averaged over, and time counts as a setting only beside a single one.
    """
    pairs: dict[tuple[str, str], int] = {}
    for array in _arrays(store):
        content = _metadata(array)
        names = [str(name) for name in _list(content, "dimension_names")]
        kept = [name for name in names if name != SAMPLES]
        if len(kept) == 3 and "time" in kept:
            kept.remove("time")
        if (
            len(kept) == 2
            and all(_is_setting(store, name) for name in kept)
            and _is_number(content)
        ):
            pair = (kept[0], kept[1])
            pairs[pair] = pairs.get(pair, 0) + 1
    return max(pairs, key=lambda pair: pairs[pair]) if pairs else None


def _arrays(store: Path) -> list[Path]:
    try:
        return sorted(path for path in store.iterdir() if (path / METADATA).is_file())
    except OSError:
        return []


def _is_setting(store: Path, name: str) -> bool:
    return name not in NOT_SWEPT and name == Path(name).name and _is_number(_metadata(store / name))


def _is_number(array: dict[str, Any]) -> bool:
    kind = array.get("data_type")
    return isinstance(kind, str) and kind.startswith(("float", "int", "uint", "bool"))
