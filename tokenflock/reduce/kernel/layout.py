"""What both kernels are told: padded float32 arrays, the shape of the grid, and which pairs count."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

# Programs that keep every multiprocessor of a large GPU busy (an H200 has 132, each holding several).
PROGRAMS = 2048


@dataclasses.dataclass(frozen=True)
class Layout:
    """Static facts of one launch.

    A program owns `rows` rows and one of `splits` ranges of columns, which it visits in chunks.
    `ordered` hides columns after the row, `skips_own` leaves the row's own column out.
    """

    rows: int
    chunk: int
    splits: int
    row_blocks: int
    range_chunks: int
    ordered: bool
    skips_own: bool
    interpret: bool

    @property
    def padded_rows(self) -> int:
        """Rows with those that fill the last block."""
        return self.rows * self.row_blocks

    @property
    def padded_columns(self) -> int:
        """Columns with those that fill the last range."""
        return self.chunk * self.range_chunks * self.splits

    @staticmethod
    def of(rows: int, columns: int, side: int, chunk: int, **facts: Any) -> Layout:
        """The grid for so many rows and columns; `side` rows per program at most."""
        side = min(side, max(chunk, pl.next_power_of_2(rows)))
        blocks, chunks = pl.cdiv(rows, side), pl.cdiv(columns, chunk)
        splits = max(1, min(pl.cdiv(PROGRAMS, blocks), chunks // 8))
        return Layout(side, chunk, splits, blocks, pl.cdiv(chunks, splits), **facts)

    def visit(self, block: Array, split: Array, step: Callable, empty: Any) -> Any:
        """Fold `step(chunk index, sums, masked)` over the columns of one program.

        Only chunks that meet the rows of the block need a mask; of an ordered sum, those behind them
        need no visit at all.
        """
        first = split * self.range_chunks
        last = first + self.range_chunks

        def span(start: Any, stop: Any, sums: Any, masked: bool) -> Any:
            return jax.lax.fori_loop(start, stop, lambda index, s: step(index, s, masked), sums)

        if not (self.ordered or self.skips_own):
            return span(first, last, empty, False)
        per_block = self.rows // self.chunk
        meets, leaves = block * per_block, (block + 1) * per_block
        sums = span(first, jnp.minimum(last, meets), empty, False)
        sums = span(jnp.maximum(first, meets), jnp.minimum(last, leaves), sums, True)
        if self.ordered:
            return sums
        return span(jnp.maximum(first, leaves), last, sums, False)

    def counts(self, rows: Array, columns: Array) -> Array:
        """Whether pairs count, in chunks where that is a question."""
        if self.ordered and self.skips_own:
            return columns < rows
        return columns <= rows if self.ordered else columns != rows


def padded(array: Float[Array, "n ..."], count: int, fill: float = 0.0) -> Float[Array, "p ..."]:
    """The array in float32 with `count` entries along its first axis."""
    missing = ((0, count - array.shape[0]), *[(0, 0)] * (array.ndim - 1))
    return jnp.pad(array.astype(jnp.float32), missing, constant_values=fill)


def whole(*shape: int) -> pl.BlockSpec:
    """A kernel sees the whole array and indexes it itself."""
    return pl.BlockSpec(shape, lambda *grid: (0,) * len(shape))


def compiled_with(interpret: bool, warps: int, stages: int) -> dict[str, Any]:
    """Arguments of `pallas_call` for the GPU's compiler, or for none of it."""
    if interpret:
        return {"interpret": True}
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=stages)}
