"""solve: from a model and a start to a Trajectory."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..batches import check_axes, explaining, first_member, undeclared
from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, SolveError, require
from ..measure import Measure
from ..methods import Layers, Method
from ..observables.base import Observable, Snapshot
from ..observables.naming import check_names
from ..observables.plain import as_observable
from ..outcomes import failure, succeeded
from ..reduce import Reduction
from ..runtime import as_array, is_traced, known
from ..states import Merge, State, as_state, settle_on
from ..trajectory import Trajectory
from . import core
from .assemble import from_segment
from .clocks import Clock, Physical
from .core import Plan
from .numerics import Accuracy, resolve
from .reverse import Adjoint, Checkpointed, checked_adjoint
from .save import Save, filled, filled_jumps
from .stops import Stop
from .switches import without_slopes

Integrands = Mapping[str, Callable[[Snapshot], Any]]


def solve(
    model: Dynamics,
    x0: Measure | Density | State,
    t1: float,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dt: float | None = None,
    method: Method = None,
    save: Save | None = None,
    integrate: Integrands | None = None,
    stop: Stop | Sequence[Stop] = (),
    merge: Merge | None = None,
    clock: Clock | None = None,
    reduction: Reduction | None = None,
    adjoint: Adjoint | None = None,
    seed: int = 0,
    max_steps: int = 100_000,
    progress: bool = False,
    throw: bool = True,
) -> Trajectory:
    """Integrate the model from the tokens x0 at t = 0 to t1.

    Accuracy is the caller's to state: `rtol` and `atol` (adaptive, Dopri8 or `method=Stiff()`), or a
    fixed `dt` (required by noise), or `method=Layers(step)` for the discrete network, whose clock
    differs from the flow's.

    A leading axis of x0 is a batch of samples and a vector beta a batch of models: the result has the
    axes (beta, sample) in front, from one compiled call. `seed` drives the noise only. Differentiable
    with jax.grad through `run.states` and `run.array(name, time=-1)`; `adjoint` is what reverse derivatives
    keep in memory, `Checkpointed(checkpoints)` (the default, with about sqrt(2 max_steps) states) or
    `Direct()`, and is recorded in the numerics of the run.

    `integrate={"cost": f}` carries int_0^t f ds beside the state, for any function f of a snapshot (t,
    measure, model): `run["cost"]` has it at every save, to the accuracy of the solver, which counts it
    in the error of a step. With `Layers(step)` it is the sum of step f over the layers.

    `merge=Merge(radius)` glues tokens into weighted clusters, and `clock=LogTime()` steps in log t: use
    both for metastable times e^{c beta}. A `Density` in the place of tokens is their limit n -> infinity:
    noise becomes diffusion (rtol and atol apply), and the run stops where its discretisation no longer
    holds it; any other `State` will do. A run that fails raises SolveError whose text is advice, or
    with `throw=False` returns what was reached, with the advice in `run.advice`.
    """
    _check_model(model)
    _check_time(t1)
    state = as_state(x0).with_options(merge, reduction)
    plan, state, times = prepare(
        model,
        state,
        t1,
        Accuracy(rtol, atol, dt, method, max_steps),
        save=Save(states=True) if save is None else save,
        integrate=integrate,
        stop=stop,
        clock=clock,
        adjoint=adjoint,
        seed=seed,
        progress=progress,
    )
    with known():
        start = plan.start(state)
    rows = filled(times, row_bytes(plan, state), bool(plan.lead_shape))
    segment = core.integrate(plan, start, as_array(rows))
    segment = segment.first_rows(len(times), state.spans_devices)
    run = from_segment(plan, state, segment)
    if is_traced(segment):
        return run
    if throw and not succeeded(run.outcome):
        raise SolveError(failure(run, t1))
    return run


def prepare(
    model: Dynamics,
    state: State,
    t1: float,
    accuracy: Accuracy,
    *,
    save: Save,
    integrate: Integrands | None = None,
    stop: Stop | Sequence[Stop] = (),
    clock: Clock | None = None,
    adjoint: Adjoint | None = None,
    seed: int = 0,
    progress: bool = False,
) -> tuple[Plan, State, np.ndarray]:
    """Check the request and turn it into a plan, the state with its choices made, and save times."""
    with explaining(model), known():
        _check_model(model)
        _check_time(t1)
        check_axes(model)
        state.check(model, t1)
        state.check_names(save.observe)
        numerics = resolve(state, model, accuracy)
        clock = Physical() if clock is None else clock
        require(
            isinstance(clock, Physical)
            or not (state.needs_fixed_steps(model) or numerics.dt0 is not None),
            "another clock needs an adaptive solver without noise; leave out dt, Layers and noise",
        )
        times = save.times(t1)
        if isinstance(accuracy.method, Layers):
            _check_layer_times(times, accuracy.method.step)
        state = state.settled(model, accuracy.method, len(times), save.states)
    _try_undeclared(model, state)
    if numerics.dt0 is not None:
        model = without_slopes(model)
    # Not among what is known: an observable is tried on shapes, and a check in it must not run.
    observe = settle_on(state, save.observe, model)
    integrals = _settled_integrals(integrate, save, state, model)
    with known():
        plan = Plan(
            model=model,
            state=state.blank(),
            numerics=numerics,
            clock=clock,
            observe=state.watch(model, observe),
            integrals=integrals,
            stops=(stop,) if isinstance(stop, Stop) else tuple(stop),
            adjoint=Checkpointed() if adjoint is None else checked_adjoint(adjoint),
            jumps=as_array(filled_jumps(model.jumps(t1), t1)),
            key=jax.random.key(seed),
            horizon=as_array(float(t1)),
            samples=math.prod(state.sample_shape) if state.sample_shape else None,
            keep_states=save.states,
            progress=progress and sys.stderr is not None,
        )
        return plan, state, times


def _try_undeclared(model: Dynamics, state: State) -> None:
    """Evaluate on shapes a model with arrays of unknown axes, to say so where it does not work."""
    if not undeclared(model):
        return
    one, still = first_member(model), state.blank()
    y = still.begin(one)

    def velocity(model: Dynamics, y: Any) -> Any:
        return still.prepared(model).velocity(model, jnp.zeros(()), y)

    with explaining(model):
        found = eqx.filter_eval_shape(velocity, one, y)
        shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (y, found)]
        if shapes[0] != shapes[1]:
            raise ValueError("its velocity has another shape than what it moves")


def _settled_integrals(
    asked: Integrands | None, save: Save, state: State, model: Dynamics
) -> tuple[Observable, ...]:
    """The functions to integrate along a run, as observables under the names they were given."""
    if not asked:
        return ()
    require(
        isinstance(asked, Mapping),
        "integrate takes functions of a snapshot by name, for example "
        f"integrate={{'cost': lambda s: ...}}; got {asked!r}",
    )
    things = [as_observable(function).named(name) for name, function in asked.items()]
    state.check_names([*save.observe, *things])
    check_names([*save.observe, *things])
    return settle_on(state, things, model)


def row_bytes(plan: Plan, state: State) -> float:
    """About how much one save of all models and samples keeps."""
    numbers = state.row_numbers((*plan.observe, *plan.integrals), plan.keep_states)
    return 8.0 * math.prod(plan.lead_shape) * numbers


def _check_model(model: object) -> None:
    require(
        isinstance(model, Dynamics),
        f"the model must be a Dynamics, got {type(model).__name__}; wrap a term as "
        "flock.Dynamics(None, term) or use a named model such as flock.SA(beta)",
    )


def _check_time(t1: float) -> None:
    require(
        isinstance(t1, (int, float, np.number, Tracer)) and not isinstance(t1, bool),
        f"t1 must be a positive number, got {t1!r}",
    )
    if is_traced(t1):
        raise InputError("t1 must be a plain number, not a traced value")
    require(bool(np.isfinite(t1)) and t1 > 0, f"t1 must be a positive number, got {t1}")


def _check_layer_times(times: np.ndarray, step: float) -> None:
    layers = times / step
    require(
        bool(np.all(np.abs(layers - np.round(layers)) < 1e-6)),
        f"with Layers(step={step:g}) t1 and the save times must be multiples of the step; "
        f"the {np.max(layers):g} layers asked for are not whole",
    )
