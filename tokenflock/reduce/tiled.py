"""Tiled: the same sums over tiles of the score matrix, which is never held whole.

Rows come in blocks (`lax.map`), each a fold over blocks of columns (`lax.scan`). Both bodies are
checkpointed: reverse-mode derivatives recompute a tile instead of storing it, so that memory stays
O(n) there too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..errors import require
from ..kinds import Carry, Fold
from .base import Problem, Reduction, Task, in_blocks, largest_score, machine_epsilon
from .mirrored import can_mirror, mirrored
from .peak import KnownPeak

# Entries of a tile on a CPU: large enough to keep two cores busy through each operation, small enough
# for the last-level cache (measured at n = 8192, d = 3 and 64, float32 and float64: benchmarks, dense-cpu).
ROWS, COLUMNS = 1024, 2048
# A GPU wants far larger ones to be busy at all (H200, n = 65536: twice the speed of 512 x 4096).
GPU_ROWS, GPU_COLUMNS = 1024, 65_536
Precision = Literal["float32", "float64"]


class Tiled(Reduction):
    """Exact up to the order of summation; memory O(n) and time O(n^2), masked tiles left out.

    `tile` makes square tiles of that side; by default they are 1024 x 2048 on a CPU, and of many tokens
    with themselves each pair of blocks is visited once (`mirrored`).
    `precision="float32"` sums in single precision whatever the tokens are stored in: about twice as
    fast, with an error near 1e-6 that `error_bound` states.
    """

    tile: int | None = eqx.field(static=True, default=None)
    precision: Precision | None = eqx.field(static=True, default=None)
    # The largest score, once known: what rounding in single precision is measured against.
    steepness: float | None = eqx.field(static=True, default=None)

    def settle(self, tasks: Sequence[Task]) -> Tiled:
        if self.precision != "float32":
            return self
        return Tiled(self.tile, self.precision, largest_score(tasks))

    def __check_init__(self) -> None:
        require(
            self.tile is None or self.tile >= 1,
            f"a tile needs a side of at least 1, got {self.tile}",
        )
        require(
            self.precision in (None, "float32", "float64"),
            f"precision is float32 or float64, got {self.precision!r}",
        )

    def __call__(self, problem: Problem) -> Array:
        dtype = problem.values.dtype
        narrow = problem if self.precision is None else problem.cast(self.precision)
        return self._sums(narrow).astype(dtype)

    def _sums(self, problem: Problem) -> Array:
        plain = problem.kind.fold()
        if plain is None:
            return self._by_blocks(problem)
        fold = KnownPeak.of(problem) or plain
        if self.tile is None and isinstance(fold, KnownPeak) and can_mirror(problem):
            return mirrored(fold, problem, functools.partial(self._by_rows, fold))
        return self._by_rows(fold, problem)

    def _by_blocks(self, problem: Problem) -> Array:
        """A kind that is no fold has its own way through blocks of rows, or refuses."""
        problem.kind.check_mask(problem.mask)
        mass, queries = jnp.exp(problem.log_weights), problem.beta * problem.queries
        block = self._sides(problem)[0]
        return problem.kind.blockwise(
            queries, problem.keys, problem.values, mass, problem.drop_self, block
        )

    def _by_rows(self, fold: Fold, problem: Problem) -> Array:
        rows, columns = self._sides(problem)
        blocks = Columns.of(problem, columns)
        body = jax.checkpoint(lambda one: _row_block(problem, fold, blocks, one))
        out = jax.lax.map(body, Rows.of(problem, fold, rows))
        return out.reshape(-1, problem.values.shape[-1])[: problem.queries.shape[0]]

    def _sides(self, problem: Problem) -> tuple[int, int]:
        """Rows and columns of a tile, no larger than the problem."""
        rows, columns = self.sides()
        return min(rows, problem.queries.shape[0]), min(columns, problem.keys.shape[0])

    def sides(self) -> tuple[int, int]:
        """Rows and columns of a full tile."""
        if self.tile is not None:
            return self.tile, self.tile
        on_cpu = jax.default_backend() == "cpu"
        return (ROWS, COLUMNS) if on_cpu else (GPU_ROWS, GPU_COLUMNS)

    def error_bound(self, problem_size: int) -> float:
        if self.precision != "float32":
            # Only the order of summation differs from Dense.
            return machine_epsilon(float) * problem_size
        # Scores carry roundings of their size; the sum of a tile wanders like the root of its length
        # (four deviations), and tiles are added one after another.
        side = self.sides()[1]
        steepness = 10.0 if self.steepness is None else self.steepness
        wandering = 4 * min(side, problem_size) ** 0.5 + problem_size / side
        return machine_epsilon(jnp.float32) / 2 * (4 * steepness + wandering)

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        rows, columns = self.sides()
        tile = 3 * min(rows, n) * min(columns, n)
        return 8 * heads * samples * (tile + 2 * n * 16)


class Rows(eqx.Module):
    """The rows of a problem cut into blocks, with their own weights where a fold needs them beforehand."""

    queries: Float[Array, "*blocks r k"]
    positions: Int[Array, "*blocks r"]
    own: Float[Array, "*blocks r"] | None

    @staticmethod
    def of(problem: Problem, fold: Fold, size: int) -> Rows:
        """Blocks of `size` rows."""
        queries = in_blocks(problem.queries, size)
        own = None
        if isinstance(fold, KnownPeak) and problem.drop_self:
            own = in_blocks(fold.own_weights(problem), size)
        return Rows(queries, _positions(queries.shape[0], size), own)


class Columns(eqx.Module):
    """The columns of a problem cut into blocks, the last one filled up with tokens of no mass."""

    keys: Float[Array, "*blocks c k"]
    values: Float[Array, "*blocks c m"]
    log_weights: Float[Array, "*blocks c"]
    positions: Int[Array, "*blocks c"]

    @staticmethod
    def of(problem: Problem, size: int) -> Columns:
        """Blocks of `size` columns."""
        keys = in_blocks(problem.keys, size)
        return Columns(
            keys,
            in_blocks(problem.values, size),
            in_blocks(problem.log_weights, size, fill=-jnp.inf),
            _positions(keys.shape[0], size),
        )


def _row_block(problem: Problem, fold: Fold, columns: Columns, rows: Rows) -> Float[Array, "r m"]:
    """The sums of one block of rows."""

    @jax.checkpoint
    def absorb(carry: Carry, block: Columns) -> Carry:
        scores = fold.scores(rows.queries, block.keys, problem.beta)
        log_mass = problem.block_log_mass(rows.positions, block.positions, block.log_weights)
        keep = problem.keep(rows.positions, block.positions)
        return fold.absorb(carry, scores, log_mass, block.values, problem.beta, keep)

    def visit(carry: Carry, block: Columns) -> tuple[Carry, None]:
        if not problem.mask.needs_order:
            return absorb(carry, block), None
        # A block that lies wholly behind the mask adds nothing: not even its scores are computed.
        ahead = block.positions[0] > rows.positions[-1]
        return jax.lax.cond(ahead, lambda c, b: c, absorb, carry, block), None

    carry = fold.start(rows.queries.shape[0], problem.values.shape[-1], problem.values.dtype)
    if isinstance(fold, KnownPeak) and rows.own is not None:
        carry = fold.with_own(carry, rows.own)
    carry, _ = jax.lax.scan(visit, carry, columns)
    return fold.finish(carry, problem.beta)


def _positions(blocks: int, size: int) -> Any:
    return jnp.arange(blocks * size).reshape(blocks, size)
