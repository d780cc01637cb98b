"""The series at a block of rows: features, weights of single pairs, and the output with its bound."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...kinds import safe_divide
from ..base import Problem
from . import series
from .plan import SpectralPlan
from .products import monomials

# Arguments are compared with the range of a series up to their own rounding.
SLACK = 1.0 + 1e-9


class Coefficients(NamedTuple):
    """Coefficients that all rows share; none where each row has its own argument."""

    values: Float[Array, " degrees"] | None
    # Scaled sums hold e^{a beta <q, k> - reference}.
    reference: Float[Array, ""] | None
    # Bound of the errors of the sums over mass times largest weight.
    error: Float[Array, ""]


class Scale(NamedTuple):
    """What the sums of a block of rows are scaled by, and where the series holds."""

    reference: Float[Array, "*each"]
    in_range: Bool[Array, "*any"]


def coefficients(problem: Problem, plan: SpectralPlan) -> Coefficients:
    """The coefficients of a problem's kind, as far as they do not depend on the row."""
    factor = problem.kind.exponent
    if factor is None:
        return _computed(problem, plan)
    error = jnp.asarray(plan.error, problem.beta.dtype)
    if not (problem.own_keys or plan.polynomial):
        return Coefficients(None, None, error)
    argument = factor * problem.beta * plan.radius
    law = series.law(argument, plan.d, plan.basis.degree, plan.top)
    return Coefficients(_in_basis(law, plan), argument, error)


def _computed(problem: Problem, plan: SpectralPlan) -> Coefficients:
    found, left_out, largest = series.computed(
        problem.kind, problem.beta, plan.radius, plan.d, plan.basis.degree
    )
    found = _in_basis(found, plan)
    # The quadrature rounds as well: by about (2 degree + 1) / 2 units in the coefficients of S^2.
    error = left_out + 4.0 * plan.rounding * jnp.sum(jnp.abs(found))
    error = error / jnp.where(largest > 0, largest, 1.0)
    return Coefficients(found, jnp.zeros_like(problem.beta), error)


def _in_basis(found: Float[Array, " degrees"], plan: SpectralPlan) -> Float[Array, " degrees"]:
    """Coefficients of the polynomials that the groups of features sum to."""
    if not plan.polynomial:
        return found
    return found @ jnp.asarray(monomials(plan.basis.degree), found.dtype)


def weighted_moments(
    held: Float[Array, "*b f m"], shared: Coefficients, plan: SpectralPlan
) -> Array:
    """Moments times the coefficients that all rows share."""
    return held if shared.values is None else shared.values[plan.basis.groups, None] * held


def shared_scale(
    problem: Problem, plan: SpectralPlan, shared: Coefficients, queries: Float[Array, "d c"]
) -> Scale:
    """The scale of rows whose coefficients are shared."""
    assert shared.reference is not None
    in_range = shared.reference <= SLACK * plan.span
    if plan.polynomial and plan.bounded and not problem.own_keys:
        in_range = in_range & (jnp.sum(queries**2, axis=0) <= SLACK * plan.radius**2)
    return Scale(shared.reference, in_range)


def row_features(
    problem: Problem,
    plan: SpectralPlan,
    shared: Coefficients,
    queries: Float[Array, "d c"],
    of_keys: Float[Array, "f c"] | None = None,
) -> tuple[Float[Array, "f c"], Scale]:
    """The features of rows, times their own coefficients where they have some.

    `of_keys` are the features of the tokens of the same numbers, to use again where queries are keys.
    """
    if shared.reference is None:
        return _own_law(problem, plan, queries)
    scale = shared_scale(problem, plan, shared, queries)
    if of_keys is not None and problem.own_keys:
        return of_keys, scale
    return plan.basis.features(queries / plan.radius), scale


def _own_law(
    problem: Problem, plan: SpectralPlan, queries: Float[Array, "d c"]
) -> tuple[Array, Scale]:
    factor = problem.kind.exponent
    assert factor is not None
    lengths, directions = _polar(queries)
    arguments = factor * problem.beta * lengths
    law = series.law(arguments, plan.d, plan.basis.degree, plan.top)
    features = law[plan.basis.groups] * plan.basis.features(directions)
    return features, Scale(arguments, arguments <= SLACK * plan.span)


def _polar(queries: Float[Array, "d c"]) -> tuple[Array, Array]:
    """Lengths and directions; a query of length 0 weighs all keys alike in any direction."""
    squares = jnp.sum(queries**2, axis=0)
    nowhere = squares == 0
    lengths = jnp.sqrt(jnp.where(nowhere, 1.0, squares))
    north = jnp.zeros_like(queries).at[0].set(1.0)
    return jnp.where(nowhere, 0.0, lengths), jnp.where(nowhere, north, queries / lengths)


def pair_weights(
    problem: Problem, products: Float[Array, "r c"], reference: Array
) -> Float[Array, "r c"]:
    """The scaled weights of pairs with given <q_i, k_j>."""
    factor = problem.kind.exponent
    if factor is not None:
        return jnp.exp(factor * problem.beta * products - reference)
    return problem.kind.weight(problem.beta * products, problem.beta)


def finish(
    problem: Problem,
    plan: SpectralPlan,
    shared: Coefficients,
    scale: Scale,
    total: Float[Array, "m c"],
    mass: Float[Array, "*each"],
    good: Bool[Array, " c"] | None,
) -> tuple[Float[Array, "m-1 c"], Bool[Array, " c"]]:
    """The output of the kind from scaled sums, 0 where it may be off by more than tol; and where not."""
    if good is None:
        good = _within_bound(problem, plan, shared, scale, total[-1], mass)
    kind = problem.kind
    if kind.averages:
        out = safe_divide(total[:-1], jnp.where(good, total[-1], 1.0))
    else:
        out = kind.speed(problem.beta) * safe_divide(total[:-1], jnp.where(good, mass, 1.0))
        if kind.exponent is not None:
            out = out * jnp.exp(scale.reference - kind.shift(problem.beta))
    return jnp.where(good, out, 0.0), good


def _within_bound(
    problem: Problem,
    plan: SpectralPlan,
    shared: Coefficients,
    scale: Scale,
    partition: Float[Array, " c"],
    mass: Float[Array, "*each"],
) -> Bool[Array, " c"]:
    """Rows whose own bound is at most tol.

    Softmax: both sums are off by at most error * mass, so their quotient by 2 error mass / Z, in units
    of max |v|. Other kinds divide by the mass, which is exact.
    """
    # The derivative of a quotient holds 1/Z^2, which must not overflow.
    sees = mass > jnp.finfo(partition.dtype).tiny ** 0.4
    if problem.kind.averages:
        close = 2.0 * shared.error * mass <= plan.tol * partition
    else:
        close = shared.error <= plan.tol
    return jnp.broadcast_to(close & sees & scale.in_range, partition.shape)
