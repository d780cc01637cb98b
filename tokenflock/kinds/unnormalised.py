"""Unnormalised attention (USA): the exponential without the partition function."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import require
from .base import Convention, Weighted


class Unnormalised(Weighted):
    """USA: e^{s_ij} without the partition function, in three published clocks.

    | convention | weight of token j | source |
    |---|---|---|
    | perspective | e^{beta <x,y>} / n | 2312.10794 |
    | metastability | e^{beta (<x,y> - 1)} / n | 2410.06833: the same path, slower by e^{-beta} |
    | kinetic | beta e^{beta <x,y>} / n | 2605.09213 |

    The sums always hold e^{beta(<x,y>-1)}; the factor is applied once, at the end.
    """

    convention: Convention = eqx.field(static=True, default="perspective")

    def __check_init__(self) -> None:
        require(
            self.convention in ("perspective", "metastability", "kinetic"),
            f"USA's convention is perspective, metastability or kinetic, got {self.convention!r}",
        )

    @property
    def exponent(self) -> float:
        return 1.0

    def shift(self, beta: Array) -> Array:
        return beta

    def weight(self, scores: Array, beta: Array) -> Array:
        return jnp.exp(scores - beta)

    def speed(self, beta: Array) -> Array:
        if self.convention == "metastability":
            return jnp.ones_like(beta)
        factor = jnp.exp(beta)
        return factor if self.convention == "perspective" else beta * factor

    def log_speed(self, beta: Array) -> Array:
        if self.convention == "metastability":
            return jnp.zeros_like(beta)
        return jnp.asarray(beta) if self.convention == "perspective" else beta + jnp.log(beta)

    def primitive(self, scores: Array) -> Array:
        return jnp.exp(scores)

    def clock(self, beta: Array) -> Array:
        """1, e^{-beta} or beta: the perspective's clock is that of the energy (2312.10794, eq. 3.11)."""
        if self.convention == "metastability":
            return jnp.exp(-beta)
        return jnp.ones_like(beta) if self.convention == "perspective" else beta
