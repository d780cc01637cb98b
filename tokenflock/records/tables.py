"""Tidy tables of labelled arrays, written piece by piece: CSV, Parquet, and arrays of a NumPy archive."""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .boxes import boxes, chunk_of, read_box

# Entries of a table, in all columns, that are in memory at one time.
MOST_ENTRIES = 2**21
# Rows that are Python objects at one time.
CSV_ROWS = 2**16
ABOUT = "about"
# An archive of the same numbers is the same file: zip keeps a date, and knows none before 1980.
NO_DATE = (1980, 1, 1, 0, 0, 0)

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Group:
    """Arrays over the same dimensions, and the coordinates along them."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    arrays: list[Any]
    coordinates: list[Any]

    @property
    def rows(self) -> int:
        """One per combination of positions."""
        return math.prod(self.shape)

    def pieces(self, most: int = MOST_ENTRIES) -> Iterator[Columns]:
        """The columns of consecutive rows: coordinates first, in the order of dimensions."""
        rows = max(1, most // (len(self.arrays) + len(self.coordinates)))
        for box in boxes(self.shape, chunk_of(self.arrays[0]), rows):
            sizes = tuple(piece.stop - piece.start for piece in box)
            found: Columns = {}
            for place, dim in enumerate(self.dims):
                if not any(coordinate.name == dim for coordinate in self.coordinates):
                    numbers = np.arange(box[place].start, box[place].stop)
                    found[dim] = _spread(numbers, (dim,), self.dims, sizes)
            for coordinate in self.coordinates:
                inner = [box[self.dims.index(dim)] for dim in coordinate.dims]
                values = read_box(coordinate, tuple(inner))
                found |= _real(
                    str(coordinate.name), _spread(values, coordinate.dims, self.dims, sizes)
                )
            for array in self.arrays:
                found |= _real(str(array.name), read_box(array, box).reshape(-1))
            yield found


def groups(dataset: Any, names: list[str]) -> list[Group]:
    """The tables that hold the chosen arrays, those over most dimensions last."""
    by_dims: dict[tuple[str, ...], list[Any]] = {}
    for name in names:
        by_dims.setdefault(tuple(map(str, dataset[name].dims)), []).append(dataset[name])
    return [
        Group(dims, tuple(arrays[0].shape), arrays, _coordinates(dataset, dims))
        for dims, arrays in sorted(by_dims.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def _coordinates(dataset: Any, dims: tuple[str, ...]) -> list[Any]:
    """Coordinates over these dimensions: those of the dimensions first, in their order."""
    inside = [str(name) for name in dataset.coords if set(dataset[name].dims) <= set(dims)]
    order = {name: place for place, name in enumerate(dims)}
    chosen = sorted(inside, key=lambda name: (order.get(name, len(dims)), name))
    # In memory: they are small, and every piece needs them.
    return [dataset[name].load() for name in chosen if dataset[name].dims or not dims]


def _spread(
    values: np.ndarray, own: Any, dims: tuple[str, ...], sizes: tuple[int, ...]
) -> np.ndarray:
    """A coordinate repeated along the other dimensions, one value per row."""
    order = sorted(range(len(own)), key=lambda place: dims.index(own[place]))
    ordered = np.transpose(values, order)
    shape = [size if dim in own else 1 for dim, size in zip(dims, sizes, strict=True)]
    return np.broadcast_to(ordered.reshape(shape), sizes).reshape(-1)


def _real(name: str, values: np.ndarray) -> Columns:
    """Tables have no complex numbers: two columns stand for one."""
    if values.dtype.kind == "c":
        return {f"{name}_real": np.real(values), f"{name}_imag": np.imag(values)}
    return {name: values}


def write_csv(path: Path, group: Group, about: str) -> None:
    """Numbers with as many digits as give the same bits when they are read."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, columns in enumerate(group.pieces()):
            if number == 0:
                writer.writerow(columns)
            rows = len(next(iter(columns.values())))
            for start in range(0, rows, CSV_ROWS):
                lists = [_written(values[start : start + CSV_ROWS]) for values in columns.values()]
                writer.writerows(zip(*lists, strict=True))
        file.flush()


def _written(values: np.ndarray) -> list[Any]:
    """Python writes the shortest digits that mean this float64; of shorter floats NumPy does."""
    if values.dtype.kind == "f" and values.dtype != np.float64:
        return values.astype(str).tolist()
    return values.tolist()


def write_parquet(path: Path, group: Group, about: str) -> None:
    """One table; what the numbers are stands in the metadata under `tokenflock`."""
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None
    try:
        for columns in group.pieces():
            table = pa.table({name: pa.array(_arrow(v)) for name, v in columns.items()})
            if writer is None:
                schema = table.schema.with_metadata({"tokenflock": about})
                writer = parquet.ParquetWriter(path, schema, compression="zstd")
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


def _arrow(values: np.ndarray) -> Any:
    return [*map(str, values)] if values.dtype.kind in "OUT" else np.ascontiguousarray(values)


def write_npz(path: Path, dataset: Any, names: list[str], about: str) -> None:
    """All arrays and their coordinates by their names, and `about`, a text; np.load reads it."""
    dims = {dim for name in names for dim in dataset[name].dims}
    coordinates = sorted(str(name) for name in dataset.coords if set(dataset[name].dims) <= dims)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _write_array(archive, ABOUT, np.asarray(about))
        for name in [*coordinates, *names]:
            array = dataset[name]
            if array.dtype.kind in "OUT":
                _write_array(archive, name, np.asarray(array.values, dtype=str))
            else:
                _stream_array(archive, name, array)


def _write_array(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy", NO_DATE), "w", force_zip64=True) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


def _stream_array(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    """The bytes of an array in C order, as `numpy.save` lays them out, without holding them all."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": tuple(array.shape),
    }
    with archive.open(zipfile.ZipInfo(f"{name}.npy", NO_DATE), "w", force_zip64=True) as file:
        np.lib.format.write_array_header_2_0(file, header)
        for box in boxes(array.shape, chunk_of(array)):
            file.write(np.ascontiguousarray(read_box(array, box), dtype=array.dtype).tobytes())
