"""Fixed steps, taken again at half their length where their result cannot be one of the equation.

A fixed step that jumps over a pole lands on numbers that say nothing of where it was: infinities, or a
measure that is none. Halved until it does not, it ends before the pole, by the run's own criterion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..runtime import Scalar

# refuses(limit, t0, t1, y0, y1, args): whether the step from y0 at t0 to y1 at t1 is to be taken again.
Refusal = Callable[[float, Scalar, Scalar, Any, Any, Any], Array]
# Steps of so many roundings of the time are halved no more.
ROUNDINGS = 64


class Halving(diffrax.AbstractStepSizeController):
    """The steps of `fixed` until one is refused; from there on that step, halved at every refusal."""

    # A function of a module, not made anew for a run: compiled programs are found again by it.
    refuses: Refusal = eqx.field(static=True)
    limit: float = eqx.field(static=True)
    fixed: diffrax.ConstantStepSize = diffrax.ConstantStepSize()

    def wrap(self, direction: Any) -> Halving:
        return self

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        dt0: Any,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> Any:
        end, state = self.fixed.init(terms, t0, t1, y0, dt0, args, func, error_order)
        # 0: no step has been refused.
        return end, (state, jnp.zeros_like(end))

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Any,
        y1_candidate: Any,
        args: Any,
        y_error: Any,
        error_order: Any,
        controller_state: Any,
    ) -> Any:
        inner, step = controller_state
        _, _, planned, jumped, inner, result = self.fixed.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        length = t1 - t0
        shortest = ROUNDINGS * jnp.finfo(jnp.result_type(length)).eps * jnp.abs(t1)
        kept = (length <= shortest) | ~self.refuses(self.limit, t0, t1, y0, y1_candidate, args)
        step = jnp.where(kept, step, length / 2)
        start = jnp.where(kept, t1, t0)
        end = jnp.where(step > 0, start + step, planned)
        return kept, start, end, jumped, (inner, step), result
