"""Clocks: the variable u in which the equation is stepped, with t = t(u).

The path does not depend on the clock, only the size of the solver's steps does.
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import require
from ..runtime import Scalar


class Clock(eqx.Module):
    """An increasing change of variable with t(0) = 0."""

    @abc.abstractmethod
    def time(self, u: Scalar) -> Array:
        """t(u)."""

    @abc.abstractmethod
    def inverse(self, t: Scalar) -> Array:
        """u(t)."""

    @abc.abstractmethod
    def rate(self, u: Scalar) -> Array:
        """dt/du."""


class Physical(Clock):
    """u = t."""

    def time(self, u: Scalar) -> Array:
        return jnp.asarray(u)

    def inverse(self, t: Scalar) -> Array:
        return jnp.asarray(t)

    def rate(self, u: Scalar) -> Array:
        return jnp.ones_like(jnp.asarray(u))


class LogTime(Clock):
    """t = scale (e^u - 1): equal steps are equal factors of time, for plateaus of length e^{c beta}."""

    scale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self) -> None:
        require(self.scale > 0, f"the scale of a log clock must be positive, got {self.scale}")

    def time(self, u: Scalar) -> Array:
        return self.scale * jnp.expm1(jnp.asarray(u))

    def inverse(self, t: Scalar) -> Array:
        return jnp.log1p(jnp.asarray(t) / self.scale)

    def rate(self, u: Scalar) -> Array:
        return self.scale * jnp.exp(jnp.asarray(u))
