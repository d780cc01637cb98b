"""Connected components of a dense graph, inside compiled code."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .space import Space


@eqx.filter_jit
def linked_labels(
    space: Space, points: Float[Array, "n d"], link: Float[Array, ""]
) -> Int[Array, " n"]:
    """Labels of tokens that are linked up to a distance, as one program."""
    return component_labels(space.distance(points[:, None], points[None]) <= link)


def component_labels(adjacent: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """Smallest index of each token's connected component, for a symmetric adjacency matrix.

    Every tree hooks its root below the smallest label it touches, then paths are compressed by
    pointer jumping. O(n^2) per round; O(log n) rounds on chains and rings in any order.
    """
    n = adjacent.shape[0]
    doublings = max(1, math.ceil(math.log2(n)))

    def touched(labels: Array) -> Array:
        others = jnp.min(jnp.where(adjacent, labels[None, :], n), axis=1)
        return jnp.minimum(others, labels)

    def hook(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, _ = carry
        parents = labels.at[labels].min(touched(labels))
        roots = jax.lax.fori_loop(0, doublings, lambda _, p: p[p], parents)
        return roots, jnp.any(roots != labels)

    start = (jnp.arange(n, dtype=jnp.int32), jnp.asarray(True))
    return jax.lax.while_loop(lambda carry: carry[1], hook, start)[0]
