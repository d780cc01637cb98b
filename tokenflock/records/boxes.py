"""Large arrays piece by piece, in the order of their rows, so that memory stays flat."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# 32 MiB of float64.
MOST_ITEMS = 2**22

Box = tuple[slice, ...]


def boxes(shape: Sequence[int], chunk: Sequence[int], most: int = MOST_ITEMS) -> Iterator[Box]:
    """Boxes of at most `most` items which, one after the other, are the array in C order.

    Leading dimensions are taken one position at a time, one is cut, and the rest is whole. Where the cut
    allows it, it follows the chunks of the store, so that none is read twice.
    """
    if not shape or math.prod(shape) == 0:
        yield tuple(slice(0, size) for size in shape)
        return
    cut = next(k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= most)
    step = max(1, most // math.prod(shape[cut + 1 :]))
    if step > chunk[cut]:
        step -= step % chunk[cut]
    rest = tuple(slice(0, size) for size in shape[cut + 1 :])
    for lead in np.ndindex(*shape[:cut]):
        for start in range(0, shape[cut], step):
            piece = slice(start, min(start + step, shape[cut]))
            yield (*(slice(position, position + 1) for position in lead), piece, *rest)


def chunk_of(array: Any) -> tuple[int, ...]:
    """The chunks an array is stored in; one position at a time if that is not known."""
    stored = array.encoding.get("preferred_chunks") or {}
    return tuple(int(stored.get(dim, 1)) for dim in array.dims)


def read_box(array: Any, box: Box) -> np.ndarray:
    """A box of a labelled array."""
    return np.asarray(array.isel(dict(zip(array.dims, box, strict=True))).values)
