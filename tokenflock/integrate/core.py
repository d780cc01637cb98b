"""The compiled solve: one call of diffrax for a whole batch of models and of samples."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from ..batches import batch_axis, batch_in_axes
from ..dynamics import Dynamics
from ..observables.base import Observable
from ..outcomes import OUTCOMES
from ..runtime import is_traced
from ..states import Carried, State, value_shape
from .adjoint import differentiable, with_stages_for
from .clocks import Clock
from .numerics import Numerics
from .progress import RichProgressMeter
from .reverse import Adjoint
from .steppers import Context, LayerStepper, drift
from .stops import Stop, rises_at_stop
from .switches import FieldTimes, MeetingSwitches
from .unchecked import unchecked


class Plan(eqx.Module):
    """What to solve, apart from the numbers at t = 0: model, numerics, what to look at, when to stop."""

    model: Dynamics
    # Blank: how what moves is held.
    state: State
    numerics: Numerics
    clock: Clock
    observe: tuple[Observable, ...]
    integrals: tuple[Observable, ...]
    stops: tuple[Stop, ...]
    adjoint: Adjoint
    jumps: Float[Array, " jumps"]
    key: Array
    # End of the whole run: the Brownian path must not depend on how a run is cut into segments.
    horizon: Float[Array, ""]
    # Number of samples, along the axis after that of the models; None for a single one.
    samples: int | None = eqx.field(static=True)
    keep_states: bool = eqx.field(static=True)
    progress: bool = eqx.field(static=True)

    @property
    def lead_shape(self) -> tuple[int, ...]:
        """Sizes of the batch axes of what moves: models, then samples."""
        models = batch_axis(self.model)
        samples = () if self.samples is None else (self.samples,)
        return (() if models is None else (models.size,)) + samples

    def start(self, state: State) -> Carried:
        """What moves at t = 0: `state` with its numbers, in the axes of models and samples."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(self.state.integrands(self.model), ())
        for thing in self.integrals:
            shapes[thing.name] = value_shape(state, thing, self.model).shape
        lead, moving = self.lead_shape, state.begin(self.model)
        zeros = {name: jnp.zeros((*lead, *shape)) for name, shape in shapes.items()}
        models = lead[: len(lead) - (self.samples is not None)]
        return Carried(
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*models, *leaf.shape)), moving), zeros
        )


class Segment(eqx.Module):
    """What comes back from one solve over the save times; arrays of JAX, or of numpy once on the host."""

    times: Any  # (*batch, time)
    saved: dict[str, Any]
    final: Any  # what moved: a Carried
    final_time: Any  # (*batch)
    final_saved: dict[str, Any]
    outcome: Any  # (*batch), an index into outcomes.OUTCOMES
    stats: dict[str, Any]

    def _at_rest(self) -> Segment:
        """Rows after a stop hold where the run stopped, and NaN where it failed.

        Inside a transformation rows cannot be left out, and nobody can be told of a failure.
        """
        missing, axis = jnp.isinf(self.times), self.times.ndim - 1
        ended = self.outcome <= OUTCOMES.index("stopped")

        def rest(rows: Array, last: Array) -> Array:
            end = jnp.where(widened(ended, last), last, jnp.nan)
            return jnp.where(widened(missing, rows), jnp.expand_dims(end, axis), rows)

        saved = {name: rest(rows, self.final_saved[name]) for name, rows in self.saved.items()}
        times = rest(self.times, self.final_time)
        return eqx.tree_at(lambda part: (part.times, part.saved), self, (times, saved))

    def first_rows(self, count: int, split: bool = False) -> Segment:
        """The rows that were asked for, without those that fill it up (see `save.filled`).

        On the host, unless traced or split over devices: there no number of rows needs compiled programs
        of its own.
        """
        found = self._at_rest() if is_traced(self) else self if split else jax.device_get(self)
        cut = (slice(None),) * (found.times.ndim - 1) + (slice(count),)
        times, saved = jax.tree.map(lambda rows: rows[cut], (found.times, found.saved))
        return eqx.tree_at(lambda part: (part.times, part.saved), found, (times, saved))


def widened(mask: Array, like: Array) -> Array:
    """A mask over leading axes, for arrays that have more."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))


def look(plan: Plan, context: Context, t: Array, y: Carried) -> dict[str, Array]:
    """Everything saved at one time: observables, the run's own health, integrals, and the state if asked."""
    state, model = context.state, context.model
    snapshot = state.snapshot(model, t, y.moving)
    # diffrax fills what comes after an early end with infinity, so counts travel as floats.
    values = {thing.name: jnp.asarray(thing(snapshot), dtype=float) for thing in plan.observe}
    watched = state.watched(model, t, y.moving)
    values |= {name: value for name, value in watched.items() if name not in values}
    return values | y.integrals | state.rows(y.moving, plan.keep_states)


