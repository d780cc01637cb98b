"""Named densities to start from, as functions of points; a factor does not matter."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..density import Law
from ..errors import require


def uniform() -> Law:
    """The uniform law: an equilibrium of every plain attention, unstable without noise."""
    return lambda x: jnp.ones(x.shape[0])


def cosine(amplitude: float, mode: int = 1, phase: float = 0.0) -> Law:
    """1 + amplitude cos(mode (theta - phase)) on the circle."""
    require(abs(amplitude) <= 1, f"the amplitude must lie in [-1, 1], got {amplitude}")

    def law(x: Float[Array, "m d"]) -> Float[Array, " m"]:
        require(x.shape[-1] == 2, f"cosine lives on the circle, got d={x.shape[-1]}; use von_mises")
        theta = jnp.arctan2(x[:, 1], x[:, 0])
        return 1.0 + amplitude * jnp.cos(mode * (theta - phase))

    return law
