"""solve for a Density: explicit transport, implicit diffusion, one compiled call.

The work done by the flow is integrated beside the state, so that every run can compare the change of
its free energy with the dissipation identity. A run stops where the finest scales of the discretisation
have grown: attention is an anti-diffusion, and beyond that point the numbers would look fine and be
wrong.
"""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from ..density import Density, Scheme
from ..dynamics import Dynamics, beta_axes, has_beta_batch
from ..integrate.adjoint import differentiable
from ..integrate.clocks import Clock
from ..integrate.core import Segment, StopSearch, end_of, field_times, solve_segment
from ..integrate.methods import Numerics
from ..integrate.outcome import OUTCOMES
from ..integrate.stops import Stop, rises_at_stop
from ..integrate.switches import FieldTimes
from ..observables.base import Observable
from .reading import DensitySnapshot, read, watched


class DensityPlan(eqx.Module):
    """What to solve, apart from the density: model, numerics, what to look at, when to stop."""

    model: Dynamics
    blank: Density
    scheme: Scheme
    numerics: Numerics
    clock: Clock
    observe: tuple[Observable, ...]
    stops: tuple[Stop, ...]
    jumps: Float[Array, " jumps"]
    states: bool = eqx.field(static=True)
    progress: bool = eqx.field(static=True)


class Flowing(eqx.Module):
    """What is integrated: the state, and the work int power dt done so far."""

    state: Float[Array, "*batch_and_state"]
    work: Float[Array, "*batch"]


class Context(eqx.Module):
    """The `args` of diffrax."""

    model: Dynamics
    scheme: Scheme
    times: FieldTimes
    damping: Array | None

    def transport(self, u: Any, y: Flowing) -> Flowing:
        """dy/du without the noise that is treated implicitly."""
        t, rate = self.times.time(u), self.times.rate(u)
        power = self.scheme.power(self.model, t, y.state)
        return Flowing(
            rate * self.scheme.transport(self.model, t, y.state),
            # An energy beyond the range of doubles is no reason to stop: its health report says so.
            rate * jnp.where(jnp.isfinite(power), power, 0.0),
        )

    def diffuse(self, u: Any, y: Flowing) -> Flowing:
        """The implicit part: every number decays at its own rate."""
        assert self.damping is not None
        return Flowing(-self.times.rate(u) * self.damping * y.state, jnp.zeros_like(y.work))


@eqx.filter_jit
def integrate_density(plan: DensityPlan, start: Flowing, times: Array) -> Segment:
    """Solve for every beta; a leading axis of the result is beta."""
    return differentiable(_integrate_all, plan, start, times)


def _integrate_all(
    adjoint: diffrax.AbstractAdjoint, plan: DensityPlan, start: Flowing, times: Array
) -> Segment:
    if not has_beta_batch(plan.model):
        return _integrate_one(adjoint, plan, plan.model, start, times)
    # A continued run already has the axis of betas; at the start all betas share the density.
    axis = 0 if start.state.ndim > plan.blank.state.ndim else None
    solve = eqx.filter_vmap(
        lambda model, start: _integrate_one(adjoint, plan, model, start, times),
        in_axes=(beta_axes(plan.model), axis),
    )
    return solve(plan.model, start)


def _integrate_one(
    adjoint: diffrax.AbstractAdjoint,
    plan: DensityPlan,
    model: Dynamics,
    start: Flowing,
    times: Array,
) -> Segment:
    clock = plan.clock
    scheme = plan.scheme.prepared(model)
    context = Context(model, scheme, field_times(plan, end_of(times)), scheme.damping(model))

    def look(u: Array, y: Flowing, args: Context) -> dict[str, Array]:
        return _look(plan, args, clock.time(u), y)

    start_mark = clock.inverse(times[0])
    segment = solve_segment(
        adjoint, plan, _terms(context), start, context, times, look, _event(plan, start_mark)
    )
    outcome = _outcome(plan, segment.outcome, segment.final_saved["tail"])
    return eqx.tree_at(lambda found: found.outcome, segment, outcome)


def _look(plan: DensityPlan, args: Context, t: Array, y: Flowing) -> dict[str, Array]:
    """Everything saved at one time: observables, the run's own health, and the state if asked."""
    snapshot = DensitySnapshot(t, plan.blank.at(y.state), args.scheme, args.model)
    values = {thing.name: jnp.asarray(read(thing, snapshot), dtype=float) for thing in plan.observe}
    values |= {
        name: value for name, value in watched(snapshot, y.work).items() if name not in values
    }
    if plan.states:
        values["states"] = y.state
    return values


def _terms(context: Context) -> Any:
    transport = diffrax.ODETerm(lambda u, y, args: args.transport(u, y))
    if context.damping is None:
        return transport
    return diffrax.MultiTerm(transport, diffrax.ODETerm(lambda u, y, args: args.diffuse(u, y)))


def _event(plan: DensityPlan, start: Array) -> diffrax.Event:
    def value(t: Array, y: Flowing, args: Context, **kwargs: Any) -> Array:
        density = plan.blank.at(y.state)
        snapshot = DensitySnapshot(args.times.clock.time(t), density, args.scheme, args.model)
        conditions = [read_stop(stop, snapshot) for stop in plan.stops]
        # A tail that is not finite must stop the run too.
        strain = args.scheme.strain(args.model, args.times.clock.time(t), y.state)
        lost = ~(strain <= plan.blank.on.largest_tail)
        # diffrax looks for a change of sign: a condition met from the start must change it too.
        return jnp.where(t <= start, -1.0, rises_at_stop([*conditions, lost]))

    return diffrax.Event(value, StopSearch(rtol=1e-12, atol=1e-12))


def read_stop(stop: Stop, snapshot: DensitySnapshot) -> Array:
    """A stop condition at a density: given its quadrature measure."""
    return jnp.asarray(stop(snapshot.of_tokens()))


def _outcome(plan: DensityPlan, code: Array, tail: Array) -> Array:
    """Index into `integrate.outcome.OUTCOMES`: a stop by the finest scales has names of its own."""
    stopped = code == OUTCOMES.index("stopped")
    lost = ~(tail <= 0.999 * plan.blank.on.largest_tail)
    known = OUTCOMES.index(plan.blank.on.lost_outcome)
    end = jnp.where(jnp.isnan(tail), OUTCOMES.index("non-finite"), known)
    return jnp.where(stopped & lost, end, code)


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
