"""Causal and ALiBi sums in O(n): moments of all earlier chunks, and the row's own chunk directly.

Row i of the chunk that starts at s sees the moments M(s) of the tokens before s, and the tokens of its
chunk one by one. With ALiBi (2605.09213) token j counts e^{-slope (i - j)/n} = e^{-slope (i - s)/n}
e^{-slope (s - j)/n}: M(s) decays by e^{-slope C/n} from one chunk of C tokens to the next. Every
exponent is at most 0 for slope >= 0, so nothing overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..base import Problem
from .blocks import Compensated, Rows, Tokens, as_rows, at_features, sums_of_features
from .plan import SpectralPlan, chunk_size
from .rows import coefficients, finish, pair_weights, row_features, weighted_moments


class Decay(NamedTuple):
    """Factors of the mask: inside a chunk, from a row to the start, from a token to the end, across."""

    inside: Float[Array, "c c"]
    to_start: Float[Array, " c"]
    to_end: Float[Array, " c"]
    across: Float[Array, ""]


def causal_rows(
    problem: Problem, plan: SpectralPlan, good: Bool[Array, " rows"] | None
) -> tuple[Float[Array, "rows m"], Bool[Array, " rows"]]:
    """Every row against the tokens before it: O(n (features + chunk))."""
    n = problem.keys.shape[0]
    chunk = chunk_size(n)
    tokens = Tokens.of(problem, chunk)
    shared = coefficients(problem, plan)
    decay = _decay(problem, chunk)

    @jax.checkpoint
    def visit(
        held: Compensated, block: tuple[Tokens, Rows]
    ) -> tuple[Compensated, tuple[Array, Array]]:
        tokens, rows = block
        before, features = held.value, plan.basis.features(tokens.keys)
        at_rows, scale = row_features(problem, plan, shared, rows.queries, features)
        far = at_features(weighted_moments(before, shared, plan), at_rows) * decay.to_start
        near, mass = _near_sums(problem, decay, tokens, rows.queries, scale.reference)
        # The first feature of every basis is 1, so that the moments hold the masses themselves.
        mass = mass + before[0, -1] * decay.to_start
        part = sums_of_features(features, tokens.channels() * decay.to_end)
        after = held.times(decay.across).plus(part)
        return after, finish(problem, plan, shared, scale, far + near, mass, rows.good)

    empty = Compensated.zeros((plan.basis.size, problem.values.shape[-1] + 1), tokens.keys.dtype)
    _, (out, fine) = jax.lax.scan(visit, empty, (tokens, Rows.of(problem, tokens, good, chunk)))
    # The first row of a mask without the self term sees nobody: its sum is 0, and so is ours.
    alone = not problem.mask.sees_itself
    return as_rows(out, n), fine.reshape(-1)[:n] | ((jnp.arange(n) == 0) & alone)


def _decay(problem: Problem, chunk: int) -> Decay:
    """The mask's factors as functions of places in a chunk."""
    mask, n, dtype = problem.mask, problem.keys.shape[0], problem.keys.dtype
    slope = jnp.zeros(()) if mask.decay is None else mask.decay / n
    places = jnp.arange(chunk)
    log_inside = mask.log_factor(places, places, n)
    assert log_inside is not None
    factors = (log_inside, -slope * places, -slope * (chunk - places), -slope * chunk)
    return Decay(*(jnp.exp(factor).astype(dtype) for factor in factors))


def _near_sums(
    problem: Problem,
    decay: Decay,
    tokens: Tokens,
    queries: Float[Array, "d c"],
    reference: Float[Array, "*each"],
) -> tuple[Float[Array, "m c"], Float[Array, " c"]]:
    """The rows against the tokens of their own chunk, and the masses they see there."""
    products = tokens.keys.T @ queries
    weights = pair_weights(problem, products, reference)
    seen = jnp.where(decay.inside > 0, weights.T, 0.0) * decay.inside
    carried = tokens.channels()
    others = seen * (1.0 - jnp.eye(len(seen), dtype=seen.dtype)) if problem.drop_self else seen
    total = jnp.concatenate([carried[:-1] @ others.T, (carried[-1] @ seen.T)[None]])
    return total, decay.inside @ tokens.masses
