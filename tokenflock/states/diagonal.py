"""Implicit steps whose equations do not couple: each number has its own."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx


class DiagonalSolve(optx.AbstractRootFinder):
    """The root of an affine function whose Jacobian is diagonal: y - f(y)/f'(y), exact in one step.

    What implicit stages of the diffusion ask for: each coefficient decays at its own rate.
    """

    rtol: float = 1e-3
    atol: float = 1e-3
    norm: Any = eqx.field(static=True, default=optx.max_norm)

    def init(
        self, fn: Any, y: Any, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any
    ) -> Any:
        return jnp.zeros((), bool)

    def step(self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any) -> Any:
        ones = jax.tree.map(jnp.ones_like, y)
        value, slope = jax.jvp(lambda point: fn(point, args)[0], (y,), (ones,))
        new = jax.tree.map(lambda point, v, s: point - v / s, y, value, slope)
        return new, jnp.ones((), bool), None

    def terminate(
        self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any
    ) -> tuple[Any, optx.RESULTS]:
        return state, optx.RESULTS.successful

    def postprocess(
        self, fn: Any, y: Any, aux: Any, args: Any, options: Any, state: Any, tags: Any, result: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        return y, aux, {}
