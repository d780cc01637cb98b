"""solve for a density: the request checked, turned into a plan, and solved."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, SolveError, require
from ..integrate.clocks import Clock, Physical
from ..integrate.methods import Layers, Method, Numerics, Stiff, resolve
from ..integrate.outcome import succeeded
from ..integrate.save import Save
from ..integrate.steppers import Retracted
from ..integrate.stops import Stop
from ..runtime import is_traced
from ..trajectory import Trajectory
from .assemble import check_density_names, from_density_segment
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
    segment = integrate_density(plan, Flowing(x0.state, jnp.zeros(())), jnp.asarray(times))
    if is_traced(segment):
        return from_density_segment(plan, x0, segment, t1)
    run = from_density_segment(plan, x0, jax.block_until_ready(segment), t1)
    if throw and not succeeded(run.outcome):
        raise SolveError(f"the run stopped at t={run.reached:g} of {t1:g}: {run.advice}")
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
    x0.on.check(model)
    check_density_names(x0, save.observe)
    _check_resolved(model, x0)
    times = save.times(t1)
    plan = DensityPlan(
        model=model,
        blank=x0.at(jnp.zeros_like(x0.state)),
        scheme=x0.on.scheme().settled(model, x0.state, isinstance(method, Stiff)),
        numerics=density_numerics(model, x0, method, rtol, atol, dt, max_steps),
        clock=Physical() if clock is None else clock,
        observe=save.observe,
        stops=(stop,) if isinstance(stop, Stop) else tuple(stop),
        jumps=jnp.asarray(model.jumps(t1), dtype=float),
        states=save.states,
        progress=progress and sys.stderr is not None,
    )
    return plan, times


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