def integrate_one(
    adjoint: diffrax.AbstractAdjoint,
    plan: Plan,
    model: Dynamics,
    start: Carried,
    times: Array,
    key: Array,
) -> Segment:
    """Solve one member of a batch over the given save times."""
    state = plan.state.prepared(model)
    context = Context(state, model, field_times(plan, end_of(times)), plan.integrals)
    segment = solve_segment(adjoint, plan, context, start, times, _terms(plan, context, key))
    outcome = state.ended(segment.outcome, segment.final_saved)
    # A stop inside a step leaves an interpolated state, which is not quite on the space.
    final = Carried(state.retracted(segment.final.moving), segment.final.integrals)
    return eqx.tree_at(lambda found: (found.outcome, found.final), segment, (outcome, final))


def field_times(plan: Plan, end: Array) -> FieldTimes:
    """The times a plan's model is asked for its field, in a solve until `end`."""
    return FieldTimes(plan.clock, end, plan.numerics.dt0, plan.jumps.size > 0)


def end_of(times: Array) -> Array:
    """The last save time; infinite ones only fill up a row (see `save.filled`)."""
    return jnp.max(times, initial=-jnp.inf, where=jnp.isfinite(times))


def solve_segment(
    adjoint: diffrax.AbstractAdjoint,
    plan: Plan,
    context: Context,
    start: Carried,
    times: Array,
    terms: Any,
) -> Segment:
    """One call of diffrax over the save times."""
    clock, numerics = plan.clock, plan.numerics

    def seen(u: Array, y: Carried, args: Context) -> dict[str, Array]:
        return look(plan, args, clock.time(u), y)

    def end(u: Array, y: Carried, args: Context) -> tuple[Carried, Array, dict[str, Array]]:
        return y, clock.time(u), seen(u, y, args)

    marks = clock.inverse(times)
    first, last_mark = marks[0], end_of(marks)
    with unchecked():
        solution = diffrax.diffeqsolve(
            terms,
            with_stages_for(_stepper(plan), adjoint),
            t0=first,
            t1=last_mark,
            dt0=None if numerics.dt0 is None else _whole_steps(numerics.dt0, last_mark - first),
            y0=start,
            args=context,
            saveat=diffrax.SaveAt(
                subs=[diffrax.SubSaveAt(ts=marks, fn=seen), diffrax.SubSaveAt(t1=True, fn=end)]
            ),
            stepsize_controller=_controller(plan),
            event=_event(plan, context, first),
            max_steps=numerics.max_steps,
            throw=False,
            progress_meter=RichProgressMeter() if plan.progress else diffrax.NoProgressMeter(),
            adjoint=adjoint,
        )
    assert solution.ts is not None
    assert solution.ys is not None
    saved, last = solution.ys
    final, final_time, final_saved = jax.tree.map(lambda leaf: leaf[-1], last)
    return Segment(
        times=clock.time(solution.ts[0]),
        saved=saved,
        final=final,
        final_time=final_time,
        final_saved=final_saved,
        outcome=_outcome(solution),
        stats={name: jnp.asarray(solution.stats[name]) for name in COUNTERS},
    )


DIFFRAX_RESULTS = (
    diffrax.RESULTS.successful,
    diffrax.RESULTS.event_occurred,
    diffrax.RESULTS.max_steps_reached,
    diffrax.RESULTS.dt_min_reached,
)
COUNTERS = ("num_steps", "num_accepted_steps", "num_rejected_steps")


def _outcome(solution: diffrax.Solution) -> Array:
    """Index into `outcomes.OUTCOMES`."""
    code = jnp.full((), len(DIFFRAX_RESULTS))
    for index, known in enumerate(DIFFRAX_RESULTS):
        code = jnp.where(solution.result == known, index, code)
    if solution.event_mask is None:
        return code
    # The search for the time of a stop ends at the resolution of the clock, which diffrax counts as
    # a failed root search; the stop has happened all the same.
    stopped = jnp.any(jnp.asarray(jax.tree.leaves(solution.event_mask)))
    return jnp.where(stopped, DIFFRAX_RESULTS.index(diffrax.RESULTS.event_occurred), code)


def _whole_steps(dt: Array, span: Array) -> Array:
    """The step, moved by rounding alone so that a span of whole steps has no sliver at its end."""
    count = jnp.round(span / dt)
    whole = (count >= 1) & (jnp.abs(span / dt - count) < 1e-6)
    return jnp.where(whole, span / jnp.maximum(count, 1), dt)


