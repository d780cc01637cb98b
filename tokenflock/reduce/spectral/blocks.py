"""Tokens and rows in blocks. Inside a block tokens come last: recurrences run along contiguous memory."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..base import Problem

# Features that stay in the cache of a core are read once per channel: twice as fast there as the product
# of two matrices, which is twice as fast beyond (52 and 625 features of 512 tokens, 3 and 4 channels).
IN_CACHE = 2**17


class Tokens(NamedTuple):
    """Keys of length exactly 1, values, and masses of which the largest is 1: blocks of them, or one."""

    keys: Float[Array, "*blocks d c"]
    values: Float[Array, "*blocks m c"]
    masses: Float[Array, "*blocks c"]

    @staticmethod
    def of(problem: Problem, size: int, count: int | None = None) -> Tokens:
        """The first `count` tokens of a problem; the last block is filled up with tokens of no mass."""
        peak = jax.lax.stop_gradient(jnp.max(problem.log_weights))
        log_weights = problem.log_weights - jnp.where(jnp.isfinite(peak), peak, 0.0)
        return Tokens(
            unit(tokens_last(problem.keys[:count], size, fill=1.0)),
            tokens_last(problem.values[:count], size),
            cut(jnp.exp(log_weights[:count]), size),
        )

    def channels(self) -> Float[Array, "m c"]:
        """What is summed: w_j v_j, and last w_j."""
        return jnp.concatenate([self.masses * self.values, self.masses[None]])


class Rows(NamedTuple):
    """Queries, the tokens of the same numbers where they matter, and rows known to be good."""

    queries: Float[Array, "*blocks d c"]
    own: Tokens | None
    good: Bool[Array, "*blocks c"] | None

    @staticmethod
    def of(problem: Problem, tokens: Tokens, good: Array | None, size: int) -> Rows:
        """The rows of a problem; where they are its tokens, their blocks are used again."""
        rows = problem.queries.shape[0]
        same = tokens if rows == problem.keys.shape[0] else Tokens.of(problem, size, rows)
        return Rows(
            same.keys if problem.own_keys else tokens_last(problem.queries, size, fill=1.0),
            same if problem.drop_self else None,
            None if good is None else cut(good, size, fill=False),
        )


def sums_of_features(
    features: Float[Array, "f c"], channels: Float[Array, "m c"]
) -> Float[Array, "f m"]:
    """sum_j f_j u_j for every feature and channel."""
    if features.size <= IN_CACHE:
        return jnp.stack([features @ channel for channel in channels], axis=1)
    return features @ channels.T


def at_features(held: Float[Array, "f m"], features: Float[Array, "f c"]) -> Float[Array, "m c"]:
    """sum_f M_f f_i for every channel and row."""
    if features.size <= IN_CACHE:
        return jnp.stack([column @ features for column in held.T])
    return held.T @ features


class Compensated(NamedTuple):
    """A sum of many parts whose error does not grow with their number (Neumaier)."""

    total: Float[Array, "f m"]
    lost: Float[Array, "f m"]

    @staticmethod
    def zeros(shape: tuple[int, int], dtype: np.dtype) -> Compensated:
        """The empty sum."""
        return Compensated(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))

    def plus(self, part: Float[Array, "f m"]) -> Compensated:
        """The sum with one more part."""
        after = self.total + part
        larger = jnp.abs(self.total) >= jnp.abs(part)
        slip = jnp.where(larger, (self.total - after) + part, (part - after) + self.total)
        return Compensated(after, self.lost + slip)

    def times(self, factor: Float[Array, ""]) -> Compensated:
        """The sum of smaller parts."""
        return Compensated(self.total * factor, self.lost * factor)

    @property
    def value(self) -> Float[Array, "f m"]:
        """The sum."""
        return self.total + self.lost


def unit(vectors: Float[Array, "*blocks d c"]) -> Float[Array, "*blocks d c"]:
    """Vectors of length exactly 1: derivatives are then those along the sphere, where a series lives."""
    return vectors / jnp.sqrt(jnp.sum(vectors**2, axis=-2, keepdims=True))


def cut(array: Array, size: int, fill: float | int | bool = 0.0) -> Array:
    """The leading axis in blocks, the last one filled up."""
    missing = -array.shape[0] % size
    widths = ((0, missing), *[(0, 0)] * (array.ndim - 1))
    padded = jnp.pad(array, widths, constant_values=fill) if missing else array
    return padded.reshape(-1, size, *array.shape[1:])


def tokens_last(
    vectors: Float[Array, "n k"], size: int, fill: float = 0.0
) -> Float[Array, "blocks k c"]:
    """Vectors in blocks."""
    return jnp.swapaxes(cut(vectors, size, fill), 1, 2)


def as_rows(blocks: Float[Array, "blocks m c"], count: int) -> Float[Array, "n m"]:
    """The first `count` vectors of blocks."""
    return jnp.swapaxes(blocks, 1, 2).reshape(-1, blocks.shape[1])[:count]
