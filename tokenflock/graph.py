"""Connected components of a dense graph, inside compiled code."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from . import runtime as runtime


def component_labels(linked: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """Label of each vertex: the smallest index of its component.

    Each round takes the smallest label among the neighbours and then follows labels to their own
    label, so a chain of n vertices needs O(log n) rounds of O(n^2) work.
    """
    n = linked.shape[0]
    linked = linked | jnp.eye(n, dtype=bool)

    def spread(labels: Array) -> Array:
        nearest = jnp.min(jnp.where(linked, labels[None, :], n), axis=1)
        return nearest[nearest]

    def unsettled(carry: tuple[Array, Array]) -> Array:
        return jnp.any(carry[0] != carry[1])

    def advance(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return carry[1], spread(carry[1])

    start = jnp.arange(n)
    return jax.lax.while_loop(unsettled, advance, (start, spread(start)))[1]
