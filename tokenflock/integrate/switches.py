"""Weights that switch: the stages of a step see those of its inside, at both of its ends."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..batches import places_of
from ..dynamics import Dynamics
from ..errors import InputError
from ..runtime import Scalar, is_traced
from ..states.wrapping import Wrapping
from .clocks import Clock


class FieldTimes(eqx.Module):
    """The times t(u) at which a model is asked for its field, kept on the right side of switches."""

    clock: Clock

    # When this solve (or the step that is being made) ends, its step if that is fixed, and whether the
    # weights switch on the way.
    end: Float[Array, ""]
    step: Float[Array, ""] | None = None
    switching: bool = eqx.field(static=True, default=False)

    def time(self, u: Scalar) -> Array:
        """t(u), below the end: what starts there is not of this run."""
        t = self._exact(u)
        if self.step is None:
            return jnp.minimum(t, jnp.nextafter(self.end, -jnp.inf))
        # m * step and k * period may differ by a rounding where both mean the same moment.
        return jnp.minimum(t, self.end * (1 - 4 * jnp.finfo(t.dtype).eps)) if self.switching else t

    def rate(self, u: Scalar) -> Array:
        """dt/du."""
        return self.clock.rate(u)

    def until(self, u: Scalar) -> FieldTimes:
        """The times of a step that ends at u."""
        return eqx.tree_at(lambda times: times.end, self, self._exact(u))

    def _exact(self, u: Scalar) -> Array:
        """In fixed steps m * step, not the rounded sum of m steps, which could lie before a switch."""
        t = self.clock.time(u)
        if self.step is None:
            return t
        whole = jnp.round(t / self.step)
        return jnp.where(jnp.abs(t / self.step - whole) < 1e-6, whole * self.step, t)


class MeetingSwitches(Wrapping):
    """Any solver in fixed steps: no stage sees weights that start at the end of its step.

    A stored stage of the step before is evaluated anew. `args` has `times`. (Adaptive steps are cut at
    switches by their controller.)
    """

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> Any:
        """A step of the wrapped solver, with the times of its inside."""
        inside = eqx.tree_at(lambda args: args.times, args, args.times.until(t1))
        return self.solver.step(
            terms, t0, t1, y0, inside, solver_state, jnp.ones_like(made_jump, dtype=bool)
        )


def without_slopes(model: Dynamics) -> Dynamics:
    """The model for fixed steps: its traced switching times refuse to be differentiated by."""
    leaves = [
        _slopeless(place.leaf)
        if place.name in place.switching and is_traced(place.leaf)
        else place.leaf
        for place in places_of(model)
    ]
    return jax.tree.structure(model).unflatten(leaves)


@jax.custom_jvp
def _slopeless(times: Array) -> Array:
    """The times themselves."""
    return times


def _refuse_slopes(primals: tuple[Array], tangents: tuple[Any]) -> tuple[Array, Any]:
    """A derivative by the times would be 0, and that is not the one of the flow."""
    if not isinstance(tangents[0], jax.custom_derivatives.SymbolicZero):
        raise InputError(
            "a derivative by a switching time was asked for, of a run in fixed steps (dt, noise or Layers): "
            "they do not see by how much a switch moves, so that it would be 0. Use adaptive steps (rtol "
            "and atol), or hold the times fixed with jax.lax.stop_gradient"
        )
    return primals[0], tangents[0]


_slopeless.defjvp(_refuse_slopes, symbolic_zeros=True)
