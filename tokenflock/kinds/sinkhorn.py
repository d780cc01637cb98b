"""Doubly stochastic attention, with its matrix or without: Sinkhorn's iterations over blocks of tokens."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import require, require_extra
from ..masks import Mask
from .base import Kind
from .gaussian import Affine, Gaussian, Head
from .gaussian_coupling import coupling_slope
from .plan_potentials import Potentials, implicit_potentials


class Sinkhorn(Kind):
    """Doubly stochastic attention (2110.11773): the plan e^{s_ij + f_i + g_j} w_i w_j with both
    marginals equal to the measure, computed by ott-jax in the log domain.

    out_i = (1/w_i) sum_j plan_ij v_j. `threshold` bounds the marginal error; a run that does not
    reach it within `iterations` returns NaN rather than a wrong field.
    """

    threshold: float = eqx.field(static=True, default=1e-10)
    iterations: int = eqx.field(static=True, default=20_000)
    averages: ClassVar[bool] = True
    couples: ClassVar[bool] = True

    def check_mask(self, mask: Mask) -> None:
        require(mask.sees_all, "Sinkhorn attention has no causal form: use mask=Full()")

    def dense(
        self, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Array:
        _require_ott()
        from ott.geometry import geometry

        def find(theta: tuple[Array, Array]) -> Potentials:
            return self.potentials(geometry.Geometry(cost_matrix=-theta[0], epsilon=1.0), theta[1])

        def marginals(theta: tuple[Array, Array], f: Array, g: Array) -> tuple[Array, Array]:
            plan = jnp.exp(theta[0] + f[:, None] + g)
            return plan.sum(axis=1) - theta[1], plan.sum(axis=0) - theta[1]

        mass = jnp.exp(log_mass[0])
        f, g, converged = implicit_potentials(find, marginals, (scores, mass))
        out = (jnp.exp(scores + f[:, None] + g) * keep) @ values / mass[:, None]
        return jnp.where(converged > 0, out, jnp.nan)

    def blockwise(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        mass: Array,
        drop_self: bool,
        block: int,
    ) -> Array:
        """out_i = (1/w_i) sum_j e^{s_ij + f_i + g_j} v_j with the potentials f, g of ott-jax."""
        _require_ott()
        columns = jnp.arange(keys.shape[0])

        def find(theta: tuple[Array, Array, Array]) -> Potentials:
            queries, keys, mass = theta
            return self.potentials(_blocked_cloud()(queries, keys, block), mass)

        def marginals(theta: tuple[Array, ...], f: Array, g: Array) -> tuple[Array, Array]:
            queries, keys, mass = theta

            def sums(ours: Array, mine: Array, others: Array, theirs: Array) -> Array:
                def row(one: tuple[Array, Array]) -> Array:
                    return jnp.sum(jnp.exp(others @ one[0] + one[1] + theirs))

                return jax.lax.map(row, (ours, mine), batch_size=block) - mass

            return sums(queries, f, keys, g), sums(keys, g, queries, f)

        f, g, converged = implicit_potentials(find, marginals, (queries, keys, mass))

        def row(query: Array, potential: Array, position: Array) -> Array:
            weights = jnp.exp(keys @ query + potential + g)
            if drop_self:
                weights = jnp.where(columns == position, 0.0, weights)
            return weights @ values

        out = jax.lax.map(lambda one: row(*one), (queries, f, columns), batch_size=block)
        return jnp.where(converged > 0, out / mass[:, None], jnp.nan)

    def potentials(self, geometry: Any, mass: Array) -> Potentials:
        """ott-jax's solution for a geometry of costs -s_ij at temperature 1."""
        _require_ott()
        from ott.problems.linear import linear_problem
        from ott.solvers.linear import sinkhorn

        solver = sinkhorn.Sinkhorn(
            threshold=self.threshold, max_iterations=self.iterations, lse_mode=True
        )
        found = solver(linear_problem.LinearProblem(geometry, a=mass, b=mass))
        return Potentials(found.f, found.g, jnp.asarray(found.converged, dtype=mass.dtype))

    @property
    def keeps_gaussians(self) -> bool:
        return True

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """V (alpha + M (x - alpha)), M the slope of the Gaussian coupling of mu with itself (2501.18322)."""
        slope = head.V @ coupling_slope(mu.covariance, head.score)
        return Affine(head.V @ mu.mean - slope @ mu.mean, slope)

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Array:
        slope = coupling_slope(mu.covariance, head.score)
        return jnp.outer(scaled.mean, scaled.mean) + slope @ scaled.covariance


def _require_ott() -> None:
    """Say how to get ott-jax, which an extra installs."""
    require_extra("Sinkhorn attention", "ott", "transport")


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
