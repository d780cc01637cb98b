"""The results a page can open, by their own labels; no array is read here and JAX is not needed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..records.finding import arrays, attributes, folders, list_in, metadata, store_of
from ..results.names import RUN_FORMAT, SWEEP_FORMAT, SWEEP_STORE
from .labelled import shown_axes

MOST_ENTRIES, MOST_FOLDERS = 1_000, 20_000
DEEPEST = 4
# Where an ensemble keeps the spec of a cell of its diagram; other stores of numbers have `spec`.
CELL = "cell_spec"
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
        for folder in folders(root, roots, DEEPEST, visited):
            entry = describe(folder)
            if entry is not None:
                found.append(entry)
            if len(found) >= MOST_ENTRIES or len(visited) >= MOST_FOLDERS:
                return found
    return found


def describe(folder: Path) -> Found | None:
    """What a folder is, or None."""
    store = store_of(folder)
    labels = None if store is None else attributes(store)
    if store is None or labels is None:
        return None
    if labels.get("format") == RUN_FORMAT:
        return _diagram(store, labels) or _trajectory(folder, store, labels)
    return _sweep(store, labels) if store in (folder, folder / SWEEP_STORE) else None


def _diagram(store: Path, labels: dict[str, Any]) -> Found | None:
    """A run of `flock.ensemble`: its cells are worth more than its first system. None for other runs."""
    axes = swept(store) if isinstance(labels.get(CELL), dict) else None
    if axes is None:
        return None
    detail = f"{labels.get('label', '')}, sweep over {axes[0]} and {axes[1]}"
    return Found(store, "sweep", store.stem, detail)


def _trajectory(folder: Path, store: Path, labels: dict[str, Any]) -> Found:
    label = str(labels.get("label") or folder.stem)
    shape = list_in(metadata(store / "initial_points"), "shape")
    size = f"{shape[-2]} tokens in {shape[-1]} dimensions, " if len(shape) >= 2 else ""
    if isinstance(labels.get("trace"), dict):
        return Found(folder, "trace", label, f"{size}{folder.name}")
    spec = labels.get("spec")
    title = spec.get("title") if isinstance(spec, dict) else None
    outcome = labels.get("outcome", "")
    return Found(folder, "run", str(title or label), f"{label}, {size}{outcome}, {folder.name}")


def _sweep(store: Path, labels: dict[str, Any]) -> Found | None:
    axes = swept(store)
    if axes is None:
        return None
    title = labels.get("title") or labels.get("label") or store.stem
    return Found(store, "sweep", str(title), f"sweep over {axes[0]} and {axes[1]}")


def swept(store: Path) -> tuple[str, str] | None:
    """The two settings, with their values, that most numeric arrays of a store are over, or None.

    Samples are averaged over, and time counts as a setting only beside a single one. A dataset of
    `tokenflock sweep` says itself what was swept.
    """
    labels = attributes(store) or {}
    if labels.get("format") == SWEEP_FORMAT:
        return shown_axes(labels, _lengths(store, labels))
    pairs: dict[tuple[str, str], int] = {}
    for array in arrays(store):
        content = metadata(array)
        names = [str(name) for name in list_in(content, "dimension_names")]
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


def _lengths(store: Path, labels: dict[str, Any]) -> dict[str, int]:
    """How long the axes of a sweep and its time are, as far as its own arrays tell."""
    axes = labels.get("axes")
    found = {}
    for name in (*(axes if isinstance(axes, dict) else ()), "time"):
        shape = list_in(metadata(store / name), "shape") if name == Path(name).name else []
        if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
            continue
        # Runs that were looked at each at its own times have an array of times, over their numbers.
        found["save" if name == "time" and len(shape) > 1 else name] = shape[-1]
    return found


def _is_setting(store: Path, name: str) -> bool:
    return name not in NOT_SWEPT and name == Path(name).name and _is_number(metadata(store / name))


def _is_number(array: dict[str, Any]) -> bool:
    kind = array.get("data_type")
    return isinstance(kind, str) and kind.startswith(("float", "int", "uint", "bool"))
