"""solve for a density: the request checked, turned into a plan, and solved."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np

from ..density import Density
from ..dynamics import Dynamics, beta_count, has_beta_batch
from ..errors import InputError, SolveError, require
from ..integrate.clocks import Clock, Physical
from ..integrate.methods import Layers, Method, Numerics, Stiff, resolve
from ..integrate.outcome import failure, succeeded
from ..integrate.save import Save, filled, filled_jumps
from ..integrate.steppers import Retracted
from ..integrate.stops import Stop
from ..runtime import as_array, is_traced, known
from ..trajectory import Trajectory
from .assemble import check_density_names, from_density_segment
from .reading import settle_on_density
from .solving import DensityPlan, DiagonalSolve, Flowing, integrate_density


def solve_density(
    model: Dynamics,
    x0: Density,
    t1: float,
    *,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    method: Method,
    save: Save | None,
    stop: Stop | Sequence[Stop],
    clock: Clock | None,
    max_steps: int,
    progress: bool,
    throw: bool,
    unused: dict[str, Any],
) -> Trajectory:
    """The limit of `solve` for infinitely many tokens; see there for the arguments."""
    for name, given in unused.items():
        require(given is None, f"a density has no tokens, so {name} has no meaning; leave it out")
    plan, times = density_plan(
        model,
        x0,
        t1,
        rtol=rtol,
        atol=atol,
        dt=dt,
        method=method,
        save=Save(states=True) if save is None else save,
        stop=stop,
        clock=clock,
        max_steps=max_steps,
        progress=progress,
    )
    rows = filled(times, 8.0 * x0.state.size * beta_count(model), has_beta_batch(model))
    found = integrate_density(plan, Flowing(x0.state, as_array(0.0)), as_array(rows))
    segment = found.first_rows(len(times))
    run = from_density_segment(plan, x0, segment, t1)
    if is_traced(segment):
        return run
    if throw and not succeeded(run.outcome):
        raise SolveError(failure(run, t1))
    return run


def density_plan(
    model: Dynamics,
    x0: Density,
    t1: float,
    *,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    method: Method,
    save: Save,
    stop: Stop | Sequence[Stop],
    clock: Clock | None,
    max_steps: int,
    progress: bool,
) -> tuple[DensityPlan, np.ndarray]:
    """Check the request and turn it into a plan and save times."""
    with known():
        x0.on.check(model)
        check_density_names(x0, save.observe)
        _check_resolved(model, x0)
        blank = x0.at(jnp.zeros_like(x0.state))
    # Not among what is known: an observable is tried on shapes, and a check in it must not run.
    observe = settle_on_density(save.observe, model, blank)
    with known():
        plan = DensityPlan(
            model=model,
            blank=blank,
            scheme=x0.on.scheme().settled(model, x0.state, isinstance(method, Stiff)),
            numerics=density_numerics(model, x0, method, rtol, atol, dt, max_steps),
            clock=Physical() if clock is None else clock,
            observe=observe,
            stops=(stop,) if isinstance(stop, Stop) else tuple(stop),
            jumps=as_array(filled_jumps(model.jumps(t1))),
            states=save.states,
            progress=progress and sys.stderr is not None,
        )
        return plan, save.times(t1)


def _check_resolved(model: Dynamics, x0: Density) -> None:
    """Refuse a start, or forces on it, whose finest scales are not held: a run would be wrong at once."""
    if is_traced(model, x0.state):
        return
    tail = float(x0.on.scheme().tail(x0.state))
    require(
        tail <= x0.on.largest_tail,
        f"the start is finer than {x0.on} holds: its tail is {tail:.2g}, the largest allowed is "
        f"{x0.on.largest_tail:g}; use a larger discretisation, or a larger `tail` if you know why",
    )
    x0.on.check_forces(model, x0.state)


def density_numerics(
    model: Dynamics,
    x0: Density,
    method: Method,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    max_steps: int,
) -> Numerics:
    """Dopri8 without noise; with it KenCarp4, whose implicit stages are the diffusion's."""
    if isinstance(method, Layers):
        raise InputError("a density has no layers; leave out method, and give rtol and atol, or dt")
    quiet = Dynamics(model.space, model.terms, None, None, model.frame, model.label)
    numerics = resolve(quiet, method, rtol, atol, dt, None, max_steps)
    if isinstance(method, diffrax.AbstractSolver):
        solver = method
    elif x0.on.scheme().damping(model) is not None:
        require(
            not isinstance(method, Stiff), "noise is implicit already; leave out method=Stiff()"
        )
        solver = diffrax.KenCarp4(root_finder=DiagonalSolve())
    else:
        assert isinstance(numerics.stepper, Retracted)
        solver = numerics.stepper.solver
    controller = x0.on.controller(numerics.controller)
    return Numerics(solver, controller, numerics.dt0, numerics.max_steps, type(solver).__name__)
