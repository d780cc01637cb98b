"""What a sweep stores: the arrays of one cell, and what comes back from a block of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Codes of `outcome` for cells without a solve; the others are positions in OUTCOMES.
ERROR, MISSING = -1, -2


def angle_name(variable: str) -> str:
    """The array of the linking angles that a rule found for a variable, cell by cell."""
    return f"{variable}_angle"


@dataclass(frozen=True)
class Variable:
    """One array of the store; its dimensions are the axes of the sweep and then `dims`."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    fill: float
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def cell_bytes(self) -> int:
        """Size of one cell's share."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """All arrays of a store, and the coordinates of their inner dimensions (time, token, ...).

    working_bytes -- what the largest cell takes while it is computed.
    """

    variables: tuple[Variable, ...]
    coordinates: dict[str, np.ndarray]
    working_bytes: float = 0.0

    @property
    def cell_bytes(self) -> int:
        """What one cell takes, uncompressed."""
        return sum(variable.cell_bytes for variable in self.variables)


@dataclass(frozen=True)
class BlockResult:
    """What a block gave: arrays (cells of the block, *inner), and a sentence for each failed cell.

    A failed cell has NaN wherever it has no number, and its own code in `outcome`. `seconds` is how
    long it took; it is shown and never stored, since it differs from one time to the next.
    """

    arrays: dict[str, np.ndarray]
    failures: dict[int, str]
    seconds: float = 0.0
