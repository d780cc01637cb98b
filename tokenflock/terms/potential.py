"""An external potential."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array

from ..measure import Measure
from ..reduce import Reduction
from ..runtime import Scalar
from ..schedule import Quantity, as_number, is_fixed, now
from .base import Term


class Potential(Term):
    """Gradient ascent of an external potential f: R^d -> R, any scalar JAX function, times a strength.

    The strength is a number, or a `Piecewise` of numbers where it changes with depth.
    """

    function: Callable[[Array], Array] = eqx.field(static=True)
    strength: Quantity = eqx.field(converter=as_number, default=1.0)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"strength": (0,)}

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return now(self, t).strength * jax.vmap(jax.grad(self.function))(x)

    def potential(self, t: Scalar, x: Array) -> Array:
        return now(self, t).strength * jax.vmap(self.function)(x)

    @property
    def is_gradient(self) -> bool:
        return is_fixed(self)

    def opposite(self) -> Potential:
        return self.scaled(-1.0)

    def scaled(self, factor: Scalar) -> Potential:
        return Potential(self.function, factor * self.strength)
