"""Numerics: what the caller said of accuracy and steps, turned into a stepper and its controller."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..methods import Layers, Method, Stiff
from ..runtime import is_traced
from ..states import State
from .steppers import LayerStepper

# A step this small means a non-finite field, not a hard problem: fail early instead of retrying for ever.
SMALLEST_STEP = 1e-30


class Accuracy(NamedTuple):
    """What the caller asked for: tolerances, or a fixed step, or a method that has its own."""

    rtol: float | None = None
    atol: float | None = None
    dt: float | None = None
    method: Method = None
    max_steps: int = 100_000


class Numerics(eqx.Module):
    """A stepper with its step-size controller, resolved from what the caller asked."""

    stepper: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    # Numbers, not constants of the compiled program: another tolerance or step compiles nothing.
    dt0: Float[Array, ""] | None
    max_steps: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    @property
    def tolerance(self) -> float:
        """atol; 0 for fixed steps."""
        atol = getattr(self.controller, "atol", None)
        return 0.0 if atol is None else float(atol)


def largest(tree: object) -> Array:
    """Largest absolute entry: an error norm that no crowd of resting tokens can dilute."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))


def resolve(state: State, model: Dynamics, asked: Accuracy) -> Numerics:
    """Turn tolerances or a step into a stepper and a controller, or say what is missing."""
    _check_numbers(asked)
    rtol, atol, dt, method, max_steps = asked
    state.check_method(model, method)
    if isinstance(method, Layers):
        require(
            rtol is None and atol is None and dt is None,
            "Layers(step) has a fixed step: leave out rtol, atol, dt and merge",
        )
        step = jnp.asarray(method.step)
        return Numerics(LayerStepper(step), diffrax.ConstantStepSize(), step, max_steps, "Layers")
    solver = _solver(state, model, asked)
    stepper, name = state.stepper(solver), type(solver).__name__
    fixed = state.needs_fixed_steps(model)
    if fixed or dt is not None:
        require(
            dt is not None and rtol is None and atol is None,
            "noise needs a fixed step: give dt=... instead of rtol and atol"
            if fixed
            else "give either dt (fixed steps) or rtol and atol (adaptive), not both",
        )
        controller = state.controller(diffrax.ConstantStepSize())
        return Numerics(stepper, controller, jnp.asarray(dt), max_steps, name)
    if rtol is None or atol is None:
        raise InputError(
            "state the accuracy you need: rtol and atol, for example rtol=1e-8, atol=1e-10 "
            "(near a metastable state atol must lie far below e^(-c beta)), or a fixed dt"
        )
    adaptive = diffrax.PIDController(
        rtol=jnp.asarray(rtol),
        atol=jnp.asarray(atol),
        norm=largest,
        dtmin=SMALLEST_STEP,
        force_dtmin=False,
    )
    return Numerics(stepper, state.controller(adaptive), None, max_steps, name)


def _solver(state: State, model: Dynamics, asked: Accuracy) -> diffrax.AbstractSolver:
    if isinstance(asked.method, diffrax.AbstractSolver):
        return asked.method
    if not isinstance(asked.method, Stiff):
        return state.own_solver(model)
    if asked.rtol is None or asked.atol is None:
        raise InputError("Stiff() is adaptive: give rtol and atol")
    # Full Newton: the chord iteration rejects half its steps while clusters form.
    tight: dict[str, Any] = {
        "rtol": jnp.asarray(0.1 * asked.rtol),
        "atol": jnp.asarray(0.1 * asked.atol),
    }
    return diffrax.Kvaerno5(root_finder=optx.Newton(**tight, norm=largest))


def _check_numbers(asked: Accuracy) -> None:
    for name, value in (("rtol", asked.rtol), ("atol", asked.atol), ("dt", asked.dt)):
        if value is not None and not is_traced(value):
            require(
                np.isfinite(value) and value > 0, f"{name} must be a positive number, got {value}"
            )
    require(
        asked.rtol is None or is_traced(asked.rtol) or asked.rtol >= 1e-14,
        f"rtol={asked.rtol} is below double precision; use at least 1e-14",
    )
    require(asked.max_steps >= 1, f"max_steps must be at least 1, got {asked.max_steps}")
