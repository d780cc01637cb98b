"""Trajectories on disk: Zarr v3 through xarray, written beside and moved into place when complete.

A store holds every array with its axes, and as attributes everything that made them: model, numerics,
versions, health and, for a run from a file, the spec. A checksum of each array is kept beside them,
since Zarr reads a missing chunk as fill values without a word.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .errors import StoreError
from .trajectory import Trajectory

STORE = "trajectory.zarr"
SEGMENTS = "segments"
# The tokens at t = 0, so that a run killed before its first finished part opens too.
INITIAL = "initial.zarr"
SCRATCH = ".writing-"
# The dataset of a sweep, which is no trajectory.
SWEEP = "sweep.zarr"
FORMAT = "tokenflock-trajectory-1"
OWN_KEYS = ("format", "checksums")


def write(run: Trajectory, path: Path, overwrite: bool = False) -> Path:
    """Write a trajectory as one Zarr v3 store at `path`; it appears only when it is complete."""
    return write_dataset(run.dataset, path, FORMAT, overwrite)


def write_dataset(dataset: Any, path: Path, kind: str, overwrite: bool = False) -> Path:
    """Write a labelled dataset of a kind, with checksums; the folder appears when it is complete."""
    try:
        if path.exists() and not overwrite:
            raise StoreError(f"{path} exists; choose another name or pass overwrite=True")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=SCRATCH) as scratch:
            fresh = Path(scratch) / "store.zarr"
            with warnings.catch_warnings():
                # zarr warns that its own way of storing text may change; versions are recorded.
                warnings.simplefilter("ignore")
                place = _local(fresh)
                _labelled(dataset, kind).to_zarr(place, zarr_format=3, consolidated=False)
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


def _labelled(given: Any, kind: str) -> Any:
    """The dataset to write: attributes as strict JSON, and a checksum of every array."""
    dataset = given.copy()
    for name in dataset.variables:
        dataset[name].attrs = _plain(dataset[name].attrs)
    dataset.attrs = {
        "format": kind,
        "checksums": {str(name): _checksum(v.values) for name, v in dataset.variables.items()},
        **_plain(given.attrs),
    }
    return dataset


def _checksum(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array)
    digest = hashlib.blake2b(f"{content.dtype.str}{content.shape}".encode(), digest_size=8)
    digest.update(content.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


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
    """Nested attributes as strict JSON, which has neither NaN nor infinity."""
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": repr(value)}
    return value


def _restored(value: Any) -> Any:
    """The inverse of `_plain`, but for tuples, which come back as lists."""
    if isinstance(value, dict):
        if set(value) == {"number"}:
            return float(value["number"])
        return {name: _restored(entry) for name, entry in value.items()}
    return [_restored(entry) for entry in value] if isinstance(value, list) else value


def read(path: str | Path) -> Trajectory:
    """Open a store written by `write`, a run folder, or what an interrupted run left behind."""
    folder = Path(path)
    try:
        found = folder.exists()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot open {str(folder)!r}: {error}") from error
    if not found:
        raise StoreError(f"{folder} does not exist")
    if folder.name == SWEEP or (folder / SWEEP).exists():
        raise StoreError(f"{folder} holds a sweep, not one run; open it with tokenflock.open_sweep")
    if (folder / STORE).exists():
        return read_store(folder / STORE)
    if (folder / SEGMENTS).exists():
        return _read_segments(folder)
    return read_store(folder)


def read_store(path: Path) -> Trajectory:
    """One Zarr store of a run, checked against its checksums."""
    dataset = read_dataset(path, FORMAT)
    try:
        return _from_dataset(dataset)
    except Exception as error:
        raise _unreadable(path, error) from error


def _local(path: Path) -> Any:
    """The folder as zarr's own store: newer versions read a plain path as an address, less its newlines."""
    from zarr.storage import LocalStore

    return LocalStore(path)


def read_dataset(path: Path, kind: str) -> Any:
    """One Zarr store of a kind, checked against its checksums."""
    import xarray as xr

    try:
        with warnings.catch_warnings():
            # zarr warns of what is missing; the checksums below refuse it.
            warnings.simplefilter("ignore")
            lazy = xr.open_zarr(
                _local(path),
                consolidated=False,
                chunks=None,
                decode_times=False,
                mask_and_scale=False,
            )
            dataset = lazy.load()
        _check(dataset, kind)
    except Exception as error:
        raise _unreadable(path, error) from error
    return dataset


def _unreadable(path: Path, error: Exception) -> StoreError:
    reason = str(error).strip().split("\n")[0][:200]
    return StoreError(
        f"{path} is not a readable tokenflock store ({type(error).__name__}: {reason}); it may be "
        "damaged or of another kind. Run it again, or take it from a copy"
    )


def _check(dataset: Any, kind: str) -> None:
    if dataset.attrs.get("format") != kind:
        raise ValueError(f"its format is {dataset.attrs.get('format')!r}, not {kind!r}")
    stated = dataset.attrs["checksums"]
    found = {str(name): _checksum(v.values) for name, v in dataset.variables.items()}
    wrong = sorted(
        name for name in stated.keys() | found.keys() if stated.get(name) != found.get(name)
    )
    if wrong:
        raise ValueError(f"data missing or changed in {', '.join(wrong)}")


def _from_dataset(dataset: Any) -> Trajectory:
    names = [str(name) for name in dataset.data_vars]
    attributes = {name: _restored(v) for name, v in dataset.attrs.items() if name not in OWN_KEYS}
    return Trajectory(
        arrays={name: dataset[name].values for name in names},
        axes={name: tuple(str(dim) for dim in dataset[name].dims) for name in names},
        coords={str(name): dataset[name].values for name in dataset.coords},
        attributes=attributes,
        details={name: _restored(dict(dataset[name].attrs)) for name in names},
    )


def segment_range(path: Path) -> tuple[int, int]:
    """First and last part in a store of finished parts."""
    first, last = path.stem.split("-")
    return int(first), int(last)


def segment_paths(folder: Path) -> list[Path]:
    """Stores of finished parts of an unfinished run, in order, up to the first gap."""
    found: list[Path] = []
    for path in sorted((folder / SEGMENTS).glob("[0-9]*-[0-9]*.zarr")):
        if segment_range(path)[0] != (segment_range(found[-1])[1] + 1 if found else 0):
            break
        found.append(path)
    return found


def _read_segments(folder: Path) -> Trajectory:
    from .integrate.assemble import join_stored

    paths = segment_paths(folder) or [folder / SEGMENTS / INITIAL]
    pieces = [read_store(path) for path in paths]
    run = join_stored(pieces)
    run.attributes = {
        **run.attributes,
        "outcome": "interrupted",
        "advice": f"the run was interrupted at t={run.reached:g}; continue it with tokenflock run "
        f"--resume --out {folder}",
        "health": _total_health([piece.health for piece in pieces]),
    }
    return run


def _total_health(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts add up; of everything else the worst counts."""
    total = dict(reports[-1])
    for name in total:
        values = [report[name] for report in reports if name in report]
        if name == "finite":
            total[name] = all(values)
        elif all(isinstance(value, (int, float)) for value in values):
            total[name] = sum(values) if name.endswith("steps") else max(values)
    return total


def remove_segments(folder: Path) -> None:
    """Drop the parts of a run once the whole is stored."""
    shutil.rmtree(folder / SEGMENTS, ignore_errors=True)


# The public name: `flock.open(path)`.
open = read
