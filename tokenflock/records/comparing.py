"""Two results side by side: what their specs ask for, and where their numbers differ.

Arrays are aligned by coordinates (common times, common cells), never interpolated, and compared piece
by piece. Numbers are equal to the last bit, or within a tolerance, or different.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..errors import InputError
from .aligning import Alignment, align
from .axes import swept_paths
from .boxes import MOST_ITEMS, Box, boxes, chunk_of
from .opening import Result

NUMBERS = "biufc"
# Reasons that are named when nothing can be compared.
SHOWN = 3


@dataclass
class ArrayDifference:
    """How one array differs. `where` is the place of the largest absolute difference.

    compared -- how many numbers are in both; different -- of these, not equal to the last bit;
    outside -- of these, farther apart than the tolerance, or a number in one result only.
    """

    name: str
    shapes: tuple[list[int], list[int]]
    compared: int = 0
    different: int = 0
    outside: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    where: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass
class Comparison:
    """Everything that was compared; `equal` decides the exit code."""

    kind: str
    tol: float | None
    spec: list[dict[str, Any]]
    arrays: list[ArrayDifference]
    only_in: tuple[list[str], list[str]]
    partly: list[str]

    @property
    def equal(self) -> bool:
        """Whether both hold the same arrays over the same coordinates, equal within the tolerance."""
        same = all(not found.outside and not found.note for found in self.arrays)
        return same and not self.partly and not any(self.only_in)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"equal": self.equal, **asdict(self)}


def compare(first: Result, second: Result, tol: float | None = None) -> Comparison:
    """Compare two results of one kind."""
    if tol is not None and not (np.isfinite(tol) and tol >= 0):
        raise InputError(f"--tol must be a number that is zero or more, got {tol:g}")
    if (first.kind == "sweep") != (second.kind == "sweep"):
        raise InputError(
            f"{first.folder} is a {first.kind} and {second.folder} is a {second.kind}; compare like with "
            "like, for example a run of one cell: tokenflock show SWEEP --cell ..."
        )
    left, right = first.dataset(), second.dataset()
    shared = sorted(str(name) for name in left.data_vars if name in right.data_vars)
    alignments = {str(dim): align(left, right, str(dim)) for dim in left.dims if dim in right.dims}
    found = [_compare_array(left[name], right[name], alignments, tol) for name in shared]
    if not any(each.compared for each in found):
        reasons = list(dict.fromkeys(each.note for each in found if each.note))[:SHOWN]
        reasons = reasons or ["they share no array"]
        raise InputError(
            f"{first.folder} and {second.folder} cannot be compared: {'; '.join(reasons)}"
        )
    return Comparison(
        kind=first.kind,
        tol=tol,
        spec=spec_difference(first, second),
        arrays=found,
        only_in=(_missing(left, right), _missing(right, left)),
        partly=[each.says for each in alignments.values() if each.is_partial],
    )


def _missing(given: Any, other: Any) -> list[str]:
    return sorted(str(name) for name in given.data_vars if name not in other.data_vars)


def spec_difference(first: Result, second: Result) -> list[dict[str, Any]]:
    """Settings that are not the same, by their paths; None where one result has no such setting.

    What a sweep varies is no setting of it. Its axes stand for that, and those with the same values are
    the same however they were written.
    """
    alike = {axis.name for axis in first.facts.axes if axis.values and axis in second.facts.axes}
    left, right = _settings(first, alike), _settings(second, alike)
    paths = [*left, *(path for path in right if path not in left)]
    return [
        {"path": path, "a": left.get(path), "b": right.get(path)}
        for path in paths
        if left.get(path) != right.get(path) or (path in left) != (path in right)
    ]


def _settings(result: Result, alike: set[str]) -> dict[str, Any]:
    """What made a result, flat: its spec, else what its store says of model and method."""
    labels = result.labels
    if result.kind == "sweep":
        asked = {"sweep": _sweep_table(labels, alike), **_dict(labels.get("spec"))}
    elif result.kind == "trace":
        asked = {"trace": {k: v for k, v in _dict(labels.get("trace")).items() if k != "seconds"}}
    else:
        asked = _dict(labels.get("spec")) or {
            name: labels.get(name) for name in ("model", "numerics")
        }
    flat: dict[str, Any] = {}
    _flatten(asked, "", flat)
    varied = swept_paths(labels) if result.kind == "sweep" else set()
    return {path: value for path, value in flat.items() if path not in varied}


def _sweep_table(labels: dict[str, Any], alike: set[str]) -> dict[str, Any]:
    """The [sweep] table without the axes that the other sweep has too; one is named by its last key."""
    table = _dict(labels.get("sweep"))
    axes = _dict(table.get("axes"))
    others = {key: axis for key, axis in axes.items() if key.rpartition(".")[2] not in alike}
    return {**table, "axes": others}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _flatten(table: dict[str, Any], prefix: str, flat: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", flat)
        else:
            flat[f"{prefix}{key}"] = value


def _compare_array(
    left: Any, right: Any, alignments: dict[str, Alignment], tol: float | None
) -> ArrayDifference:
    found = ArrayDifference(str(left.name), (list(left.shape), list(right.shape)))
    if set(left.dims) != set(right.dims):
        found.note = f"{left.name} is {_over(left)} in one and {_over(right)} in the other"
        return found
    lacking = [alignments[dim].says for dim in left.dims if alignments[dim].count == 0]
    if lacking:
        found.note = "; ".join(lacking)
        return found
    if tol is None and left.dtype.kind in NUMBERS and left.dtype != right.dtype:
        found.note = f"stored as {left.dtype} and {right.dtype}"
    right = right.transpose(*left.dims)
    shape = [alignments[dim].count for dim in left.dims]
    for box in boxes(shape, chunk_of(left), MOST_ITEMS // 4):
        places = [alignments[dim].places(piece) for dim, piece in zip(left.dims, box, strict=True)]
        pair = [
            _select(array, [place[side] for place in places])
            for side, array in enumerate((left, right))
        ]
        _add(found, pair[0], pair[1], left, places, box, tol)
    return found


def _over(array: Any) -> str:
    return f"over {' x '.join(map(str, array.dims))}" if array.dims else "one number"


def _select(array: Any, places: list[Any]) -> np.ndarray:
    return np.asarray(array.isel(dict(zip(array.dims, places, strict=True))).values)


def _add(
    found: ArrayDifference,
    a: np.ndarray,
    b: np.ndarray,
    left: Any,
    places: list[tuple[Any, Any]],
    box: Box,
    tol: float | None,
) -> None:
    """Count one piece in."""
    found.compared += a.size
    differing = _differing_bits(a, b)
    if not differing.any():
        return
    found.different += int(differing.sum())
    if a.dtype.kind not in NUMBERS or b.dtype.kind not in NUMBERS:
        found.outside += int(differing.sum())
        return
    absolute, relative = _distances(a, b)
    far = differing if tol is None else np.minimum(absolute, relative) > tol
    found.outside += int(far.sum())
    found.max_relative = max(found.max_relative, float(relative.max()))
    if float(absolute.max()) > found.max_absolute or not found.where:
        found.max_absolute = float(absolute.max())
        ranked = absolute if found.max_absolute > 0 else differing
        found.where = _place(left, np.unravel_index(int(np.argmax(ranked)), a.shape), places)


def _differing_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays are not the same to the last bit; other types are compared by value."""
    if a.dtype != b.dtype or a.dtype.kind not in "fc":
        return np.asarray(a != b)
    width = a.dtype.itemsize if a.dtype.kind == "f" else a.dtype.itemsize // 2
    unsigned = np.dtype(f"u{width}")
    raw = [np.ascontiguousarray(x).reshape(*x.shape, 1).view(unsigned) for x in (a, b)]
    return np.any(raw[0] != raw[1], axis=-1)


def _distances(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Absolute difference and that over the larger of both; infinite where only one is a number."""
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        absolute = np.where(same, 0.0, np.abs(a - b))
        relative = np.where(same, 0.0, absolute / np.maximum(np.abs(a), np.abs(b)))
    lost = np.isnan(absolute)
    relative = np.where(np.isnan(relative), np.inf, relative)
    return np.where(lost, np.inf, absolute), relative


def _place(left: Any, position: tuple[Any, ...], places: list[tuple[Any, Any]]) -> dict[str, Any]:
    """The coordinates of one number."""
    found: dict[str, Any] = {}
    for dim, number, (here, _) in zip(left.dims, position, places, strict=True):
        index = here.start + int(number) if isinstance(here, slice) else int(here[int(number)])
        found[str(dim)] = left[dim].values[index].item() if dim in left.coords else index
    return found
