"""The axes of a sweep with their values, from the small coordinate arrays of its store."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..lab.setting_paths import last_name
from ..results.bounds import MOST_AXES, MOST_CELLS
from ..results.own_files import is_own_file
from ..results.zarr_format import open_array
from .finding import list_in, metadata

LARGEST_COORDINATE = 64 * 2**20
# What a sweep writes its coordinates with. None of these can grow a small file into a large array.
CODECS = {"bytes", "vlen-utf8", "crc32c"}


@dataclass(frozen=True)
class RecordAxis:
    """One axis: for every path of the spec that it sets, the value at each position.

    `length` counts for axes whose values are not known.
    """

    name: str
    values: dict[str, list[Any]]
    length: int = 0

    def __len__(self) -> int:
        return max([self.length, *(len(column) for column in self.values.values())])


def swept_paths(labels: dict[str, Any]) -> set[str]:
    """Every setting that a sweep varies, seeds too: its spec holds those of the first cell only."""
    axes = labels.get("axes")
    lists = axes.values() if isinstance(axes, dict) else ()
    return {str(path) for paths in lists if isinstance(paths, list) for path in paths}


def swept_axes(store: Path, labels: dict[str, Any]) -> tuple[tuple[RecordAxis, ...], int]:
    """The axes but for seeds, and how many cells the seeds make of each combination."""
    axes = labels.get("axes")
    given: dict[str, Any] = axes if isinstance(axes, dict) else {}
    if len(given) > MOST_AXES:
        raise StoreError(f"it tells of {len(given)} axes, and a sweep has at most {MOST_AXES}")
    seeds = {str(name) for name in list_in(labels, "seed_axes")}
    found: list[RecordAxis] = []
    repeats = 1
    for name, paths in given.items():
        if name in seeds:
            repeats *= _length(store, name)
        else:
            found.append(_axis(store, name, paths if isinstance(paths, list) else []))
    cells = math.prod(len(axis) for axis in found) * repeats
    if cells > MOST_CELLS:
        # Without the number: it may have more digits than Python prints.
        raise StoreError(f"it tells of more than {MOST_CELLS:,} cells, which no sweep has")
    return tuple(found), repeats


def _axis(store: Path, name: str, paths: list[Any]) -> RecordAxis:
    length = _length(store, name)
    values: dict[str, list[Any]] = {}
    for path in map(str, paths):
        column = next(
            (c for c in _names(name, path, paths) if _is_coordinate(store, c, name, length)), None
        )
        if column is not None:
            values[path] = _read(store, column)
    return RecordAxis(name, {p: v for p, v in values.items() if len(v) == length}, length)


def _names(axis: str, path: str, paths: list[Any]) -> list[str]:
    """What the coordinate of a path may be called: by itself, by its last key, by its axis."""
    return [path, last_name(path), *([axis] if len(paths) == 1 else [])]


def _length(store: Path, name: str) -> int:
    shape = list_in(_of(store, name), "shape")
    length = shape[0] if len(shape) == 1 and isinstance(shape[0], int) and shape[0] > 0 else 1
    if length > MOST_CELLS:
        raise StoreError(f"its axis {name} has more than {MOST_CELLS:,} positions")
    return length


def _of(store: Path, name: str) -> dict[str, Any]:
    """The metadata of an array that lies in the store itself, whatever its name says."""
    own = name == Path(name).name and name not in ("", ".", "..")
    return metadata(store / name) if own else {}


def _is_coordinate(store: Path, name: str, axis: str, length: int) -> bool:
    content = _of(store, name)
    return (
        list_in(content, "dimension_names") == [axis]
        and list_in(content, "shape") == [length]
        and all(isinstance(c, dict) and c.get("name") in CODECS for c in list_in(content, "codecs"))
        and _holds_only_small_files(store / name)
    )


def _holds_only_small_files(folder: Path) -> bool:
    """No links, pipes or devices, and not more than a coordinate needs."""
    total = 0
    for here, inner, files in os.walk(folder):
        if any(os.path.islink(os.path.join(here, name)) for name in inner):
            return False
        for name in files:
            path = Path(here) / name
            total += path.lstat().st_size if is_own_file(path) else LARGEST_COORDINATE + 1
    return total <= LARGEST_COORDINATE


def _read(store: Path, name: str) -> list[Any]:
    """The numbers or texts of a coordinate; empty if they cannot be read."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = open_array(store / name)[:].tolist()
    # A damaged file may raise anything; what is unreadable is merely not searched by value.
    except Exception:
        return []
    return [value if _is_scalar(value) else None for value in found]


def _is_scalar(value: Any) -> bool:
    finite = not isinstance(value, float) or math.isfinite(value)
    return finite and isinstance(value, (str, int, float, bool))
