"""The arrays of a sweep as Zarr v3 has them: metadata, coordinates, and the chunks of a block.

What follows from the spec is written here word by word and not by the Zarr library, so that two sweeps
of one spec are equal byte for byte whatever its version.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

import numpy as np

from ..errors import InputError, StoreError
from ..lab.files import content
from ..results.names import SWEEP_FORMAT
from ..results.strict_json import plain
from .grid import Block
from .layout import BlockResult, Layout, Variable
from .plan import SWEEP, Sweep

GROUP = "zarr.json"
LARGEST_CHUNK = 64 * 2**20
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
# Outermost, so that every reader finds a flipped bit or a lost end before it decompresses anything.
CRC32C = {"name": "crc32c"}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
TEXT = {"name": "vlen-utf8"}
# All chunks of an array in one folder, which is then all that must be flushed after a block.
KEYS = {"name": "default", "configuration": {"separator": "."}}
GOOD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def fixed_files(sweep: Sweep, layout: Layout) -> dict[str, bytes]:
    """Every file that follows from the spec alone: metadata of all arrays, and the coordinates."""
    _check_names(sweep, layout)
    files = {GROUP: _json(_group(sweep))}
    for variable in layout.variables:
        files[f"{variable.name}/{GROUP}"] = _json(_swept_array(sweep, variable))
    for name, (dim, values) in _coordinates(sweep, layout).items():
        metadata = _json(_coordinate_array(dim, values))
        files[f"{name}/{GROUP}"] = metadata
        files |= Chunks({name: metadata}).encode(name, (slice(None),), values)
    return files


def _check_names(sweep: Sweep, layout: Layout) -> None:
    """Names become folders: none may lie outside the store, or on another."""
    inner = {dim for variable in layout.variables for dim in variable.dims}
    names = [variable.name for variable in layout.variables]
    names += [name for axis in sweep.axes for name in (axis.name, *axis.beside)]
    names += sorted(inner | layout.coordinates.keys())
    bad = [name for name in names if not GOOD_NAME.fullmatch(name) or name == GROUP]
    twice = sorted({name for name in names if names.count(name) > 1})
    if bad:
        raise InputError(
            f"{bad[0]!r} cannot name an array of a sweep; use letters, digits, '_', '-' and '.'"
        )
    if twice:
        raise InputError(
            f"a sweep would store two things under the name {twice[0]!r}; give the axis or the "
            "observable another name"
        )


def _coordinates(sweep: Sweep, layout: Layout) -> dict[str, tuple[str, np.ndarray]]:
    """Name of each coordinate: its dimension and values."""
    found = {axis.name: (axis.name, axis.values) for axis in sweep.axes}
    for axis in sweep.axes:
        found |= {name: (axis.name, values) for name, values in axis.beside.items()}
    found |= {name: (name, values) for name, values in layout.coordinates.items()}
    return {name: (dim, _storable(values)) for name, (dim, values) in found.items()}


def _storable(values: np.ndarray) -> np.ndarray:
    """Numbers as they are; everything else as text."""
    values = np.asarray(values)
    return values if values.dtype.kind in "biuf" else np.array([*map(str, values)], dtype=object)


def _group(sweep: Sweep) -> dict[str, Any]:
    beside = [name for axis in sweep.axes for name in axis.beside]
    attributes = {
        "format": SWEEP_FORMAT,
        "id": sweep.id,
        "title": sweep.title,
        "says": sweep.says,
        "label": sweep.spec.model.name,
        "spec": content(sweep.spec),
        "sweep": tomllib.loads(sweep.text)[SWEEP],
        "axes": sweep.paths,
        "seed_axes": [axis.name for axis in sweep.axes if axis.is_seed],
        # How xarray knows that these belong to the others and are no results.
        **({"coordinates": " ".join(beside)} if beside else {}),
    }
    return {"zarr_format": 3, "node_type": "group", "attributes": plain(attributes)}


def _swept_array(sweep: Sweep, variable: Variable) -> dict[str, Any]:
    return _array(
        shape=(*sweep.grid.shape, *variable.shape),
        chunk=(*sweep.grid.block_shape, *inner_chunk(variable, math.prod(sweep.grid.block_shape))),
        dims=(*(axis.name for axis in sweep.axes), *variable.dims),
        dtype=np.dtype(variable.dtype).name,
        fill=_fill(np.dtype(variable.dtype), variable.fill),
        codecs=[BYTES, ZSTD, CRC32C],
        attributes=variable.attributes,
    )


def _coordinate_array(dim: str, values: np.ndarray) -> dict[str, Any]:
    is_text = values.dtype == object
    return _array(
        shape=values.shape,
        chunk=tuple(max(1, size) for size in values.shape),
        dims=(dim,),
        dtype="string" if is_text else values.dtype.name,
        fill="" if is_text else _fill(values.dtype, 0),
        codecs=[TEXT if is_text else BYTES, CRC32C],
        attributes={},
    )


def inner_chunk(variable: Variable, cells: int) -> tuple[int, ...]:
    """The inner shape of a chunk: all of it, or slices along the first dimensions if that is too large."""
    room = max(1, LARGEST_CHUNK // (np.dtype(variable.dtype).itemsize * cells))
    chunk: list[int] = []
    for size in reversed(variable.shape):
        chunk.append(max(1, min(size, room)))
        room = max(1, room // chunk[-1])
    return tuple(reversed(chunk))


def _array(
    *,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dims: tuple[str, ...],
    dtype: str,
    fill: Any,
    codecs: list[dict[str, Any]],
    attributes: dict[str, Any],
) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": KEYS,
        "fill_value": fill,
        "codecs": codecs,
        "attributes": plain(attributes),
        "dimension_names": dims,
    }


def _fill(dtype: np.dtype, value: float) -> Any:
    """A fill value as Zarr writes it; JSON has neither NaN nor complex numbers."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return [_fill(part, value), _fill(part, value)]
    if dtype.kind != "f":
        return dtype.type(value).item()
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return "NaN" if math.isnan(value) else names.get(value, float(value))


