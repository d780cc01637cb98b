"""How much a result may say that it holds, looked at before a byte of it is read.

What tells of more was not written by this library: a few bytes of a stranger's can state any shape, and
compressed ones grow when they are read.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import StoreError
from ..host_memory import GIB, LIMIT_VARIABLE, host_bytes, in_gib, stated_bytes

# Of a sweep.
MOST_CELLS, MOST_AXES = 1_000_000, 16
# Axes of one array; NumPy has no more.
MOST_DIMENSIONS = 64
# Files that are opened for a store that is read as a whole: a million would take minutes.
MOST_CHUNKS = 100_000
# Constant arrays are compressed without a bound, so small stores may grow as they like; large ones by so
# much, which tokens drawn at random never reach, or as far as the user has set a limit.
ALWAYS_READ, MOST_GROWTH = 1 * GIB, 10_000
# RFC 8878: how a compressed frame begins, and how long its head can be.
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SHORTEST_HEAD, LONGEST_HEAD = 6, 18
# A text is a pointer and its letters; the letters are not stated.
TEXT_BYTES = 16


class Stated(NamedTuple):
    """What the metadata of an array say: bytes when it is read, and files it is read from."""

    bytes: int
    chunks: int


def stated_by(path: Path, metadata: dict[str, Any]) -> Stated:
    """What an array says that it holds, or a sentence on why that cannot be."""
    shape = _counts(metadata.get("shape"), 0)
    grid = metadata.get("chunk_grid")
    inner = grid.get("configuration") if isinstance(grid, dict) else None
    chunk = _counts(inner.get("chunk_shape") if isinstance(inner, dict) else None, 1)
    if shape is None or chunk is None or len(shape) != len(chunk):
        raise StoreError(f"{path} does not say in whole numbers how long it is, and how it is cut")
    if len(shape) > MOST_DIMENSIONS:
        raise StoreError(
            f"{path} has {len(shape)} axes, and an array has at most {MOST_DIMENSIONS}"
        )
    size = item_bytes(metadata.get("data_type"))
    # A chunk is read whole, also where it is larger than the array.
    padded = (max(n, c) if n else 0 for n, c in zip(shape, chunk, strict=True))
    chunks = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
    found = Stated(size * math.prod(padded), chunks)
    if found.chunks > MOST_CELLS:
        raise StoreError(
            f"{path} is cut into more than {MOST_CELLS:,} chunks, which no result is; write it with larger "
            "chunks"
        )
    return found


def require_chunk(path: Path, content: bytes, metadata: dict[str, Any]) -> None:
    """Refuse a compressed chunk that would grow beyond what its array states of a chunk."""
    said = zstd_size(content)
    grid = metadata.get("chunk_grid")
    inner = grid.get("configuration") if isinstance(grid, dict) else None
    chunk = _counts(inner.get("chunk_shape") if isinstance(inner, dict) else None, 1)
    if said is None or chunk is None or metadata.get("data_type") == "string":
        return
    stated = math.prod(chunk) * item_bytes(metadata.get("data_type"))
    if said > stated:
        raise StoreError(
            f"{path} would grow to {said:,} bytes, and a chunk of its array has {stated:,}; take the store "
            "from a copy, or compute it again"
        )


def zstd_size(content: bytes) -> int | None:
    """How many bytes the head of a zstd frame says that it grows to; None where it says nothing."""
    if len(content) < SHORTEST_HEAD or content[:4] != ZSTD_MAGIC:
        return None
    flags = content[4]
    single = bool(flags & 0x20)
    place = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    width = (int(single), 2, 4, 8)[flags >> 6]
    size = int.from_bytes(content[place : place + width], "little")
    # RFC 8878, 3.1.1.1.4: two bytes count from 256 on.
    return (size + 256 if width == 2 else size) if width else None


def _counts(found: Any, least: int) -> list[int] | None:
    good = isinstance(found, list) and all(type(n) is int and n >= least for n in found)
    return found if good else None


def item_bytes(data_type: Any) -> int:
    """Bytes of one entry, by the name Zarr has for its type."""
    if isinstance(data_type, dict):
        told = data_type.get("configuration")
        length = told.get("length_bytes") if isinstance(told, dict) else None
        return length if type(length) is int and length > 0 else TEXT_BYTES
    digits = "".join(c for c in str(data_type) if c.isdigit())
    return int(digits) // 8 if digits else {"bool": 1}.get(str(data_type), TEXT_BYTES)


def require_readable(path: Path, arrays: list[Stated]) -> None:
    """Refuse arrays that are read together and would not fit, or come from too many files."""
    size, chunks = sum(each.bytes for each in arrays), sum(each.chunks for each in arrays)
    if chunks > MOST_CHUNKS:
        raise StoreError(
            f"{path} is cut into {chunks:,} chunks, and at most {MOST_CHUNKS:,} are read at once; write it "
            "with larger chunks"
        )
    limit = host_bytes()
    if size > limit:
        raise StoreError(
            f"{path} states {_words(size)} of numbers, the limit is {in_gib(limit)} of memory; read it where "
            f"there is more, or set {LIMIT_VARIABLE} if you know that there is"
        )
    if size > ALWAYS_READ and stated_bytes() is None and size > MOST_GROWTH * bytes_below(path):
        raise StoreError(
            f"{path} states {_words(size)} of numbers in {bytes_below(path):,} bytes of files, more than "
            f"{MOST_GROWTH:,} times as much; if you trust it, allow so much memory with {LIMIT_VARIABLE}="
            f"{math.ceil(size / GIB)}"
        )


def _words(size: int) -> str:
    """Sizes of a stranger's may have more digits than a number can have."""
    return in_gib(size) if size < 2**100 else "far too many bytes"


def bytes_below(path: Path) -> int:
    """Bytes of the files below a folder; links count as themselves."""
    total = 0
    for here, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
    return total
