"""The series where its bound holds, the direct sum of the row where it does not, and derivatives of both.

Bad rows are found at run time and summed in blocks by a while loop: no bad row, no cost (a `lax.cond`
would run both branches under vmap).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...kinds import Carry
from ..base import Problem
from .blocks import cut, unit
from .causal import causal_rows
from .full import full_rows
from .plan import SpectralPlan

# Rows of one direct sum, and columns of one tile of it.
ROWS, COLUMNS = 128, 2048


def series_rows(
    problem: Problem, plan: SpectralPlan, good: Bool[Array, " rows"] | None = None
) -> tuple[Float[Array, "rows m"], Bool[Array, " rows"]]:
    """The sums of the series, 0 on rows where they may be off by more than tol; and where they are not."""
    rows = full_rows if problem.mask.sees_all else causal_rows
    return rows(problem, plan, good)


@eqx.filter_custom_vjp
def spectral_rows(problem: Problem, plan: SpectralPlan) -> Float[Array, "rows m"]:
    """The sums of every row, each within the plan's tolerance."""
    out, good = series_rows(problem, plan)
    return _with_direct_rows(problem, out, good)


@spectral_rows.def_fwd
def _forward(perturbed: Any, problem: Problem, plan: SpectralPlan) -> tuple[Array, Array]:
    out, good = series_rows(problem, plan)
    return _with_direct_rows(problem, out, good), good


@spectral_rows.def_bwd
def _backward(
    good: Array, cotangent: Array, perturbed: Any, problem: Problem, plan: SpectralPlan
) -> Any:
    numbers, rest = eqx.partition(problem, eqx.is_inexact_array)
    plan = dataclasses.replace(plan, transform=None)

    def smooth(numbers: Problem) -> Array:
        return series_rows(eqx.combine(numbers, rest), plan, good)[0]

    def add(total: Problem, rows: Array) -> Problem:
        def direct(numbers: Problem) -> Array:
            return direct_rows(eqx.combine(numbers, rest), rows)

        share = jnp.take(cotangent, rows, axis=0, mode="fill", fill_value=0.0)
        part = jax.vjp(direct, numbers)[1](share)[0]
        return jax.tree.map(jnp.add, total, part)

    return _over_bad_rows(add, jax.vjp(smooth, numbers)[1](cotangent)[0], good)


def _with_direct_rows(problem: Problem, out: Array, good: Array) -> Array:
    def put(out: Array, rows: Array) -> Array:
        return out.at[rows].set(direct_rows(problem, rows), mode="drop")

    return _over_bad_rows(put, out, good)


def _over_bad_rows(step: Any, start: Any, good: Bool[Array, " rows"]) -> Any:
    """`step(state, rows)` for blocks of bad rows, filled up with the number of rows."""
    size = min(ROWS, good.size)

    def visit(carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, left = carry
        rows = jnp.nonzero(left, size=size, fill_value=good.size)[0]
        return step(state, rows), left.at[rows].set(False, mode="drop")

    return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), visit, (start, ~good))[0]


def direct_rows(problem: Problem, rows: Int[Array, " r"]) -> Float[Array, "r m"]:
    """The sums of some rows over all tokens, in tiles, by the fold of the kind itself."""
    kind = problem.kind.fold()
    assert kind is not None
    n = problem.keys.shape[0]
    size = min(COLUMNS, n)
    queries = problem.queries[jnp.minimum(rows, problem.queries.shape[0] - 1)]
    queries = unit(queries.T).T if problem.own_keys else queries

    @jax.checkpoint
    def absorb(carry: Carry, tile: tuple[Array, ...]) -> Carry:
        keys, values, log_weights, places = tile
        scores = kind.scores(queries, unit(keys.T).T, problem.beta)
        log_mass = problem.block_log_mass(rows, places, log_weights)
        keep = problem.keep(rows, places)
        return kind.absorb(carry, scores, log_mass, values, problem.beta, keep)

    tiles = (
        cut(problem.keys, size, fill=1.0),
        cut(problem.values, size),
        cut(problem.log_weights, size, fill=-jnp.inf),
        cut(jnp.arange(n), size, fill=n),
    )
    carry = kind.start(rows.size, problem.values.shape[-1], problem.values.dtype)
    carry, _ = jax.lax.scan(lambda carry, tile: (absorb(carry, tile), None), carry, tiles)
    return kind.finish(carry, problem.beta)
