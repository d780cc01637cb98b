"""Masks: which tokens a token may attend to, and with which bias.

A mask gives the logarithm of a non-negative factor m_ij: softmax adds it to the scores, other kinds
multiply by it. -inf hides token j from token i. What a mask says of its order decides who may use it:

| mask | sees_all | causal | decay | used by |
|---|---|---|---|---|
| Full | yes | no | none | every reduction, densities |
| Causal | no | yes | none | every reduction, layered densities |
| ALiBi | no | yes | slope | every reduction, layered densities |
| a new one | no | no | none | Dense and Tiled, unless it says more |

`ranks = {"slope": (0,)}` says how many axes each of its numbers has for one model, for `solve`: with one axis
more in front they are a batch of models. Without it an array belongs to one model.
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

    # How many axes its numbers have for one model, any of several: one more in front is a batch of models.
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {}
    # Whether it hides later tokens, so that the order of tokens must mean something and whole blocks of
    # columns behind the last row may be left out.
    needs_order: ClassVar[bool]
    # Whether m_ij = 1 for all pairs.
    sees_all: ClassVar[bool] = False
    # Whether m_ij = e^{-decay (i - j)/n} for earlier tokens j and 0 for later ones: sums are then prefixes.
    causal: ClassVar[bool] = False

    @property
    def sees_itself(self) -> bool:
        """Whether m_ii = 1 is certain."""
        return self.sees_all

    @property
    def decay(self) -> Float[Array, ""] | None:
        """The rate at which a causal mask fades with distance; None for 0."""
        return None

    @abc.abstractmethod
    def log_factor(
        self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int
    ) -> Float[Array, "r c"] | None:
        """log m_ij, or None when every m_ij is 1."""


class Full(Mask):
    """Every token sees every token."""

    needs_order: ClassVar[bool] = False
    sees_all: ClassVar[bool] = True

    def log_factor(self, rows: Array, columns: Array, n: int) -> None:
        return None


class Causal(Mask):
    """Token i sees j <= i, or j < i with `self_term=False` (2411.04990; 2605.09213)."""

    self_term: bool = eqx.field(static=True, default=True)
    needs_order: ClassVar[bool] = True
    causal: ClassVar[bool] = True

    @property
    def sees_itself(self) -> bool:
        return self.self_term

    def log_factor(self, rows: Array, columns: Array, n: int) -> Array:
        return jnp.where(_visible(rows, columns, self.self_term), 0.0, -jnp.inf)


class ALiBi(Mask):
    """Causal with the linear bias -slope (i - j)/n (2605.09213; the kinetic scaling of ALiBi)."""

    slope: Float[Array, ""] = eqx.field(converter=as_array)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"slope": (0,)}
    self_term: bool = eqx.field(static=True, default=True)
    needs_order: ClassVar[bool] = True
    causal: ClassVar[bool] = True

    @property
    def sees_itself(self) -> bool:
        return self.self_term

    @property
    def decay(self) -> Array:
        return self.slope

    def log_factor(self, rows: Array, columns: Array, n: int) -> Array:
        bias = -self.slope * (rows[:, None] - columns[None, :]) / n
        return jnp.where(_visible(rows, columns, self.self_term), bias, -jnp.inf)


def _visible(rows: Array, columns: Array, self_term: bool) -> Array:
    gap = rows[:, None] - columns[None, :]
    return gap >= 0 if self_term else gap > 0
