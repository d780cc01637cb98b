"""Which positions of two results belong together, by the coordinates along a dimension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Alignment:
    """Common positions along a dimension; without indices both have the same, in the same order."""

    dim: str
    sizes: tuple[int, int]
    indices: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def count(self) -> int:
        """How many positions are common."""
        return self.sizes[0] if self.indices is None else len(self.indices[0])

    @property
    def is_partial(self) -> bool:
        """Whether one result has positions that the other lacks."""
        return self.count != self.sizes[0] or self.count != self.sizes[1]

    @property
    def says(self) -> str:
        """A sentence on what is common."""
        first, second = self.sizes
        if self.count == 0:
            return f"they have no common {self.dim} (of {first} and {second})"
        return f"{self.count} common values of {self.dim} compared, of {first} and {second}"

    def places(self, piece: slice) -> tuple[Any, Any]:
        """Where a piece of the common positions lies in each result."""
        if self.indices is None:
            return piece, piece
        return self.indices[0][piece], self.indices[1][piece]


def align(left: Any, right: Any, dim: str) -> Alignment:
    """Match positions along a dimension of two datasets."""
    sizes = (int(left.sizes[dim]), int(right.sizes[dim]))
    names = _deciding(left, right, dim)
    if not names:
        # Nothing tells positions apart but their number.
        counts = np.arange(min(sizes)) if sizes[0] == sizes[1] else np.arange(0)
        return Alignment(dim, sizes, None if sizes[0] == sizes[1] else (counts, counts))
    first, second = _keys(left, names), _keys(right, names)
    if first == second:
        return Alignment(dim, sizes)
    at = {key: position for position, key in enumerate(second)}
    pairs = [(position, at[key]) for position, key in enumerate(first) if key in at]
    indices = np.asarray(pairs, dtype=int).reshape(-1, 2)
    return Alignment(dim, sizes, (indices[:, 0], indices[:, 1]))


def _deciding(left: Any, right: Any, dim: str) -> list[str]:
    """The coordinates that say what a position is.

    The values of zipped, random and seed axes stand beside a mere number and decide in its place.
    """
    along = [
        str(name)
        for name in left.coords
        if name in right.coords and left[name].dims == (dim,) and right[name].dims == (dim,)
    ]
    return [name for name in along if name != dim] or along


def _keys(dataset: Any, names: list[str]) -> list[Hashable]:
    """What each position is, and which occurrence of it."""
    columns = [dataset[name].values.tolist() for name in names]
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for values in zip(*columns, strict=True):
        keys.append((*values, seen[values]))
        seen[values] += 1
    return keys
