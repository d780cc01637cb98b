"""Tiled: the same sums over tiles of keys, never holding the n x n matrix."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import InputError
from ..kinds import Fold
from .base import Problem, Reduction


class Tiled(Reduction):
    """Memory O(n * tile); the fold of `Kind` runs over tiles of keys for each tile of rows."""

    tile: int = eqx.field(static=True, default=256)

    def __call__(self, problem: Problem) -> Array:
        if not isinstance(problem.kind, Fold):
            raise InputError(
                f"{type(problem.kind).__name__} attention is not a single sum over tokens, so it "
                "cannot be tiled; use reduction=Dense()"
            )
        kind = problem.kind
        rows, starts = problem.queries.shape[0], self._starts(problem.queries.shape[0])
        out = jax.lax.map(
            lambda start: self._rows(problem, kind, start + jnp.arange(self.tile)), starts
        )
        return out.reshape(-1, problem.values.shape[-1])[:rows]

    def _starts(self, count: int) -> Array:
        return jnp.arange(0, count, self.tile)

    def _rows(self, problem: Problem, kind: Fold, rows: Array) -> Array:
        count = problem.keys.shape[0]
        queries = problem.queries[jnp.minimum(rows, problem.queries.shape[0] - 1)]

        def absorb(carry, start):  # noqa: ANN001, ANN202
            columns = start + jnp.arange(self.tile)
            clipped = jnp.minimum(columns, count - 1)
            scores = kind.scores(queries, problem.keys[clipped], problem.beta)
            log_mass = problem.log_mass(rows, clipped)
            log_mass = jnp.where(columns < count, log_mass, -jnp.inf)
            values = problem.values[clipped]
            keep = problem.keep(rows, columns)
            return kind.absorb(carry, scores, log_mass, values, problem.beta, keep), None

        empty = kind.start(self.tile, problem.values.shape[-1])
        carry, _ = jax.lax.scan(absorb, empty, self._starts(count))
        return kind.finish(carry, problem.beta)

    def error_bound(self, problem_size: int) -> float:
        # Only the order of summation differs from Dense.
        return 2.3e-16 * problem_size

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        return 8 * heads * samples * (3 * self.tile * self.tile + 2 * n * 16)
