"""Doubly stochastic attention without its matrix: Sinkhorn's iterations over blocks of tokens."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import require
from ..kinds import Sinkhorn, require_ott
from ..potentials import Potentials, implicit_potentials
from .base import Problem


def doubly_stochastic(problem: Problem, kind: Sinkhorn, block: int) -> Float[Array, "n m"]:
    """out_i = (1/w_i) sum_j e^{s_ij + f_i + g_j} v_j with the potentials f, g of ott-jax."""
    require(not problem.mask.needs_order, "Sinkhorn attention has no causal form: use mask=Full()")
    require_ott()
    queries, mass = problem.beta * problem.queries, jnp.exp(problem.log_weights)
    columns = jnp.arange(problem.keys.shape[0])

    def find(theta: tuple[Array, Array, Array]) -> Potentials:
        queries, keys, mass = theta
        return kind.potentials(_blocked_cloud()(queries, keys, block), mass)

    def marginals(theta: tuple[Array, ...], f: Array, g: Array) -> tuple[Array, Array]:
        queries, keys, mass = theta

        def sums(ours: Array, mine: Array, others: Array, theirs: Array) -> Array:
            def row(one: tuple[Array, Array]) -> Array:
                return jnp.sum(jnp.exp(others @ one[0] + one[1] + theirs))

            return jax.lax.map(row, (ours, mine), batch_size=block) - mass

        return sums(queries, f, keys, g), sums(keys, g, queries, f)

    f, g, converged = implicit_potentials(find, marginals, (queries, problem.keys, mass))

    def row(query: Array, potential: Array, position: Array) -> Array:
        weights = jnp.exp(problem.keys @ query + potential + g)
        if problem.drop_self:
            weights = jnp.where(columns == position, 0.0, weights)
        return weights @ problem.values

    out = jax.lax.map(lambda one: row(*one), (queries, f, columns), batch_size=block)
    return jnp.where(converged > 0, out / mass[:, None], jnp.nan)


@functools.cache
def _blocked_cloud() -> Any:
    """A geometry of ott-jax with cost -<q, k> that makes `block` rows of scores at a time.

    ott-jax 0.6 has its own (`batch_size`), which calls a function that JAX 0.10 no longer has.
    """
    from ott.geometry import costs, pointcloud

    @jax.tree_util.register_pytree_node_class
    class BlockedCloud(pointcloud.PointCloud):
        def __init__(self, x: Any, y: Any, block: int):
            super().__init__(x, y, cost_fn=costs.NegDotProduct(), epsilon=1.0)
            self.block = block

        def apply_lse_kernel(
            self, f: Array, g: Array, eps: Any, vec: Array | None = None, axis: int = 0
        ) -> tuple[Array, Array]:
            ours, others = (self.x, self.y) if axis == 1 else (self.y, self.x)
            mine, theirs = (f, g) if axis == 1 else (g, f)
            finite = jnp.where(jnp.isfinite(mine), mine, 0.0)

            def row(one: tuple[Array, Array]) -> tuple[Array, Array]:
                exponent = (others @ one[0] + theirs + one[1]) / eps
                return jax.scipy.special.logsumexp(exponent, b=vec, return_sign=True)

            logs, signs = jax.lax.map(row, (ours, mine), batch_size=self.block)
            return eps * logs - finite, signs

        def tree_flatten(self) -> tuple[Any, Any]:
            return (self.x, self.y), self.block

        @classmethod
        def tree_unflatten(cls, aux_data: int, children: Any) -> Any:
            return cls(children[0], children[1], aux_data)

    return BlockedCloud
