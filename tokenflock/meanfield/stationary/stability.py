"""Which perturbations of a stationary state grow: the spectrum of the linearised equation."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...density import Density
from ...dynamics import Dynamics
from ...errors import require
from .equation import Stationary, rotations, stationary_equation, temperature_of

# Rates smaller than this share of the largest one are zero within rounding of the eigenvalue problem.
ROUNDING = 1e-12
# Farther from its equation a density is at no stationary state; what is left changes the rates as little.
AT_REST = 1e-6
# Turns that move coefficients by less than this leave a state as it is: it is symmetric about their axis.
SYMMETRIC = 1e-9


@dataclasses.dataclass(frozen=True)
class Stability:
    """Eigenvalues of d_t delta = T Laplacian delta - div(delta v + rho v'[delta]), largest real part first.

    Perturbations keep the mass. Turns of the state as a whole are left out: they neither grow nor decay.
    On Zonal densities only axially symmetric perturbations are seen.
    """

    rates: np.ndarray

    @property
    def growth(self) -> float:
        """The largest growth rate; negative for a stable state."""
        return float(np.real(self.rates[0]))

    @property
    def unstable(self) -> int:
        """How many independent perturbations grow: 0 for a stable state, more for a saddle."""
        return int(np.sum(np.real(self.rates) > ROUNDING * np.max(np.abs(self.rates))))

    @property
    def stable(self) -> bool:
        """Whether nothing grows."""
        return self.unstable == 0


def stability(model: Dynamics, density: Density) -> Stability:
    """The spectrum at a stationary state, from the Jacobian of the discretised equation."""
    temperature = temperature_of(model)
    equation = stationary_equation(model, density.on)
    left = float(jnp.max(jnp.abs(equation.residual(density.state, temperature))))
    require(
        left <= AT_REST,
        f"stability is that of a stationary state, and this density is {left:.2g} away from solving its "
        f"equation at temperature {float(temperature):.6g} (at most {AT_REST:g}); pass it through "
        "stationary_state(model, density) first",
    )
    return spectrum(equation, density.state)


def spectrum(equation: Stationary, state: Array) -> Stability:
    """The spectrum of the linearised flow at a state, without mass and rotations."""
    matrix = np.asarray(linearised(equation, state))
    turned = np.asarray(rotations(equation.scheme.basis, state))[:, 1:]
    _, sizes, directions = np.linalg.svd(turned)
    # Rotations span an invariant space, so the spectrum on the quotient is that of Q^T L Q.
    across = directions[int(np.sum(sizes > SYMMETRIC)) :]
    rates = np.linalg.eigvals(across @ matrix @ across.T)
    return Stability(rates[np.argsort(-rates.real)])


@eqx.filter_jit
def linearised(equation: Stationary, state: Array) -> Float[Array, "mode mode"]:
    """The Jacobian of the time derivative of all coefficients but the mass."""
    damping = equation.scheme.damping(equation.model)
    assert damping is not None

    def derivative(free: Array) -> Array:
        whole = jnp.append(1.0, free)
        return (equation.scheme.transport(equation.model, 0.0, whole) - damping * whole)[1:]

    return jax.jacfwd(derivative)(state[1:])
