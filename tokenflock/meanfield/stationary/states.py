"""One stationary state: Newton from a start, or damped iteration where Newton fails."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jaxtyping import Array, Float

from ...density import Density
from ...dynamics import Dynamics
from ...errors import SolveError
from ...runtime import Scalar
from .equation import Stationary, rotations, stationary_equation, temperature_of

NEWTON_STEPS = 50
DAMPING = 0.5
MOST_ITERATIONS = 100_000


def stationary_state(model: Dynamics, start: Density, tolerance: float = 1e-12) -> Density:
    """The stationary state to which Newton leads from `start`, |rho - e^{Phi/T}/Z| <= tolerance.

    Newton (optimistix) finds stable and unstable states alike. Where it does not converge, the damped
    iteration rho <- (rho + e^{Phi[rho]/T}/Z)/2 takes over, which only finds states it is attracted to:
    for USA those that are stable under the flow. At a bifurcation, where the Jacobian is singular, both
    fail or lose digits: follow a `branch` instead.
    """
    temperature = temperature_of(model)
    equation = stationary_equation(model, start.on)
    state, error = _newton(equation, start.state, temperature, tolerance)
    if not error <= tolerance:
        state = _iterated(equation, start.state, temperature, tolerance)
        state, error = _newton(equation, state, temperature, tolerance)
    # Unresolved states also leave a larger residual: the advice about resolution comes first.
    if float(equation.scheme.tail(state)) > start.on.largest_tail:
        raise SolveError(f"the stationary state is too sharp: {start.on.advice()}")
    if not error <= tolerance:
        raise SolveError(
            f"no stationary state within {tolerance:g} of its equation from this start (left: "
            f"{float(error):.2g}); start closer to one, or follow a branch from the uniform state"
        )
    return Density(start.on, state)


@eqx.filter_jit
def _newton(
    equation: Stationary, state: Array, temperature: Scalar, tolerance: float
) -> tuple[Float[Array, " mode"], Float[Array, ""]]:
    """Newton on all coefficients but the mass; the state and the largest residual left.

    Every turn of a state is a state, so the Jacobian J is singular there. Newton steps with J + sum_i g_i
    g_i^T instead, g_i the derivatives of the current density by turns: at a state J g_i = 0, and the step
    leaves out what would turn it and is Newton's otherwise. Turns about an axis of symmetry have g_i = 0.
    """

    def residual(free: Array) -> Array:
        return equation.residual(jnp.append(1.0, free), temperature)[1:]

    def unturned(free: Array, _: None) -> Array:
        here = jax.lax.stop_gradient(free)
        turns = rotations(equation.scheme.basis, jnp.append(1.0, here))[:, 1:]
        return residual(free) + turns.T @ (turns @ (free - here))  # its value is the residual

    newton = optx.Newton(rtol=tolerance / 10, atol=tolerance / 10, linear_solver=lx.LU())
    found = optx.root_find(unturned, newton, state[1:], max_steps=NEWTON_STEPS, throw=False)
    return jnp.append(1.0, found.value), jnp.max(jnp.abs(residual(found.value)))


@eqx.filter_jit
def _iterated(
    equation: Stationary, state: Array, temperature: Scalar, tolerance: float
) -> Float[Array, " mode"]:
    """rho <- rho - DAMPING residual(rho), until the residual is small or iterations run out."""

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        _, error, count = carry
        return (error > tolerance) & (count < MOST_ITERATIONS)

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        state, _, count = carry
        change = equation.residual(state, temperature)
        return state - DAMPING * change, jnp.max(jnp.abs(change)), count + 1

    first = (state, jnp.asarray(jnp.inf), jnp.asarray(0))
    return jax.lax.while_loop(unfinished, step, first)[0]
