"""Pairs of tokens: distances, the Gram histogram, and the fraction of pairs that have met."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import require
from ..measure import Measure
from ..space import Space, Sphere
from .base import Observable, Snapshot
from .reading import require_sphere
from .registry import register


def squared_chords(x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """|x_i - y_j|^2 by differences: 2 - 2<x,y> loses half the digits where tokens meet.

    O(n m d) work; the n x m x d differences are fused into the sum and never stored.
    """
    return jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)


def distances(space: Space, x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """Geodesic distances of all pairs, row by row: all at once would store n m d numbers."""
    return jax.lax.map(lambda point: space.distance(point, y), x)


def squared_radius(space: Space, distance: float) -> float:
    """The squared chord of a geodesic distance: (2 sin(distance/2))^2 on a sphere."""
    return (2.0 * np.sin(distance / 2.0)) ** 2 if isinstance(space, Sphere) else distance**2


def pair_weights(mu: Measure) -> Float[Array, "n n"]:
    """Law of an ordered pair of different tokens: w_i w_j / sum_{k != l} w_k w_l, 0 for i = j."""
    product = mu.weights[:, None] * mu.weights[None, :]
    different = jnp.where(jnp.eye(mu.n, dtype=bool), 0.0, product)
    return different / jnp.sum(different)


def _pair_fraction(snapshot: Snapshot, delta: float) -> Float[Array, ""]:
    """sum_{i != j} w_i w_j 1{<x_i,x_j> >= 1 - delta} / sum_{i != j} w_i w_j (2312.10794, Fig. 3).

    Closeness is |x_i - x_j|^2/2 <= delta, the same number without the cancellation. O(n^2 d).
    """
    require_sphere(snapshot, "pair_fraction", "use clusters(distance=...) in R^d")
    mu = snapshot.measure
    met = squared_chords(mu.points, mu.points) / 2.0 <= delta
    return jnp.sum(jnp.where(met, pair_weights(mu), 0.0))


@register
def pair_fraction(delta: float = 1e-3) -> Observable:
    """P(<x_i, x_j> >= 1 - delta) over i != j; the paper's phase diagrams use delta = 1e-3."""
    require(0 < delta <= 2, f"delta must lie in (0, 2], got {delta}")
    return Observable(
        "pair_fraction",
        "1",
        _pair_fraction,
        parameters=(("delta", float(delta)),),
        says="Fraction of pairs of different tokens with inner product at least 1 - delta",
    )


def _gram_histogram(
    snapshot: Snapshot, bins: int, low: float, high: float
) -> Float[Array, " bins"]:
    """Law of <x_i, x_j>, i != j, on equal bins of [low, high], the last one closed. O(n^2 d).

    The diagonal is left out. Fractions sum to 1 unless values fall outside [low, high].
    """
    mu = snapshot.measure
    gram = mu.points @ mu.points.T
    if isinstance(mu.space, Sphere):
        gram = jnp.clip(gram, -1.0, 1.0)  # rounding must not push a pair out of [-1, 1]
    index = jnp.floor((gram - low) * (bins / (high - low))).astype(jnp.int32)
    index = jnp.where(gram == high, bins - 1, index)
    inside = (gram >= low) & (gram <= high)
    # Rounding of the quotient may give `bins` just below high.
    index = jnp.clip(index, 0, bins - 1)
    weights = jnp.where(inside, pair_weights(mu), 0.0)
    return jnp.zeros(bins).at[index.ravel()].add(weights.ravel())


@register
def gram_histogram(bins: int = 64, low: float = -1.0, high: float = 1.0) -> Observable:
    """Histogram of the off-diagonal Gram matrix (2312.10794, Figure 1), with fixed bins."""
    require(isinstance(bins, int) and bins >= 1, f"bins must be a positive integer, got {bins!r}")
    require(low < high, f"low must be below high, got {low} and {high}")
    edges = np.linspace(low, high, bins + 1)
    middles = tuple(float(value) for value in (edges[1:] + edges[:-1]) / 2)
    return Observable(
        "gram_histogram",
        "1",
        _gram_histogram,
        axes=("inner_product",),
        parameters=(("bins", bins), ("low", float(low)), ("high", float(high))),
        labels=(("inner_product", middles),),
        says="Fraction of pairs of different tokens by inner product, per bin",
    )
