"""Simplex tokens under random scores: f = E sum_k p_ik^2 and g = E sum_k p_ik p_jk (2604.01978)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

from ..errors import require
from ..space import Sphere
from ..starts import equiangular
from .laws import ProductScores

# A solver's trial stages may step over the end of a grid that its solution stays within.
BEYOND = 1e-3


class Moments(NamedTuple):
    """f and g over a grid of overlaps, with their standard errors."""

    gamma: np.ndarray
    f: np.ndarray
    g: np.ndarray
    f_error: np.ndarray
    g_error: np.ndarray

    def at(self) -> Callable[[float], tuple[float, float]]:
        """gamma -> (f, g) by cubic splines; at gamma = 1 all scores tie and f = g = 1/n.

        Overlaps outside the grid are refused, apart from the rounding of a solver's stages.
        """
        f, g = (CubicSpline(self.gamma, values) for values in (self.f, self.g))
        low, high = self.gamma[0], self.gamma[-1]

        def moments(gamma: float) -> tuple[float, float]:
            require(
                low - BEYOND <= gamma <= high + BEYOND,
                f"f and g are known for overlaps from {low:g} to {high:g}, asked for at {gamma:g}; "
                "give simplex_moments a wider grid",
            )
            return float(f(gamma)), float(g(gamma))

        return moments


def simplex_moments(
    gammas: Sequence[float],
    n: int,
    d: int,
    beta: float,
    sigma_A: float | None = None,
    draws: int = 20_000,
    seed: int = 0,
) -> Moments:
    """f and g by Monte Carlo over A = W W'^T for n tokens with all overlaps gamma, the same A's for each.

    Every draw averages over all tokens (f) and all pairs (g). sigma_A is d^{-1/2} unless given.
    """
    require(draws >= 2, f"need at least 2 draws for a standard error, got {draws}")
    grid = np.asarray(gammas, dtype=float)
    points = jnp.stack([_tokens(n, d, gamma) for gamma in grid])
    scale = d**-0.5 if sigma_A is None else sigma_A
    values = np.asarray(_draws(points, jnp.asarray(beta * scale**2), jr.split(jr.key(seed), draws)))
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(draws)
    return Moments(grid, *means.T, *errors.T)


def _tokens(n: int, d: int, gamma: float) -> Float[Array, "n d"]:
    """Tokens with all overlaps gamma, also 1."""
    if gamma == 1.0:
        return jnp.zeros((n, d)).at[:, 0].set(1.0)
    return equiangular(Sphere(d), n, gamma).points


@jax.jit
def _draws(
    points: Float[Array, "gamma n d"], strength: Float[Array, ""], keys: Array
) -> Float[Array, "draw gamma 2"]:
    """Means of sum_k p_ik^2 over i and of sum_k p_ik p_jk over i != j, for every draw of A."""
    n = points.shape[1]

    def one(key: Array) -> Array:
        logits = jax.vmap(lambda x: ProductScores(1.0).logits(key, x))(points)
        p = jax.nn.softmax(strength * logits, axis=-1)
        own = jnp.sum(p**2, axis=(-2, -1))
        every = jnp.sum(jnp.sum(p, axis=-2) ** 2, axis=-1)
        return jnp.stack([own / n, (every - own) / (n * (n - 1))], axis=-1)

    return jax.lax.map(one, keys, batch_size=512)
