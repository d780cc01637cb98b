"""Zarr as we write it and as we accept it: format 3, plain numbers and texts, four codecs.

Zarr would open more: format 2 has object arrays that are decoded by pickle, and any codec of any package
installed can be named in a file of format 3. A store may come from a stranger, so what is not of our own
kind is refused before Zarr reads it.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import StoreError
from .bounds import Stated, require_readable, stated_by
from .names import METADATA
from .own_files import is_own_file, read_object

if TYPE_CHECKING:
    import xarray as xr

    from .own_store import OwnFiles

OF_FORMAT_2 = (".zgroup", ".zarray", ".zattrs", ".zmetadata")
CODECS = frozenset({"bytes", "vlen-utf8", "zstd", "crc32c"})
DATA_TYPES = frozenset(
    {"bool", "string", "fixed_length_utf32", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)}
)  # fmt: skip
SHOWN = 60


def open_zarr(path: Path, through: Any = None, whole: bool = False) -> xr.Dataset:
    """The dataset of a store of our own kind, read when its numbers are asked for.

    through -- a Zarr store over the same files, which checks what it reads; default: the files.
    whole -- all of it is going to be read, so all of it must fit in memory; else its coordinates.
    """
    import xarray as xr

    require_own_format(path)
    require_readable(path, _read_at_once(path, whole))
    with warnings.catch_warnings():
        # zarr warns of what is missing, which checksums find, and that its texts may change.
        warnings.simplefilter("ignore")
        return xr.open_zarr(
            files_of(path) if through is None else through,
            zarr_format=3,
            consolidated=False,
            chunks=None,
            decode_times=False,
            mask_and_scale=False,
        )


def _read_at_once(path: Path, whole: bool) -> list[Stated]:
    """What xarray reads of a store when it opens it: the coordinates of axes, or what is asked for."""
    described = {name: read_object(path / name / METADATA) for name in array_names(path)}
    return [
        stated_by(path / name, metadata)
        for name, metadata in described.items()
        if whole or metadata.get("dimension_names") == [name]
    ]


def open_array(path: Path) -> Any:
    """One array of our own kind, which is going to be read."""
    import zarr

    metadata = read_object(path / METADATA)
    _require_array(path, metadata)
    require_readable(path, [stated_by(path, metadata)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(files_of(path), mode="r", zarr_format=3)


def files_of(path: Path) -> OwnFiles:
    """A folder as a Zarr store: newer versions read a plain path as an address, less its newlines."""
    from zarr.storage import LocalStore

    from .own_store import OwnFiles

    return OwnFiles(LocalStore(path, read_only=True))


def require_own_format(path: Path) -> None:
    """Refuse a store that is not of format 3, or has an array that we could not have written."""
    _refuse_format_2(path)
    if not is_own_file(path / METADATA):
        raise StoreError(f"{path} is not a Zarr store of format 3 (it has no file {METADATA})")
    root = read_object(path / METADATA)
    if root.get("zarr_format") != 3 or root.get("node_type") != "group":
        raise StoreError(f"{path / METADATA} is not that of a Zarr group of format 3; {_REMEDY}")
    for name in _folders_in(path):
        _refuse_format_2(path / name)
    for name in array_names(path):
        _require_array(path / name, read_object(path / name / METADATA))


def array_names(path: Path) -> list[str]:
    """The arrays of a store, by their folders."""
    return [name for name in _folders_in(path) if os.path.lexists(path / name / METADATA)]


_REMEDY = (
    "take the store from a copy, or, if it is yours, write it again with xarray: "
    "to_zarr(PATH, zarr_format=3), without a compressor of its own"
)


def _folders_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def _refuse_format_2(path: Path) -> None:
    for name in OF_FORMAT_2:
        if os.path.lexists(path / name):
            raise StoreError(
                f"{path} is a Zarr store of format 2 ({name}), which may hold pickled objects; only format 3 "
                f"is opened: {_REMEDY}"
            )


def _require_array(path: Path, metadata: dict[str, Any]) -> None:
    """Numbers or texts, in codecs that we write ourselves."""
    if metadata.get("zarr_format") != 3 or metadata.get("node_type") != "array":
        raise StoreError(f"{path / METADATA} is not that of a Zarr array of format 3; {_REMEDY}")
    kind = _name(metadata.get("data_type"))
    if kind not in DATA_TYPES:
        raise StoreError(
            f"{path} holds {_shown(kind)}, and only numbers and texts are opened; {_REMEDY}"
        )
    codecs = metadata.get("codecs")
    named = [_name(codec) for codec in codecs] if isinstance(codecs, list) else []
    unknown = [name for name in named if name not in CODECS]
    if unknown or not named:
        found = _shown(unknown[0]) if unknown else "no codec"
        raise StoreError(
            f"{path} is written with {found}, and only the codecs {', '.join(sorted(CODECS))} are opened; "
            f"{_REMEDY}"
        )
    if metadata.get("storage_transformers"):
        raise StoreError(f"{path} has storage transformers, which are not opened; {_REMEDY}")
    stated_by(path, metadata)


def _name(given: Any) -> Any:
    """Zarr names extensions by a text, or by an object with a name."""
    found = given.get("name") if isinstance(given, dict) else given
    return found if isinstance(found, str) else repr(given)


def _shown(name: str) -> str:
    return repr(name if len(name) <= SHOWN else f"{name[:SHOWN]}...")


class Labelled(NamedTuple):
    """An array with the names of its axes."""

    axes: tuple[str, ...]
    values: np.ndarray
    attributes: dict[str, Any]


class Content(NamedTuple):
    """What a store holds: arrays by name, those of them that are coordinates, attributes as strict JSON."""

    arrays: dict[str, Labelled]
    coordinates: frozenset[str]
    attributes: dict[str, Any]


def write_zarr(content: Content, path: Path) -> None:
    """Write a new store as xarray would, every file flushed to the disk.

    xarray itself takes half a second to load, which a run can do without. Zarr writes many files at once.
    Where one of them fails, it would leave the others writing in the background and log their errors later.
    So the first error is kept here, the others wait for nothing, and it is raised when all have ended.
    """
    path.mkdir()
    files = _files_below(path)
    try:
        with warnings.catch_warnings():
            # zarr warns that its own way of storing text may change; versions are recorded.
            warnings.simplefilter("ignore")
            _write_group(content, files)
    except Exception:
        # Zarr misses the file that was not written; what matters is why.
        if files.failure is None:
            raise
    finally:
        files.closed = True
    if files.failure is not None:
        raise files.failure


def _write_group(content: Content, files: Any) -> None:
    import zarr

    # xarray knows the coordinate of an axis by its name, and the others by this attribute.
    others = sorted(n for n in content.coordinates if content.arrays[n].axes != (n,))
    named = {"coordinates": " ".join(others)} if others else {}
    group = zarr.create_group(files, zarr_format=3, attributes=content.attributes | named)
    for name, array in content.arrays.items():
        values = np.asarray(array.values)
        if values.dtype.kind == "O":
            values = values.astype(np.dtypes.StringDType())
        group.create_array(
            name,
            data=values,
            fill_value=np.nan if values.dtype.kind == "f" else None,
            dimension_names=array.axes,
            attributes=array.attributes,
        )


def _files_below(path: Path) -> Any:
    """A Zarr store of files below a folder, which it never makes itself: that may have been moved."""
    from zarr.storage import LocalStore, WrapperStore

    class Files(WrapperStore[LocalStore]):
        failure: OSError | None = None
        closed = False

        async def set(self, key: str, value: Any) -> None:
            if self.failure is not None or self.closed:
                return
            try:
                await asyncio.to_thread(_put, path, key, value.as_buffer_like())
            except OSError as error:
                self.failure = error

        async def set_if_not_exists(self, key: str, value: Any) -> None:
            if not await self.exists(key):
                await self.set(key, value)

    return Files(LocalStore(path))


def _put(root: Path, key: str, content: Any) -> None:
    *folders, name = key.split("/")
    place = root
    for folder in folders:
        place = place / folder
        place.mkdir(exist_ok=True)
    with (place / name).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
