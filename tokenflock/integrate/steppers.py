"""The vector field in diffrax's form, and the step of a discrete network."""

from __future__ import annotations

from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..observables.base import Observable
from ..runtime import Scalar
from ..states import Carried, State
from .switches import FieldTimes


class Context(eqx.Module):
    """What the vector field needs besides what moves; the `args` of diffrax."""

    state: State
    model: Dynamics
    times: FieldTimes
    # What the caller asked to integrate along the run.
    integrals: tuple[Observable, ...] = ()

    def time(self, u: Scalar) -> Array:
        """t(u) for the field; see `FieldTimes`."""
        return self.times.time(u)

    def velocity(self, u: Scalar, y: Carried) -> Carried:
        """dy/du = t'(u) v(t(u), y), and the same of every integral."""
        t = self.time(u)
        speed = Carried(self.state.velocity(self.model, t, y.moving), self.integrands(t, y.moving))
        return jax.tree.map(lambda leaf: self.times.rate(u) * leaf, speed)

    def integrands(self, t: Array, y: Any) -> dict[str, Array]:
        """The rates of the integrals: the state's own and those asked for."""
        own = {
            name: integrand(self.model, t, y)
            for name, integrand in self.state.integrands(self.model).items()
        }
        if not self.integrals:
            return own
        snapshot = self.state.snapshot(self.model, t, y)
        return own | {thing.name: _as_float(thing(snapshot)) for thing in self.integrals}


def _as_float(value: Array) -> Array:
    return jnp.asarray(value, dtype=float)


def drift(u: Scalar, y: Carried, context: Context) -> Carried:
    """The vector field in diffrax's form."""
    return context.velocity(u, y)


class LayerStepper(diffrax.AbstractItoSolver):
    """One layer of a discrete network per step: x <- N(x + step A(x)), or the scheme's own layer.

    Integrals along the run are sums over layers: step times the integrand where the layer starts.
    """

    step_size: Float[Array, ""]
    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Any] = diffrax.LocalLinearInterpolation

    def order(self, terms: Any) -> int:
        """Order 1 as an approximation of the flow, with another clock."""
        return 1

    def strong_order(self, terms: Any) -> float:
        """As Euler-Maruyama."""
        return 0.5

    def init(self, terms: Any, t0: Any, t1: Any, y0: Carried, args: Context) -> None:
        """No memory between layers."""
        return None

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Carried,
        args: Context,
        solver_state: None,
        made_jump: Any,
    ) -> tuple[Carried, None, Any, None, Any]:
        """One layer, then the noise of its duration."""
        t = args.time(t0)
        moving = args.state.layer(args.model, t, y0.moving, self.step_size)
        if isinstance(terms, diffrax.MultiTerm):
            increment = terms.terms[1].contr(t0, t1)
            moving = args.state.kicked(args.model, t, moving, increment)
        rates = args.integrands(t, y0.moving)
        y1 = Carried(
            moving, {name: y0.integrals[name] + self.step_size * rates[name] for name in rates}
        )
        return y1, None, {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms: Any, t0: Any, y0: Carried, args: Context) -> Carried:
        """The velocity of the flow."""
        return args.velocity(t0, y0)
