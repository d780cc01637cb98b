"""Methods: how time is discretised. The physics does not know."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..noise import Noise
from ..runtime import is_traced
from .steppers import LayerStepper, Merge, Retracted


class Layers(eqx.Module):
    """Run the model as a discrete network of residual layers: x <- N(x + step A(x)).

    Its clock is not the flow's: near clusters the normalisation slows it down by 1/(1 + step), so a
    time read off a Layers run is about (1 + step) times that of the flow.
    """

    step: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(
            np.isfinite(self.step) and self.step > 0,
            f"a layer's step must be positive, got {self.step}",
        )


class Stiff(eqx.Module):
    """Implicit solver (Kvaerno5) for large beta, where tight clusters relax much faster than they move."""


# A step this small means a non-finite field, not a hard problem: fail early instead of retrying for ever.
SMALLEST_STEP = 1e-30
Method = Layers | Stiff | diffrax.AbstractSolver | None


class Numerics(eqx.Module):
    """A stepper with its step-size controller, resolved from what the caller asked."""

    stepper: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    # Numbers, not constants of the compiled program: another tolerance or step compiles nothing.
    dt0: Float[Array, ""] | None
    max_steps: int = eqx.field(static=True)
    name: str = eqx.field(static=True)


def largest(tree: object) -> Array:
    """Largest absolute entry: an error norm that no crowd of resting tokens can dilute."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))


def resolve(
    model: Dynamics,
    method: Method,
    rtol: float | None,
    atol: float | None,
    dt: float | None,
    merge: Merge | None,
    max_steps: int,
) -> Numerics:
    """Turn tolerances or a step into a stepper and a controller, or say what is missing."""
    _check_numbers(rtol, atol, dt, max_steps)
    if isinstance(method, Layers):
        require(
            rtol is None and atol is None and dt is None and merge is None,
            "Layers(step) has a fixed step: leave out rtol, atol, dt and merge",
        )
        step = jnp.asarray(method.step)
        return Numerics(LayerStepper(step), diffrax.ConstantStepSize(), step, max_steps, "Layers")
    solver = _solver(model.noise, method, rtol, atol)
    stepper = Retracted(solver, merge)
    name = type(solver).__name__
    if model.noise is not None or dt is not None:
        require(
            dt is not None and rtol is None and atol is None,
            "noise needs a fixed step: give dt=... instead of rtol and atol"
            if model.noise is not None
            else "give either dt (fixed steps) or rtol and atol (adaptive), not both",
        )
        require(
            model.noise is None or merge is None, "tokens with noise do not merge; leave out merge"
        )
        return Numerics(stepper, diffrax.ConstantStepSize(), jnp.asarray(dt), max_steps, name)
    if rtol is None or atol is None:
        raise InputError(
            "state the accuracy you need: rtol and atol, for example rtol=1e-8, atol=1e-10 "
            "(near a metastable state atol must lie far below e^(-c beta)), or a fixed dt"
        )
    controller = diffrax.PIDController(
        rtol=jnp.asarray(rtol),
        atol=jnp.asarray(atol),
        norm=largest,
        dtmin=SMALLEST_STEP,
        force_dtmin=False,
    )
    return Numerics(stepper, controller, None, max_steps, name)


def _solver(
    noise: Noise | None, method: Method, rtol: float | None, atol: float | None
) -> diffrax.AbstractSolver:
    if isinstance(method, diffrax.AbstractSolver):
        stratonovich = isinstance(method, diffrax.AbstractStratonovichSolver)
        if noise is not None and not noise.reading_free and stratonovich:
            raise InputError(
                f"{type(noise).__name__} is an Ito equation and {type(method).__name__} solves the "
                "Stratonovich one, which is another model; use diffrax.Euler() or leave method out"
            )
        return method
    if noise is not None:
        require(method is None, "stiff solvers do not handle noise; leave method out")
        return diffrax.Euler()
    if isinstance(method, Stiff):
        if rtol is None or atol is None:
            raise InputError("Stiff() is adaptive: give rtol and atol")
        # Full Newton: the chord iteration rejects half its steps while clusters form.
        tight: dict[str, Any] = {
            "rtol": jnp.asarray(0.1 * rtol),
            "atol": jnp.asarray(0.1 * atol),
        }
        newton = optx.Newton(**tight, norm=largest)
        return diffrax.Kvaerno5(root_finder=newton)
    return diffrax.Dopri8()


def _check_numbers(
    rtol: float | None, atol: float | None, dt: float | None, max_steps: int
) -> None:
    for name, value in (("rtol", rtol), ("atol", atol), ("dt", dt)):
        if value is not None and not is_traced(value):
            require(
                np.isfinite(value) and value > 0, f"{name} must be a positive number, got {value}"
            )
    require(
        rtol is None or is_traced(rtol) or rtol >= 1e-14,
        f"rtol={rtol} is below double precision; use at least 1e-14",
    )
    require(max_steps >= 1, f"max_steps must be at least 1, got {max_steps}")
