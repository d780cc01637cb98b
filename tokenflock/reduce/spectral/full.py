"""Sums over all tokens: moments of the keys in blocks, then the series at every row, in blocks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..base import Problem
from .blocks import Compensated, Rows, Tokens, as_rows, at_features, sums_of_features
from .plan import SpectralPlan
from .rows import (
    Scale,
    coefficients,
    finish,
    pair_weights,
    row_features,
    shared_scale,
    weighted_moments,
)
from .transforms import transformed_moments, transformed_sums


def full_rows(
    problem: Problem, plan: SpectralPlan, good: Bool[Array, " rows"] | None
) -> tuple[Float[Array, "rows m"], Bool[Array, " rows"]]:
    """Every row against every token: O((n + rows) features), one block of features at a time."""
    count = problem.queries.shape[0]
    tokens = Tokens.of(problem, plan.block)
    rows = Rows.of(problem, tokens, good, plan.block)
    shared = coefficients(problem, plan)
    held = transformed_moments(tokens, plan) if plan.transform else moments(tokens, plan)
    held = weighted_moments(held, shared, plan)
    mass = jnp.sum(tokens.masses)

    def close(rows: Rows, scale: Scale, total: Array) -> tuple[Array, Array]:
        if rows.own is not None:
            own = own_terms(problem, rows.queries, rows.own, scale.reference)
            total = total.at[:-1].add(-own)
        return finish(problem, plan, shared, scale, total, mass, rows.good)

    @jax.checkpoint
    def block_rows(rows: Rows) -> tuple[Array, Array]:
        features, scale = row_features(problem, plan, shared, rows.queries)
        return close(rows, scale, at_features(held, features))

    def transformed_rows(rows: Rows, total: Array) -> tuple[Array, Array]:
        return close(rows, shared_scale(problem, plan, shared, rows.queries), total)

    if plan.transform and shared.values is not None:
        totals = transformed_sums(held, rows.queries, plan)
        out, fine = jax.vmap(transformed_rows)(rows, totals)
    else:
        out, fine = jax.lax.map(block_rows, rows)
    return as_rows(out, count), fine.reshape(-1)[:count]


def own_terms(problem: Problem, queries: Array, own: Tokens, reference: Array) -> Array:
    """w_i f(<q_i, k_i>) v_i of every row, which is the token of the same number."""
    products = jnp.sum(queries * own.keys, axis=0)[None]
    return own.masses * pair_weights(problem, products, reference) * own.values


def moments(tokens: Tokens, plan: SpectralPlan) -> Float[Array, "f m"]:
    """M_f = sum_j w_j f(k_j) [v_j, 1]: the last column is the partition's."""

    @jax.checkpoint
    def block_moments(block: Tokens) -> Array:
        return sums_of_features(plan.basis.features(block.keys), block.channels())

    def add(held: Compensated, block: Tokens) -> tuple[Compensated, None]:
        return held.plus(block_moments(block)), None

    shape = plan.basis.size, tokens.values.shape[1] + 1
    return jax.lax.scan(add, Compensated.zeros(shape, tokens.keys.dtype), tokens)[0].value
