"""Hardmax attention: the limit beta -> infinity of softmax."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from .base import Carry, Fold, empty_with_peak, safe_divide


class Hardmax(Fold):
    """Mean of the values over C_i = argmax_j s_ij, ties shared by mass (2407.01602).

    Ties are exact (`==`): a tolerance here would change which leader a token follows. Leaders are
    recognised by location, with a tolerance, in `observables.leaders`. beta plays no role but its sign.
    """

    averages: ClassVar[bool] = True

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return empty_with_peak(rows, width, dtype)

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        peak, count, total = carry
        mass = jnp.exp(log_mass)
        seen = jnp.where(mass > 0, scores, -jnp.inf)
        top = jnp.maximum(peak, jnp.max(seen, axis=-1, keepdims=True))
        chosen = jnp.where((seen == top) & (mass > 0), mass, 0.0)
        same = jnp.where(peak == top, 1.0, 0.0)
        return (
            top,
            count * same + jnp.sum(chosen, -1, keepdims=True),
            total * same + (chosen * keep) @ values,
        )

    def finish(self, carry: Carry, beta: Array) -> Array:
        return safe_divide(carry[2], carry[1])