def _json(metadata: dict[str, Any]) -> bytes:
    return (json.dumps(metadata, indent=2, allow_nan=False) + "\n").encode()


class Chunks:
    """Turns arrays into chunk files: a Zarr store in memory, emptied after each use."""

    def __init__(self, metadata: dict[str, bytes]):
        """`metadata` holds the zarr.json of every array by its name."""
        import zarr
        from zarr.core.buffer import default_buffer_prototype
        from zarr.storage import MemoryStore

        make = default_buffer_prototype().buffer.from_bytes
        self._files = {f"{name}/{GROUP}": make(text) for name, text in metadata.items()}
        store = MemoryStore(self._files)
        # A chunk of nothing but fill values is written too: one that is missing means unfinished.
        with zarr.config.set({"array.write_empty_chunks": True}):
            self._arrays = {
                name: zarr.open_array(store, path=name, mode="r+", zarr_format=3)
                for name in metadata
            }

    def encode(self, name: str, region: tuple[slice, ...], values: np.ndarray) -> dict[str, bytes]:
        """Chunk files of a region of an array; it must cover whole chunks."""
        self._arrays[name][(*region, ...)] = values
        made = [key for key in self._files if not key.endswith(f"/{GROUP}")]
        return {key: self._files.pop(key).to_bytes() for key in sorted(made)}


class BlockEncoder:
    """Turns what a block gave into the chunk files of all arrays."""

    def __init__(self, sweep: Sweep, layout: Layout):
        self.variables = layout.variables
        self._chunks = Chunks({v.name: _json(_swept_array(sweep, v)) for v in layout.variables})

    def encode(self, block: Block, result: BlockResult) -> dict[str, bytes]:
        """The files of a block, by their path in the store."""
        files: dict[str, bytes] = {}
        for variable in self.variables:
            values = _checked(block, variable, result.arrays.get(variable.name))
            files |= self._chunks.encode(
                variable.name, block.region, values.reshape(*block.shape, *variable.shape)
            )
        return files


def _checked(block: Block, variable: Variable, values: np.ndarray | None) -> np.ndarray:
    wanted = (block.size, *variable.shape)
    if values is None or values.shape != wanted or values.dtype != variable.dtype:
        got = "nothing" if values is None else f"{values.dtype} of shape {values.shape}"
        raise StoreError(
            f"a worker returned {got} for {variable.name} of block {block.index}, where the sweep stores "
            f"{variable.dtype} of shape {wanted}; run the same version of tokenflock on all workers"
        )
    return values


def chunk_names(sweep: Sweep, layout: Layout, block: Block) -> list[str]:
    """Paths of the chunk files of a block, without encoding anything."""
    place = [first // size for first, size in zip(block.start, sweep.grid.block_shape, strict=True)]
    cells = math.prod(sweep.grid.block_shape)
    names: list[str] = []
    for variable in layout.variables:
        chunk = inner_chunk(variable, cells)
        counts = [-(-size // step) for size, step in zip(variable.shape, chunk, strict=True)]
        names += [
            f"{variable.name}/c" + "".join(f".{number}" for number in (*place, *inner))
            for inner in np.ndindex(*counts)
        ]
    return names
