"""The cells of a sweep as a grid, cut into blocks: which cells there are, never what they compute.

A block is what one worker computes in one call and what is written in one piece: one chunk of every
array of the store. How the grid is cut depends on the spec alone, so a resumed sweep cuts it alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Index = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """One dimension of a sweep.

    name -- the dimension of the dataset;
    values -- its coordinate: the swept values, or positions 0, 1, ... of zipped, random and seed axes;
    settings -- for every path of the run spec ("model.beta") the value at each position;
    beside -- further coordinates along it, by name: the values of zipped and random settings;
    is_seed -- whether cells along it are repetitions of one another.
    """

    name: str
    values: np.ndarray
    settings: dict[str, list[Any]] = field(default_factory=dict)
    beside: dict[str, np.ndarray] = field(default_factory=dict)
    is_seed: bool = False

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Block:
    """A box of neighbouring cells; `start` and `shape` have one entry per axis."""

    index: int
    start: Index
    shape: Index

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(self.shape)

    def cells(self) -> Iterator[Index]:
        """Indices of its cells in the grid, the last axis fastest."""
        spans = (
            range(first, first + count) for first, count in zip(self.start, self.shape, strict=True)
        )
        return itertools.product(*spans)

    @property
    def region(self) -> tuple[slice, ...]:
        """Where it lies in an array over the axes."""
        return tuple(
            slice(first, first + count) for first, count in zip(self.start, self.shape, strict=True)
        )


@dataclass(frozen=True)
class Grid:
    """Cells in boxes of `block_shape`; boxes at the far end of an axis may be cut short."""

    shape: Index
    block_shape: Index

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(self.shape)

    @property
    def blocks_along(self) -> Index:
        """How many blocks along each axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.block_shape, strict=True))

    @property
    def block_count(self) -> int:
        """How many blocks."""
        return math.prod(self.blocks_along)

    def block(self, index: int) -> Block:
        """One block, numbered with the last axis fastest."""
        place = np.unravel_index(index, self.blocks_along)
        start = tuple(int(p) * b for p, b in zip(place, self.block_shape, strict=True))
        shape = tuple(
            min(b, n - s) for b, n, s in zip(self.block_shape, self.shape, start, strict=True)
        )
        return Block(index, start, shape)


def block_shape(shape: Index, batch: int) -> Index:
    """A box of at most `batch` cells that fills the last axes first: neighbours there are most alike."""
    box: list[int] = []
    left = max(1, batch)
    for size in reversed(shape):
        pieces = -(-size // min(size, left))
        box.append(-(-size // pieces))
        left = max(1, left // box[-1])
    return tuple(reversed(box))
