"""Softmax of tokens on a sphere with themselves, where the largest score of a row is its own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..kinds import Carry, Fold, Kind, safe_divide
from .base import Problem

# From this many columns on, one more in a matrix product costs more than a sum beside it.
WIDE = 16


class KnownPeak(Fold):
    """out_i = sum_j w_j e^{s_ij - p} v_j / sum_j w_j e^{s_ij - p} with the peak p = s_ii known before.

    For unit tokens s_ij = beta <x_i, x_j> <= beta = s_ii, so no pass over the scores has to find the peak,
    and numerator and partition function are one matrix product with the values [v_j, 1]. A row whose own
    mass is no number any more beside the others' (1e-30 in float32, 1e-290 in float64) loses its digits.
    """

    kind: Kind
    averages = True

    @staticmethod
    def of(problem: Problem) -> KnownPeak | None:
        """The fold, if the problem is of this sort: every row sees itself, by a score nobody exceeds."""
        known = problem.kind.own_peak(problem.beta) is not None
        seen = problem.unit_keys and problem.own_keys and problem.mask.sees_itself
        return KnownPeak(problem.kind) if known and seen else None

    def scores(self, queries: Array, keys: Array, beta: Array) -> Array:
        return self.kind.scores(queries, keys, beta)

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return jnp.zeros((rows, width + 1), dtype)

    def own_weights(self, problem: Problem) -> Float[Array, " rows"]:
        """w_i e^{s_ii - p}: the mass, but written out, so that derivatives off the sphere are right too."""
        count = problem.queries.shape[0]
        single = jax.vmap(lambda q, k: self.scores(q[None], k[None], problem.beta)[0, 0])
        scores = single(problem.queries, problem.keys[:count])
        return jnp.exp(problem.log_weights[:count] + scores - self.peak(problem.beta))

    def with_own(self, carry: Carry, weights: Float[Array, " r"]) -> Carry:
        """Count their own weight in the partition function of rows whose own value is dropped."""
        return carry.at[:, -1].add(weights)

    def peak(self, beta: Array) -> Array:
        """s_ii of a unit token."""
        peak = self.kind.own_peak(beta)
        assert peak is not None
        return peak

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        kernel = jnp.exp(scores + (log_mass - self.peak(beta))) * keep
        if values.shape[-1] >= WIDE:
            partition = jnp.sum(kernel, axis=-1, keepdims=True)
            return carry + jnp.concatenate([kernel @ values, partition], axis=-1)
        ones = jnp.ones((values.shape[0], 1), values.dtype)
        return carry + kernel @ jnp.concatenate([values, ones], axis=-1)

    def finish(self, carry: Carry, beta: Array) -> Array:
        return safe_divide(carry[:, :-1], carry[:, -1:])
