"""A sweep as a page shows it: numbers over two swept settings, whatever their names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, StoreError
from ..records.finding import attributes
from ..results.names import SWEEP_FORMAT
from ..results.strict_json import plain
from .labelled import MOST_CELLS, MOST_STATISTICS, labelled_replay
from .packing import pack
from .projection import spread
from .stores import CELL, swept


def sweep_replay(store: Path, title: str) -> dict[str, Any]:
    """Statistics over the two dimensions most arrays share; samples are averaged, the last time is taken."""
    axes = swept(store)
    if axes is None:
        raise InputError(f"{store.name} has no numbers over two swept settings")
    own = attributes(store) or {}
    said = {"kind": "sweep", "title": title, "says": str(own.get("says", ""))}
    shown = _of_a_sweep if own.get("format") == SWEEP_FORMAT else _of_any
    with _readable(store):
        return plain(said | shown(store, axes))


def _of_a_sweep(store: Path, axes: tuple[str, str]) -> dict[str, Any]:
    """What `tokenflock sweep` has written, checked by its journal."""
    from .checked import Told, open_shown

    told = Told(store.parent)
    replay = labelled_replay(open_shown(store, told), axes, told.found.keys())
    return replay | {"notes": [*replay["notes"], *told.notes()]}


def _of_any(store: Path, axes: tuple[str, str]) -> dict[str, Any]:
    from ..results.zarr_format import open_zarr

    return _replay(open_zarr(store), axes)


def _replay(dataset: Any, axes: tuple[str, str]) -> dict[str, Any]:
    thin = {axis: spread(dataset.sizes[axis], MOST_CELLS) for axis in axes}
    statistics = [
        {"name": str(name), "values": pack(table[np.ix_(thin[axes[0]], thin[axes[1]])], "float32")}
        for name in dataset.data_vars
        if (table := _table(dataset[name], axes)) is not None
    ]
    spec = dataset.attrs.get(CELL, dataset.attrs.get("spec"))
    return {
        "rows": _axis(dataset, axes[0], thin),
        "columns": _axis(dataset, axes[1], thin),
        "statistics": statistics[:MOST_STATISTICS],
        "seeds": [],
        "spec": spec if isinstance(spec, dict) else None,
        "notes": [],
    }


@contextmanager
def _readable(store: Path) -> Iterator[None]:
    """Whatever a stranger's or a damaged file raises becomes a sentence."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{store.name} is damaged: {error}") from error
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise StoreError(f"{store.name} is not a readable sweep ({reason})") from error


def _axis(dataset: Any, name: str, thin: dict[str, np.ndarray]) -> dict[str, Any]:
    values = dataset[name].values if name in dataset.coords else np.arange(dataset.sizes[name])
    return {"name": name, "values": np.asarray(values, float)[thin[name]]}


def _table(array: Any, axes: tuple[str, str]) -> np.ndarray | None:
    """One number per cell, or None if this array is none."""
    if not set(axes) <= set(array.dims) or array.dtype.kind not in "fiub":
        return None
    rest = [dim for dim in array.dims if dim not in axes]
    if not set(rest) <= {"sample", "time"}:
        return None
    if "time" in rest:
        array = array.isel(time=-1)
    if "sample" in rest:
        array = array.mean("sample")
    return np.asarray(array.transpose(*axes).values, float)
