"""The compiled solve: one call of diffrax for a whole batch of tokens and of betas."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from ..dynamics import Dynamics, State, beta_axes, has_beta_batch
from ..measure import Measure
from ..observables.base import Observable, Snapshot
from ..reduce import Reduction
from ..runtime import is_traced
from .adjoint import REVERSE, differentiable, with_stages_for
from .clocks import Clock
from .methods import Numerics
from .outcome import OUTCOMES
from .progress import RichProgressMeter
from .steppers import Context, LayerStepper, NoiseTerm, drift
from .stops import Stop, rises_at_stop
from .switches import FieldTimes, MeetingSwitches
from .unchecked import unchecked


class Plan(eqx.Module):
    """What to solve, apart from the tokens: model, numerics, what to look at, when to stop."""

    model: Dynamics
    numerics: Numerics
    reduction: Reduction
    clock: Clock
    observe: tuple[Observable, ...]
    stops: tuple[Stop, ...]
    jumps: Float[Array, " jumps"]
    key: Array
    # End of the whole run: the Brownian path must not depend on how a run is cut into segments.
    horizon: Float[Array, ""]
    states: bool = eqx.field(static=True)
    progress: bool = eqx.field(static=True)


class Segment(eqx.Module):
    """What comes back from one solve over the save times; arrays of JAX, or of numpy once on the host."""

    times: Any  # (*batch, time)
    saved: dict[str, Any]
    final: Any  # what was integrated: State, or the coefficients of a density
    final_time: Any  # (*batch)
    final_saved: dict[str, Any]
    outcome: Any  # (*batch), an index into outcome.OUTCOMES
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


def look(plan: Plan, model: Dynamics, measure: Measure, t: Array, state: State) -> dict[str, Array]:
    """Everything saved at one time: observables of the retracted tokens, and the tokens if asked."""
    here = measure.at(measure.space.retract(state.points), state.radii)
    snapshot = Snapshot(t, here, model, plan.reduction)
    # diffrax fills what comes after an early end with infinity, so counts travel as floats.
    values = {thing.name: jnp.asarray(thing(snapshot), dtype=float) for thing in plan.observe}
    if state.clusters is not None:
        values["owners"] = state.clusters.owners
    if plan.states:
        values["states"] = here.points
        if state.radii is not None:
            values["radii"] = state.radii
    return values


def integrate_one(
    adjoint: diffrax.AbstractAdjoint,
    plan: Plan,
    model: Dynamics,
    measure: Measure,
    state: State,
    times: Array,
    key: Array,
) -> Segment:
    """Solve for one sample of tokens over the given save times."""
    clock = plan.clock
    context = Context(model, measure, plan.reduction, field_times(plan, end_of(times)))

    def observe(u: Array, y: State, args: Context) -> dict[str, Array]:
        return look(plan, args.model, args.measure, clock.time(u), y)

    segment = solve_segment(
        adjoint,
        plan,
        _terms(plan, model, measure, key),
        state,
        context,
        times,
        observe,
        _event(plan, times),
    )
    # A stop inside a step leaves an interpolated state, which is not quite on the space.
    points = measure.space.retract(segment.final.points)
    return eqx.tree_at(lambda found: found.final.points, segment, points)


def field_times(plan: Any, end: Array) -> FieldTimes:
    """The times a plan's model is asked for its field, in a solve until `end`."""
    return FieldTimes(plan.clock, end, plan.numerics.dt0, plan.jumps.size > 0)


def end_of(times: Array) -> Array:
    """The last save time; infinite ones only fill up a row (see `save.filled`)."""
    return jnp.max(times, initial=-jnp.inf, where=jnp.isfinite(times))


