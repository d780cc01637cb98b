"""solve: from a model and tokens to a Trajectory."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..density import Density
from ..dynamics import Clusters, Dynamics, State, beta_count
from ..errors import InputError, SolveError, require
from ..health import energy_direction
from ..measure import Measure
from ..memory import all_attentions, check_memory
from ..observables import Observable, scaled_energy
from ..observables.settle import settle_on_tokens
from ..reduce import Dense, Reduction
from ..runtime import as_array, is_traced, known
from ..trajectory import Trajectory
from .assemble import from_segment, lead_axes
from .clocks import Clock, Physical
from .core import Plan, integrate
from .methods import Layers, Method, Numerics, Stiff, resolve
from .outcome import failure, succeeded
from .save import Save, filled, filled_jumps
from .steppers import Merge
from .stops import Stop


def solve(
    model: Dynamics,
    x0: Measure | Density,
    t1: float,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dt: float | None = None,
    method: Method = None,
    save: Save | None = None,
    stop: Stop | Sequence[Stop] = (),
    merge: Merge | None = None,
    clock: Clock | None = None,
    reduction: Reduction | None = None,
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
    with jax.grad through `run.states` and `run.array(name, time=-1)`.

    `merge=Merge(radius)` glues tokens into weighted clusters, and `clock=LogTime()` steps in log t: use
    both for metastable times e^{c beta}. A `Density` in the place of tokens is their limit n -> infinity:
    noise becomes diffusion (rtol and atol apply), and the run stops where its discretisation no longer
    holds it. A run that fails raises SolveError whose text is advice, or
    with `throw=False` returns what was reached, with the advice in `run.advice`.
    """
    _check_types(model, x0)
    _check_time(t1)
    if isinstance(x0, Density):
        from ..meanfield.api import solve_density

        return solve_density(
            model,
            x0,
            t1,
            rtol=rtol,
            atol=atol,
            dt=dt,
            method=method,
            save=save,
            stop=stop,
            clock=clock,
            max_steps=max_steps,
            progress=progress,
            throw=throw,
            unused={"merge": merge, "reduction": reduction},
        )
    plan, measure, times = prepare(
        model,
        x0,
        t1,
        rtol=rtol,
        atol=atol,
        dt=dt,
        method=method,
        save=Save(states=True) if save is None else save,
        stop=stop,
        merge=merge,
        clock=clock,
        reduction=reduction,
        seed=seed,
        max_steps=max_steps,
        progress=progress,
    )
    start = initial_state(model, measure, merge)
    rows = filled(times, row_bytes(plan, measure), bool(lead_axes(plan, measure)))
    found = integrate(plan, measure, start, as_array(rows))
    segment = found.first_rows(len(times), plan.reduction.spans_devices)
    run = from_segment(plan, x0, segment)
    if is_traced(segment):
        return run
    if throw and not succeeded(run.outcome):
        raise SolveError(failure(run, t1))
    return run


def prepare(
    model: Dynamics,
    x0: Measure,
    t1: float,
    *,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    method: Method,
    save: Save,
    stop: Stop | Sequence[Stop],
    merge: Merge | None,
    clock: Clock | None,
    reduction: Reduction | None,
    seed: int,
    max_steps: int,
    progress: bool,
) -> tuple[Plan, Measure, np.ndarray]:
    """Check the request and turn it into a plan, flat samples, and save times."""
    with known():
        numerics, clock, times, reduction = _settled(
            model, x0, t1, rtol, atol, dt, method, save, merge, clock, reduction, max_steps
        )
    # Not among what is known: an observable is tried on shapes, and a check in it must not run.
    observe = settle_on_tokens(save.observe, model, x0, reduction)
    with known():
        plan = Plan(
            model=model,
            numerics=numerics,
            reduction=reduction,
            clock=clock,
            observe=_with_watched_energy(model, x0, observe),
            stops=(stop,) if isinstance(stop, Stop) else tuple(stop),
            jumps=as_array(filled_jumps(model.jumps(t1))),
            key=jax.random.key(seed),
            horizon=as_array(float(t1)),
            states=save.states,
            progress=progress and sys.stderr is not None,
        )
        return plan, flatten_samples(x0), times


