"""Trajectories on disk: Zarr v3 through xarray, written beside and moved into place when complete."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .errors import StoreError
from .trajectory import Trajectory

STORE = "trajectory.zarr"
SEGMENTS = "segments"
# Attributes that are nested data; Zarr keeps JSON, but strict JSON has no NaN or infinity.
FORMAT = "tokenflock-trajectory-1"


def write(run: Trajectory, path: Path, overwrite: bool = False) -> Path:
    """Write a trajectory as one Zarr v3 store at `path`."""
    if path.exists() and not overwrite:
        raise StoreError(f"{path} exists; choose another name or pass overwrite=True")
    dataset = run.dataset.copy()
    dataset.attrs = {"format": FORMAT, "attributes": json.dumps(_plain(run.attributes))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as scratch:
            fresh = Path(scratch) / "store.zarr"
            dataset.to_zarr(fresh, zarr_format=3, consolidated=False)
            _flush(fresh)
            if path.exists():
                os.replace(path, Path(scratch) / "replaced")
            os.replace(fresh, path)
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}; choose a folder you can write to with "
            "enough free space"
        ) from error
    return path


def _flush(folder: Path) -> None:
    """Make files durable before the rename that makes them visible."""
    for file in folder.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _plain(value: Any) -> Any:
    """Nested attributes as strict JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": repr(value)}
    return value


def read(path: str | Path) -> Trajectory:
    """Open a store written by `write`, a run folder, or what an interrupted run left behind."""
    folder = Path(path)
    if not folder.exists():
        raise StoreError(f"{folder} does not exist")
    if (folder / STORE).exists():
        return _read_store(folder / STORE)
    if (folder / SEGMENTS).exists():
        return _read_segments(folder)
    return _read_store(folder)


def _read_store(path: Path) -> Trajectory:
    import xarray as xr

    try:
        with xr.open_zarr(path, consolidated=False, chunks=None) as lazy:
            dataset = lazy.load()
        attributes = json.loads(dataset.attrs["attributes"])
    except Exception as error:
        raise StoreError(
            f"{path} is not a readable tokenflock store ({type(error).__name__}: {error}); it may be "
            "truncated or of another kind. Run again, or continue the run with --resume"
        ) from error
    return _from_dataset(dataset, attributes)


def _from_dataset(dataset: Any, attributes: dict[str, Any]) -> Trajectory:
    names = [str(name) for name in dataset.data_vars]
    return Trajectory(
        arrays={name: dataset[name].values for name in names},
        axes={name: tuple(str(dim) for dim in dataset[name].dims) for name in names},
        coords={str(name): dataset[name].values for name in dataset.coords},
        attributes=attributes,
        details={name: dict(dataset[name].attrs) for name in names},
    )


def segment_paths(folder: Path) -> list[Path]:
    """Complete segments of an unfinished run, in order."""
    return sorted((folder / SEGMENTS).glob("[0-9]*.zarr"))


def _read_segments(folder: Path) -> Trajectory:
    from .integrate.assemble import join_stored

    paths = segment_paths(folder)
    if not paths:
        raise StoreError(f"{folder} holds no finished part of a run; run it again with --resume")
    return join_stored([_read_store(path) for path in paths])


def remove_segments(folder: Path) -> None:
    """Drop the parts of a run once the whole is stored."""
    shutil.rmtree(folder / SEGMENTS, ignore_errors=True)


# The public name: `flock.open(path)`.
open = read
