"""Masks: which tokens a token may attend to, and with which bias.

A mask gives the logarithm of a non-negative factor m_ij: softmax adds it to the scores, other kinds
multiply by it. -inf hides token j from token i.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .runtime import as_array


class Mask(eqx.Module):
    """log m_ij for blocks of rows i and columns j, as functions of positions in the text."""

    needs_order: ClassVar[bool]

    @abc.abstractmethod
    def log_factor(
        self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int
    ) -> Float[Array, "r c"] | None:
        """log m_ij, or None when every m_ij is 1."""


class Full(Mask):
    """Every token sees every token."""

    needs_order: ClassVar[bool] = False

    def log_factor(self, rows: Array, columns: Array, n: int) -> None:
        return None


class Causal(Mask):
    """Token i sees j <= i, or j < i with `self_term=False` (2411.04990; 2605.09213)."""

    self_term: bool = eqx.field(static=True, default=True)
    needs_order: ClassVar[bool] = True

    def log_factor(self, rows: Array, columns: Array, n: int) -> Array:
        return jnp.where(_visible(rows, columns, self.self_term), 0.0, -jnp.inf)


class ALiBi(Mask):
    """Causal with the linear bias -slope (i - j)/n (2605.09213; the kinetic scaling of ALiBi)."""

    slope: Float[Array, ""] = eqx.field(converter=as_array)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"slope": (0,)}
    self_term: bool = eqx.field(static=True, default=True)
    needs_order: ClassVar[bool] = True

    def log_factor(self, rows: Array, columns: Array, n: int) -> Array:
        bias = -self.slope * (rows[:, None] - columns[None, :]) / n
        return jnp.where(_visible(rows, columns, self.self_term), bias, -jnp.inf)


def _visible(rows: Array, columns: Array, self_term: bool) -> Array:
    gap = rows[:, None] - columns[None, :]
    return gap >= 0 if self_term else gap > 0