def _settled(
    model: Dynamics,
    x0: Measure,
    t1: float,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    method: Method,
    save: Save,
    merge: Merge | None,
    clock: Clock | None,
    reduction: Reduction | None,
    max_steps: int,
) -> tuple[Numerics, Clock, np.ndarray, Reduction]:
    """What is decided of a request before anything is traced."""
    _check_types(model, x0)
    _check_time(t1)
    model.check(x0, t1)
    if merge is not None:
        _check_merge(model)
    numerics = resolve(model, method, rtol, atol, dt, merge, max_steps)
    clock = Physical() if clock is None else clock
    require(
        isinstance(clock, Physical) or (model.noise is None and numerics.dt0 is None),
        "another clock needs an adaptive solver without noise; leave out dt, Layers and noise",
    )
    times = save.times(t1)
    if isinstance(method, Layers):
        _check_layer_times(times, method.step)
    reduction = Dense() if reduction is None else reduction
    reduction = reduction.settle([part.task(x0) for part in all_attentions(model)])
    check_memory(model, x0, reduction, len(times), save, isinstance(method, Stiff))
    return numerics, clock, times, reduction


def row_bytes(plan: Plan, x0: Measure) -> float:
    """About how much one save keeps; an observable has at most n entries along each axis."""
    states = x0.n * x0.d if plan.states else 0
    observed = sum(x0.n ** len(thing.axes) for thing in plan.observe)
    samples = math.prod(x0.batch_shape) * beta_count(plan.model)
    return 8.0 * samples * (states + observed)


def _with_watched_energy(
    model: Dynamics, x0: Measure, observe: tuple[Observable, ...]
) -> tuple[Observable, ...]:
    """Add the scaled energy where theory makes it monotone, for the health report."""
    named = {thing.name for thing in observe}
    if is_traced(model, x0) or scaled_energy.name in named or not energy_direction(model, x0):
        return observe
    return (*observe, scaled_energy)


def flatten_samples(x0: Measure) -> Measure:
    """Several sample axes as one; `from_segment` restores them."""
    if len(x0.batch_shape) <= 1:
        return x0
    points = x0.points.reshape(-1, x0.n, x0.d)
    return x0.at(points, None if x0.radii is None else x0.radii.reshape(-1, x0.n))


@known()
def initial_state(model: Dynamics, measure: Measure, merge: Merge | None) -> State:
    """The state at t = 0, with masses if clusters are to merge."""
    state = model.initial_state(measure)
    if merge is None:
        return state
    shape = measure.points.shape[:-1]
    alone = Clusters(
        jnp.broadcast_to(measure.weights, shape),
        jnp.broadcast_to(jnp.arange(measure.n, dtype=float), shape),
    )
    return eqx.tree_at(lambda s: s.clusters, state, alone, is_leaf=lambda leaf: leaf is None)


def _check_types(model: object, x0: object) -> None:
    require(
        isinstance(model, Dynamics),
        f"the model must be a Dynamics, got {type(model).__name__}; wrap a term as "
        "flock.Dynamics(None, term) or use a named model such as flock.SA(beta)",
    )
    require(
        isinstance(x0, Measure | Density),
        f"the tokens must be a Measure or a Density, got {type(x0).__name__}; make one with "
        "flock.from_array(flock.Sphere(d), x) or flock.uniform(...)",
    )


def _check_merge(model: Dynamics) -> None:
    """Refuse models in which coincident tokens are not one token with their total mass."""
    require(
        not any(part.mask.needs_order for part in model.attentions()),
        "merge gives the mass of a cluster to its first token, which a causal or ALiBi mask would "
        "show to tokens that must not see it; leave out merge, or use method=Stiff()",
    )
    require(
        not model.scheme().moves_radii,
        f"merge does not know how radii combine under {type(model.scheme()).__name__}; leave it out",
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