def solve_segment(
    adjoint: diffrax.AbstractAdjoint,
    plan: Any,
    terms: Any,
    start: Any,
    args: Any,
    times: Array,
    look: Any,
    event: Any,
) -> Segment:
    """One call of diffrax over the save times, for tokens and for densities alike.

    `plan` has numerics, clock, jumps and progress; `look(u, y, args)` is what is saved.
    """
    clock, numerics = plan.clock, plan.numerics

    def end(u: Array, y: Any, args: Any) -> tuple[Any, Array, dict[str, Array]]:
        return y, clock.time(u), look(u, y, args)

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
            args=args,
            saveat=diffrax.SaveAt(
                subs=[diffrax.SubSaveAt(ts=marks, fn=look), diffrax.SubSaveAt(t1=True, fn=end)]
            ),
            stepsize_controller=_controller(plan),
            event=event,
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
    """Index into `outcome.OUTCOMES`."""
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


def _terms(plan: Plan, model: Dynamics, measure: Measure, key: Array) -> Any:
    deterministic = diffrax.ODETerm(drift)  # pyright: ignore[reportArgumentType]
    if model.noise is None:
        return deterministic
    shape = jax.ShapeDtypeStruct(model.noise.brownian_shape(measure), measure.points.dtype)
    dt = plan.numerics.dt0
    assert dt is not None
    with unchecked():
        path = diffrax.VirtualBrownianTree(0.0, plan.horizon, tol=dt / 4, shape=shape, key=key)
    return diffrax.MultiTerm(deterministic, NoiseTerm(path))


def _stepper(plan: Any) -> diffrax.AbstractSolver:
    fixed = plan.numerics.dt0 is not None
    stepper = plan.numerics.stepper
    return MeetingSwitches(stepper) if fixed and plan.jumps.size > 0 else stepper


def _controller(plan: Any) -> diffrax.AbstractStepSizeController:
    if plan.jumps.size == 0 or not isinstance(plan.numerics.controller, diffrax.PIDController):
        return plan.numerics.controller
    return diffrax.ClipStepSizeController(
        plan.numerics.controller, jump_ts=plan.clock.inverse(plan.jumps)
    )


def _event(plan: Plan, times: Array) -> diffrax.Event | None:
    if not plan.stops:
        return None
    start = plan.clock.inverse(times[0])

    def value(t: Array, y: State, args: Context, **kwargs: Any) -> Array:
        here = args.measure.at(args.measure.space.retract(y.points), y.radii)
        snapshot = Snapshot(plan.clock.time(t), here, args.model, args.reduction)
        reached = rises_at_stop([jnp.asarray(stop(snapshot)) for stop in plan.stops])
        # diffrax looks for a change of sign: a condition met from the start must change it too.
        return jnp.where(t <= start, -1.0, reached)

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
def integrate(plan: Plan, measure: Measure, state: State, times: Array) -> Segment:
    """Solve for every beta and every sample; leading axes of the result are (beta, sample)."""
    if plan.reduction.spans_devices:
        return _integrate_all(REVERSE, plan, measure, state, times)
    return differentiable(_integrate_all, plan, measure, state, times)


def _integrate_all(
    adjoint: diffrax.AbstractAdjoint, plan: Plan, measure: Measure, state: State, times: Array
) -> Segment:
    batched = measure.points.ndim == 3

    def sample(model: Dynamics, index: Array, one: State) -> Segment:
        chosen = model.for_sample(index) if batched else model
        key = jax.random.fold_in(plan.key, index) if batched else plan.key
        alone = measure.at(one.points, one.radii)
        return integrate_one(adjoint, plan, chosen, alone, one, times, key)

    def all_samples(model: Dynamics, tokens: State) -> Segment:
        if not batched:
            return sample(model, jnp.zeros((), int), tokens)
        indices = jnp.arange(measure.points.shape[0])
        return eqx.filter_vmap(sample, in_axes=(None, 0, 0))(model, indices, tokens)

    if not has_beta_batch(plan.model):
        return all_samples(plan.model, state)
    # A continued run already has the axis of betas; at the start all betas share the tokens.
    axis = 0 if state.points.ndim > measure.points.ndim else None
    return eqx.filter_vmap(all_samples, in_axes=(beta_axes(plan.model), axis))(plan.model, state)
