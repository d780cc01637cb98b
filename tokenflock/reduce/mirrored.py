"""Softmax of tokens with themselves, every pair of blocks once: e^{s_ij - p} = e^{s_ji - p}.

With a peak that is the same for all rows the weights are symmetric before masses come in, so the
scores and exponentials of a tile serve its rows and, read the other way, its columns.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .base import Problem, in_blocks
from .peak import WIDE, KnownPeak

# Side of a block on a CPU (measured at n = 8192, d = 3 and 64: 512 and 2048 are slower).
SIDE = 1024


def can_mirror(problem: Problem) -> bool:
    """Whether all pairs count, and there are blocks enough to gain by it; for a `KnownPeak`."""
    rows, columns = problem.queries.shape[0], problem.keys.shape[0]
    large = rows == columns and columns >= 4 * SIDE
    return large and problem.mask.sees_all and jax.default_backend() == "cpu"


def mirrored_sums(fold: KnownPeak, problem: Problem) -> Float[Array, "n m"]:
    """sum_j w_j e^{s_ij - p} v_j over sum_j w_j e^{s_ij - p}; memory O(n)."""
    count, width = problem.values.shape
    masses = jnp.exp(problem.log_weights)[:, None]
    # [w v, w]: numerator and partition function, of rows and, transposed, of columns.
    carried = jnp.concatenate([masses * problem.values, masses], axis=1)
    points, carried = in_blocks(problem.keys, SIDE), in_blocks(carried, SIDE)
    blocks = points.shape[0]

    def visit(
        sums: tuple[Array, Array], pair: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        across, along = sums
        i, j = pair
        weight = jnp.exp(fold.scores(points[i], points[j], problem.beta) - fold.peak(problem.beta))
        if problem.drop_self:
            weight = jnp.where((i == j) & jnp.eye(SIDE, dtype=bool), 0.0, weight)
        across = across.at[i].add(_product(weight, carried[j]))
        # Not weight.T @ carried: a transposed tile would be copied first.
        other = _product_of_rows(carried[i].T, weight)
        return (across, along.at[j].add(jnp.where(i == j, 0.0, other))), None

    empty = jnp.zeros((blocks, SIDE, width + 1), problem.values.dtype)
    first, second = np.triu_indices(blocks)
    (across, along), _ = jax.lax.scan(
        visit, (empty, jnp.swapaxes(empty, 1, 2)), (jnp.asarray(first), jnp.asarray(second))
    )
    sums = (across + jnp.swapaxes(along, 1, 2)).reshape(-1, width + 1)[:count]
    if problem.drop_self:
        sums = fold.with_own(sums, fold.own_weights(problem))
    return fold.finish(sums, problem.beta)


def _product(weight: Float[Array, "r c"], carried: Float[Array, "c w"]) -> Float[Array, "r w"]:
    """weight @ carried, with the last column apart where one more would cost a product its speed."""
    if carried.shape[1] <= WIDE:
        return weight @ carried
    return jnp.concatenate([weight @ carried[:, :-1], weight @ carried[:, -1:]], axis=1)


def _product_of_rows(
    carried: Float[Array, "w r"], weight: Float[Array, "r c"]
) -> Float[Array, "w c"]:
    if carried.shape[0] <= WIDE:
        return carried @ weight
    return jnp.concatenate([carried[:-1] @ weight, carried[-1:] @ weight], axis=0)


def mirrored(fold: KnownPeak, problem: Problem, plain: Callable[[Problem], Array]) -> Array:
    """The sums by symmetry; derivatives, of any mode, by the plain tiles."""

    @jax.custom_jvp
    def sums(problem: Problem) -> Array:
        return mirrored_sums(fold, problem)

    @sums.defjvp
    def _(primals: tuple[Problem], tangents: tuple[Problem]) -> tuple[Array, Array]:
        return jax.jvp(plain, primals, tangents)

    return sums(problem)