def _terms(plan: Plan, context: Context, key: Array) -> Any:
    deterministic = diffrax.ODETerm(drift)  # pyright: ignore[reportArgumentType]

    def brownian(shape: jax.ShapeDtypeStruct) -> diffrax.AbstractPath:
        dt = plan.numerics.dt0
        assert dt is not None
        with unchecked():
            return diffrax.VirtualBrownianTree(0.0, plan.horizon, tol=dt / 4, shape=shape, key=key)

    extra = context.state.extra_terms(context.model, brownian)
    return diffrax.MultiTerm(deterministic, *extra) if extra else deterministic


def _stepper(plan: Plan) -> diffrax.AbstractSolver:
    fixed = plan.numerics.dt0 is not None
    stepper = plan.numerics.stepper
    return MeetingSwitches(stepper) if fixed and plan.jumps.size > 0 else stepper


def _controller(plan: Plan) -> diffrax.AbstractStepSizeController:
    if plan.jumps.size == 0 or not isinstance(plan.numerics.controller, diffrax.PIDController):
        return plan.numerics.controller
    return diffrax.ClipStepSizeController(
        plan.numerics.controller, jump_ts=plan.clock.inverse(plan.jumps)
    )


def _event(plan: Plan, context: Context, start: Array) -> diffrax.Event | None:
    """The end of a run: a stop that was asked for, or a state that no longer means anything."""

    def value(t: Array, y: Carried, args: Context, **kwargs: Any) -> Array:
        snapshot = args.state.snapshot(args.model, plan.clock.time(t), y.moving)
        conditions = [jnp.asarray(stop(snapshot)) for stop in plan.stops]
        if args.state.may_be_lost:
            conditions.append(args.state.lost(args.model, plan.clock.time(t), y.moving))
        reached = rises_at_stop(conditions)
        # diffrax looks for a change of sign: a condition met from the start must change it too.
        return jnp.where(t <= start, -1.0, reached)

    if not plan.stops and not context.state.may_be_lost:
        return None
    if isinstance(plan.numerics.stepper, LayerStepper):
        # A network has no state between two layers: end with the layer that meets the condition.
        return diffrax.Event(value)
    return diffrax.Event(value, StopSearch(rtol=1e-12, atol=1e-12))


class StopSearch(optx.Bisection):
    """Bisection for the time of a stop, which also accepts the samples of a batch that had none.

    For those diffrax searches the end of the last step as the root of (end - t): it falls, and is
    zero at the end of the bracket, where plain bisection runs to the other end or refuses.
    """

    def init(
        self, fn: Any, y: Any, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any
    ) -> Any:
        plain = optx.Bisection(self.rtol, self.atol, flip=False)
        state = plain.init(fn, y, args, options, f_struct, aux_struct, tags)
        falls = fn(state.lower, args)[0] > fn(state.upper, args)[0]
        return eqx.tree_at(lambda s: s.flip, state, falls)

    def postprocess(self, fn: Any, y: Any, aux: Any, *rest: Any) -> tuple[Any, Any, dict[str, Any]]:
        # The end of the bracket where the condition is met: a count jumps between the two.
        state = rest[2]
        return state.upper, aux, {}


@eqx.filter_jit
def integrate(plan: Plan, start: Carried, times: Array) -> Segment:
    """Solve for every model and every sample; these are the leading axes of the result."""
    if plan.adjoint.does_everything or plan.state.spans_devices:
        return _integrate_all(plan.adjoint.loop, plan, start, times)
    return differentiable(_integrate_all, plan.adjoint.loop, plan, start, times)


def _integrate_all(
    adjoint: diffrax.AbstractAdjoint, plan: Plan, start: Carried, times: Array
) -> Segment:
    def sample(model: Dynamics, index: Array, one: Carried) -> Segment:
        key = jax.random.fold_in(plan.key, index)
        return integrate_one(adjoint, plan, model.for_sample(index), one, times, key)

    def all_samples(model: Dynamics, every: Carried) -> Segment:
        if plan.samples is None:
            return integrate_one(adjoint, plan, model, every, times, plan.key)
        indices = jnp.arange(plan.samples)
        return eqx.filter_vmap(sample, in_axes=(None, 0, 0))(model, indices, every)

    if batch_axis(plan.model) is None:
        return all_samples(plan.model, start)
    over = (batch_in_axes(plan.model), 0)
    return eqx.filter_vmap(all_samples, in_axes=over)(plan.model, start)
