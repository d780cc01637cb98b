"""Sigmoid attention."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..runtime import as_array
from .base import Weighted


class Sigmoid(Weighted):
    """f(s) = 1/(1 + e^{-(s + bias)})."""

    bias: Float[Array, ""] = eqx.field(default=0.0, converter=as_array)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"bias": (0,)}

    def weight(self, scores: Array, beta: Array) -> Array:
        return jax.nn.sigmoid(scores + self.bias)

    def primitive(self, scores: Array) -> Array:
        return jax.nn.softplus(scores + self.bias)
