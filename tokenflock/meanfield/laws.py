"""Named densities to start from, as functions of points; a factor does not matter.

Each is a function of points (m, d) that `Density.from_law` divides by its integral. `sample` draws tokens.
"""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..density import Law
from ..errors import require
from .drawing import sample as sample


def uniform() -> Law:
    """The uniform law: an equilibrium of every plain attention, unstable without noise."""
    return lambda x: jnp.ones(x.shape[0])


def cosine(amplitude: float, mode: int = 1, phase: float = 0.0) -> Law:
    """1 + amplitude cos(mode (theta - phase)) on the circle."""
    require(abs(amplitude) <= 1, f"the amplitude must lie in [-1, 1], got {amplitude}")
    require(mode >= 1, f"mode must be at least 1, got {mode}")

    def law(x: Float[Array, "m d"]) -> Float[Array, " m"]:
        return 1.0 + amplitude * jnp.cos(mode * (_angles(x, "cosine") - phase))

    return law


def ripples(amplitude: float, modes: int, seed: int) -> Law:
    """1 + amplitude times random waves up to `modes` on the circle, at most 1 together.

    The start of 2410.23228's pictures, with the high frequencies of its white noise left out:
    they hardly grow, and no grid holds them all.
    """
    require(0 <= amplitude < 1, f"the amplitude must lie in [0, 1), got {amplitude}")
    require(modes >= 1, f"modes must be at least 1, got {modes}")
    size, phase = jr.split(jr.key(seed))
    sizes = jr.normal(size, (modes,), dtype=jnp.float64)
    sizes = sizes / jnp.sum(jnp.abs(sizes))
    phases = 2 * np.pi * jr.uniform(phase, (modes,), dtype=jnp.float64)

    def law(x: Float[Array, "m d"]) -> Float[Array, " m"]:
        waves = _angles(x, "ripples")[:, None] * jnp.arange(1, modes + 1) + phases
        return 1.0 + amplitude * jnp.cos(waves) @ sizes

    return law


def von_mises(concentration: float, direction: list[float] | None = None) -> Law:
    """e^{concentration <x, w>} on a sphere of any dimension; w is the first axis unless given."""
    require(np.isfinite(concentration), f"the concentration must be finite, got {concentration}")

    def law(x: Float[Array, "m d"]) -> Float[Array, " m"]:
        along = _along(x, direction)
        return jnp.exp(concentration * along - abs(concentration))

    return law


def zonal_mode(amplitude: float, degree: int) -> Law:
    """1 + amplitude C_degree(<x, e_1>), C_l the Gegenbauer polynomial of the sphere with C_l(1) = 1."""
    require(abs(amplitude) <= 1, f"the amplitude must lie in [-1, 1], got {amplitude}")
    require(degree >= 1, f"the degree must be at least 1, got {degree}")

    def law(x: Float[Array, "m d"]) -> Float[Array, " m"]:
        d, u = x.shape[-1], x[:, 0]
        before, now = jnp.ones_like(u), u
        for k in range(1, degree):
            # (k + d - 2) C_{k+1} = (2k + d - 2) u C_k - k C_{k-1}
            before, now = now, ((2 * k + d - 2) * u * now - k * before) / (k + d - 2)
        return 1.0 + amplitude * now

    return law


def _angles(x: Float[Array, "m d"], name: str) -> Float[Array, " m"]:
    require(
        x.shape[-1] == 2,
        f"{name} lives on the circle, got d={x.shape[-1]}; use von_mises or zonal_mode",
    )
    return jnp.arctan2(x[:, 1], x[:, 0])


def _along(x: Float[Array, "m d"], direction: list[float] | None) -> Float[Array, " m"]:
    if direction is None:
        return x[:, 0]
    vector = np.asarray(direction, dtype=float)
    length = float(np.linalg.norm(vector))
    require(
        vector.shape == (x.shape[-1],) and 0 < length < np.inf,
        f"the direction needs {x.shape[-1]} finite coordinates, not all 0; got {direction}",
    )
    return x @ jnp.asarray(vector / length)


LAWS = {law.__name__: law for law in (uniform, cosine, ripples, von_mises, zonal_mode)}
