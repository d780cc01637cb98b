"""Trajectories on disk: Zarr v3 through xarray, written beside and moved into place when complete.

A store holds every array with its axes, and as attributes everything that made them: model, numerics,
versions, health and, for a run from a file, the spec. A checksum of each array is kept beside them,
since Zarr reads a missing chunk as fill values without a word.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .errors import StoreError
from .results.atomic import beside, told_by_the_disk
from .results.checksums import CHECKSUMS, checksum, differing
from .results.identity import PART_OF
from .results.locking import only_writer_of
from .results.names import INITIAL, METADATA, RUN_FORMAT, SCRATCH, SEGMENTS, STORE, SWEEP_STORE
from .results.own_files import read_object
from .results.part_names import chained, part_range
from .results.strict_json import exact, restored
from .results.zarr_format import Content, Labelled, open_zarr, require_own_format, write_zarr
from .trajectory import Trajectory, reached_text

# The matrices of a model stand among the attributes.
LARGEST_METADATA = 2**30
OWN_KEYS = ("format", CHECKSUMS)
# Arrays that traces of release 0.1 called by the name of the observable `speed`, and their names since.
TRACE_NAMES_SINCE_0_1 = {
    "speed": "turning_angle",
    "speed_predicted": "turning_angle_predicted",
    "speed_fixed_radius": "turning_angle_fixed_radius",
    "speed_attention": "turning_angle_attention",
    "speed_attention_predicted": "turning_angle_attention_predicted",
}


def save(run: Trajectory, path: Path, overwrite: bool) -> Path:
    """Write a run as `run.save` does: one writer at a time, and only a saved run is replaced."""
    with only_writer_of(path):
        require_own_store(path)
        return write(run, path, overwrite)


def write(
    run: Trajectory, path: Path, overwrite: bool = False, check: Callable[[], None] | None = None
) -> Path:
    """Write a trajectory as one Zarr v3 store at `path`; it appears only when it is complete.

    check -- raises if the place is not the writer's own any more (locking.Writer.require_place).
    """
    data = {
        name: Labelled(tuple(run.axes[name]), np.asarray(value), run.details.get(name, {}))
        for name, value in run.arrays.items()
    }
    axes = {name: _coordinate(name, values) for name, values in run.coords.items()}
    content = Content({**data, **axes}, frozenset(axes), run.attributes)
    return _write(content, path, RUN_FORMAT, overwrite, check)


def require_own_store(path: Path) -> None:
    """Refuse to replace what is no store of ours: a folder of other files, of a run or of a sweep."""
    if not path.exists():
        return
    told = read_object(path / METADATA, LARGEST_METADATA).get("attributes")
    kind = told.get("format") if isinstance(told, dict) else None
    if not str(kind).startswith("tokenflock"):
        raise StoreError(
            f"{path} exists and is no run saved by run.save, so it is not replaced; choose another name"
        )


def _coordinate(name: str, values: Any) -> Labelled:
    found = np.asarray(values)
    return Labelled((name,) if found.ndim else (), found, {})


def write_dataset(dataset: Any, path: Path, kind: str, overwrite: bool = False) -> Path:
    """Write a labelled dataset of a kind, with checksums; the folder appears when it is complete."""
    arrays = {
        str(name): Labelled(tuple(str(dim) for dim in found.dims), found.values, dict(found.attrs))
        for name, found in dataset.variables.items()
    }
    coordinates = frozenset(str(name) for name in dataset.coords)
    return _write(Content(arrays, coordinates, dict(dataset.attrs)), path, kind, overwrite, None)


def _write(
    content: Content, path: Path, kind: str, overwrite: bool, check: Callable[[], None] | None
) -> Path:
    check = check or (lambda: None)
    _require_one_size(content)
    with told_by_the_disk(path, check):
        if path.exists() and not overwrite:
            raise StoreError(f"{path} exists; choose another name or pass overwrite=True")
        check()
        with beside(path) as scratch:
            write_zarr(_described(content, kind), scratch / path.name)
            # Its scratch has a name that no other folder has: moved away after this, nothing is moved.
            check()
            if path.exists():
                os.replace(path, scratch / f"{SCRATCH}replaced")
            os.replace(scratch / path.name, path)
    return path


def _require_one_size(content: Content) -> None:
    """Refuse to write arrays that differ in the size of an axis: nobody could read them together."""
    sizes: dict[str, int] = {}
    for name, array in content.arrays.items():
        for axis, size in zip(array.axes, np.shape(array.values), strict=True):
            if sizes.setdefault(axis, size) != size:
                raise StoreError(
                    f"{name} has {size} entries along {axis}, where others have {sizes[axis]}"
                )


def _described(content: Content, kind: str) -> Content:
    """The content to write: attributes as strict JSON, and a checksum of every array."""
    arrays = {
        name: array._replace(attributes=exact(array.attributes))
        for name, array in content.arrays.items()
    }
    attributes = {
        "format": kind,
        CHECKSUMS: {name: checksum(array.values) for name, array in arrays.items()},
        **exact(content.attributes),
    }
    return content._replace(arrays=arrays, attributes=attributes)


def read(path: str | Path) -> Trajectory:
    """Open a store written by `write`, a run folder, or what an interrupted run left behind."""
    folder = Path(path)
    try:
        found = folder.exists()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot open {str(folder)!r}: {error}") from error
    if not found:
        raise StoreError(f"{folder} does not exist")
    if folder.name == SWEEP_STORE or (folder / SWEEP_STORE).exists():
        raise StoreError(f"{folder} holds a sweep, not one run; open it with tokenflock.open")
    if (folder / STORE).exists():
        return read_store(folder / STORE)
    if (folder / SEGMENTS).exists():
        return _read_segments(folder)
    return read_store(folder)


def read_store(path: Path) -> Trajectory:
    """One Zarr store of a run, checked against its checksums."""
    dataset = read_dataset(path, RUN_FORMAT)
    try:
        return _from_dataset(dataset)
    except Exception as error:
        raise _unreadable(path, error) from error


def read_attributes(path: Path) -> dict[str, Any]:
    """What a store of a run says of itself, without its numbers."""
    require_own_format(path)
    attributes = read_object(path / METADATA, LARGEST_METADATA).get("attributes")
    if not isinstance(attributes, dict) or attributes.get("format") != RUN_FORMAT:
        raise StoreError(f"{path} is not a store of a run")
    return {name: restored(v) for name, v in attributes.items() if name not in OWN_KEYS}


def read_dataset(path: Path, kind: str) -> Any:
    """One Zarr store of a kind, checked against its checksums."""
    try:
        with warnings.catch_warnings():
            # zarr warns of what is missing; the checksums below refuse it.
            warnings.simplefilter("ignore")
            dataset = open_zarr(path, whole=True).load()
        _check(dataset, kind)
    except Exception as error:
        raise _unreadable(path, error) from error
    return dataset


def _unreadable(path: Path, error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return StoreError(f"{path} is not a readable tokenflock store: {error}")
    reason = str(error).strip().split("\n")[0][:200]
    return StoreError(
        f"{path} is not a readable tokenflock store ({type(error).__name__}: {reason}); it may be "
        "damaged or of another kind. Run it again, or take it from a copy"
    )


def _check(dataset: Any, kind: str) -> None:
    if dataset.attrs.get("format") != kind:
        raise ValueError(f"its format is {dataset.attrs.get('format')!r}, not {kind!r}")
    stated = dataset.attrs[CHECKSUMS]
    found = {str(name): checksum(v.values) for name, v in dataset.variables.items()}
    wrong = differing(stated, found)
    if wrong:
        raise ValueError(f"data missing or changed in {', '.join(wrong)}")


def _from_dataset(dataset: Any) -> Trajectory:
    if "trace" in dataset.attrs:
        old = TRACE_NAMES_SINCE_0_1.keys() & dataset.data_vars.keys()
        dataset = dataset.rename({name: TRACE_NAMES_SINCE_0_1[name] for name in old})
    names = [str(name) for name in dataset.data_vars]
    attributes = {name: restored(v) for name, v in dataset.attrs.items() if name not in OWN_KEYS}
    return Trajectory(
        arrays={name: dataset[name].values for name in names},
        axes={name: tuple(str(dim) for dim in dataset[name].dims) for name in names},
        coords={str(name): dataset[name].values for name in dataset.coords},
        attributes=attributes,
        details={name: restored(dict(dataset[name].attrs)) for name in names},
    )


def segment_range(path: Path) -> tuple[int, int]:
    """First and last part in a store of finished parts."""
    found = part_range(path.name)
    if found is None:
        raise StoreError(f"{path} is not named as a store of finished parts is")
    return found


def segment_paths(folder: Path) -> list[Path]:
    """Stores of finished parts of an unfinished run, in order, up to the first gap."""
    names = (path.name for path in (folder / SEGMENTS).glob("*"))
    return [folder / SEGMENTS / name for name in chained(names)]


def _read_segments(folder: Path) -> Trajectory:
    from .integrate.assemble import join_stored

    paths = segment_paths(folder) or [folder / SEGMENTS / INITIAL]
    pieces = [read_store(path) for path in paths]
    _require_one_run(folder, paths, pieces)
    run = join_stored(pieces)
    run.attributes = {
        **run.attributes,
        "outcome": "interrupted",
        "advice": f"the run was interrupted at {reached_text(run)}; continue it with tokenflock run "
        f"--resume --out {folder}",
        "health": _total_health([piece.health for piece in pieces]),
    }
    return run


def _require_one_run(folder: Path, paths: list[Path], pieces: list[Trajectory]) -> None:
    """Parts are joined only if they belong together, and to the tokens the run began with."""
    initial = folder / SEGMENTS / INITIAL
    known = {path: piece.attributes for path, piece in zip(paths, pieces, strict=True)}
    if initial.exists() and initial not in known:
        known[initial] = read_store(initial).attributes
    owners = {path: _owner(attributes) for path, attributes in known.items()}
    first = owners.get(initial, owners[paths[0]])
    for path, owner in owners.items():
        if owner != first:
            raise StoreError(
                f"{path} belongs to another run than the parts beside it (it has {owner}, where {first} is "
                "needed); take the folder from a copy, or run it again with --overwrite or another --out"
            )


def _owner(attributes: dict[str, Any]) -> str:
    """What a part says it belongs to; release 0.1 noted the id of the spec alone."""
    found = attributes.get(PART_OF)
    if isinstance(found, dict):
        return ", ".join(f"{name} {value}" for name, value in sorted(found.items()))
    return f"spec {attributes.get('id')}"


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
