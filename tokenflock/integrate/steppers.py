"""How a step is made: any diffrax solver followed by a retraction, or one layer of a discrete network.

Also the cluster-reduced step, which merges tokens that have come within a radius of each other.
"""

from __future__ import annotations

from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Clusters, Dynamics, State
from ..errors import require
from ..graph import component_labels
from ..measure import Measure
from ..reduce import Reduction
from ..runtime import Scalar
from .switches import FieldTimes
from .wrapping import Wrapping

Carry = Any


class Context(eqx.Module):
    """What the vector field needs besides the state; the `args` of diffrax."""

    model: Dynamics
    measure: Measure
    reduction: Reduction
    times: FieldTimes

    def time(self, u: Scalar) -> Array:
        """t(u) for the field; see `FieldTimes`."""
        return self.times.time(u)

    def velocity(self, u: Scalar, state: State) -> State:
        """dy/du = t'(u) v(t(u), y)."""
        speed = self.model.velocity(self.time(u), state, self.measure, self.reduction)
        return jax.tree.map(lambda leaf: self.times.rate(u) * leaf, speed)


def drift(u: Scalar, state: State, context: Context) -> State:
    """The vector field in diffrax's form."""
    return context.velocity(u, state)


class NoiseTerm(diffrax.AbstractTerm):
    """P_x (amplitude dW): a diffusion on the space driven by a Brownian path."""

    path: diffrax.AbstractBrownianPath

    def vf(self, t: Array, y: State, args: Context) -> tuple[State, Context, Array]:
        return y, args, jnp.asarray(t)

    def contr(self, t0: Array, t1: Array, **kwargs: Any) -> Array:
        return self.path.evaluate(t0, t1)

    def prod(self, vf: tuple[State, Context, Array], control: Array) -> State:
        state, context, t = vf
        t = context.time(t)
        return context.model.displacement(t, state, context.measure, control, context.reduction)


class Merge(eqx.Module):
    """Cluster-reduced flow: tokens within `radius` become one token with their total mass.

    Exact for coincident tokens. A merged token keeps moving with its cluster, so observables see all
    n tokens; only the sums change. Removes the stiffness of tight clusters (rate 1 inside, e^{-c beta}
    between), so that plateaus of length e^{c beta} cost a few steps (2410.06833).
    """

    radius: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(self.radius > 0, f"the merge radius must be positive, got {self.radius}")

    def __call__(self, state: State, measure: Measure) -> tuple[State, Array]:
        """The merged state, and whether anything merged."""
        assert state.clusters is not None
        near = measure.space.distance(state.points[:, None], state.points[None]) <= self.radius
        # Merged tokens sit exactly on their owner, so they stay in its component.
        labels = component_labels(near)
        n = labels.size
        masses = jax.ops.segment_sum(state.clusters.masses, labels, n)
        moment = jax.ops.segment_sum(state.clusters.masses[:, None] * state.points, labels, n)
        centre = measure.space.retract(moment / jnp.where(masses > 0, masses, 1.0)[:, None])
        owners = labels.astype(state.points.dtype)
        merged = State(centre[labels], state.radii, Clusters(masses, owners))
        changed = jnp.any(owners != state.clusters.owners)
        return _choose(changed, merged, state), changed


def _choose(condition: Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


class Retracted(Wrapping):
    """Any solver, then the nearest point of the space; then, if asked, a merge.

    The field is evaluated at retracted points, so f(y) = f(N(y)): first-same-as-last stages stay valid
    and the order of the solver is kept. After a merge the solver forgets its stored stage.
    """

    merge: Merge | None = None

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: State,
        args: Context,
        solver_state: Carry,
        made_jump: Any,
    ) -> tuple[State, Any, Any, Carry, Any]:
        """One step of the wrapped solver, retracted."""
        y1, error, dense, carry, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        y1 = eqx.tree_at(lambda y: y.points, y1, args.measure.space.retract(y1.points))
        if self.merge is not None:
            y1, changed = self.merge(y1, args.measure)
            fresh = self.solver.init(terms, t1, t1, y1, args)
            carry = _choose(changed, fresh, carry)
        return y1, error, dense, carry, result


class LayerStepper(diffrax.AbstractItoSolver):
    """One layer of a discrete network per step: x <- N(x + step A(x)), or the scheme's own layer."""

    step_size: Float[Array, ""]
    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Any] = diffrax.LocalLinearInterpolation

    def order(self, terms: Any) -> int:
        """Order 1 as an approximation of the flow, with another clock."""
        return 1

    def strong_order(self, terms: Any) -> float:
        """As Euler-Maruyama."""
        return 0.5

    def init(self, terms: Any, t0: Any, t1: Any, y0: State, args: Context) -> None:
        """No memory between layers."""
        return None

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: State,
        args: Context,
        solver_state: None,
        made_jump: Any,
    ) -> tuple[State, None, Any, None, Any]:
        """One layer, then the noise of its duration."""
        t = args.time(t0)
        y1 = args.model.layer(t, y0, args.measure, self.step_size, args.reduction)
        if isinstance(terms, diffrax.MultiTerm):
            increment = terms.terms[1].contr(t0, t1)
            kick = args.model.displacement(t, y1, args.measure, increment, args.reduction)
            points = args.measure.space.retract(y1.points + kick.points)
            y1 = eqx.tree_at(lambda y: y.points, y1, points)
        return y1, None, {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms: Any, t0: Any, y0: State, args: Context) -> State:
        """The velocity of the flow."""
        return args.velocity(t0, y0)
