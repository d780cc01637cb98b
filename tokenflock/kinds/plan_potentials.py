"""The potentials of doubly stochastic attention, with derivatives in both directions.

The plan P_ij = e^{s_ij + f_i + g_j} has the marginals w (2110.11773). ott-jax finds f and g; it can be
differentiated backwards only, so the derivative is stated here, by the implicit function theorem: with
the marginals F(theta, f, g) = (sum_j P_ij, sum_i P_ij) - (w_i, w_j) = 0,

    [ diag w   P      ] [f']
    [ P^T      diag w ] [g']  =  -(d/dtheta) F theta',

a symmetric positive semidefinite system whose kernel (1, -1) changes no plan. Conjugate gradients need
its action alone, O(n^2) operations in the memory of one evaluation of the marginals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array, Float

# Far below the accuracy of the potentials themselves.
SMALLEST_RESIDUAL = 1e-13
MOST_ITERATIONS = 1000


class Potentials(NamedTuple):
    """f, g, and 1 where they were found, 0 where the iterations ran out."""

    f: Float[Array, " n"]
    g: Float[Array, " n"]
    converged: Float[Array, ""]


Marginals = Callable[[Any, Array, Array], tuple[Array, Array]]


def implicit_potentials(
    find: Callable[[Any], Potentials], marginals: Marginals, theta: tuple[Array, ...]
) -> Potentials:
    """find(theta), differentiable in theta where marginals(theta, f, g) = (0, 0); theta ends with w."""

    @jax.custom_jvp
    def potentials(theta: Any) -> Potentials:
        return find(theta)

    @potentials.defjvp
    def _(primals: Any, tangents: Any) -> tuple[Potentials, Potentials]:
        (theta,), (change,) = primals, tangents
        found = potentials(theta)
        pair = (found.f, found.g)
        _, push = jax.jvp(lambda given: marginals(given, *pair), (theta,), (change,))

        def action(turn: tuple[Array, Array]) -> tuple[Array, Array]:
            return jax.jvp(lambda f, g: marginals(theta, f, g), pair, turn)[1]

        shapes = jax.eval_shape(lambda: pair)
        symmetric = lx.positive_semidefinite_tag
        scaled = lx.FunctionLinearOperator(
            lambda residual: jax.tree.map(lambda part: part / theta[-1], residual),
            shapes,
            symmetric,
        )
        turned = lx.linear_solve(
            lx.FunctionLinearOperator(action, shapes, symmetric),
            jax.tree.map(jnp.negative, push),
            lx.CG(rtol=SMALLEST_RESIDUAL, atol=SMALLEST_RESIDUAL, max_steps=MOST_ITERATIONS),
            options={"preconditioner": scaled},
            throw=False,
        ).value
        return found, Potentials(turned[0], turned[1], jnp.zeros_like(found.converged))

    return potentials(theta)
