r"""The equation of stationary states: rho = e^{Phi[rho]/T}/Z.

The field of plain attention is a gradient, v[mu] = grad Phi[mu], with Z(x) = int e^{beta<x,y>} dmu(y):

    USA   Phi = s V Z e^{-beta}/beta,  s the speed of the convention (e^beta, 1 or beta e^beta)
    SA    Phi = V log(Z)/beta, so that rho is proportional to Z^{V/(beta T)}

Every stationary law is of this form, for SA too. Freeze Phi at a stationary mu: then mu is an invariant law
of the linear diffusion with drift grad Phi on a compact manifold, and that law is unique: e^{Phi/T}. There
is no stationary flux. For USA Phi is the first variation of the energy E and the states are the critical
points of E - T int rho log rho, which the flow increases. For SA they are not: dPhi(x)/dmu(y) =
e^{beta<x,y>}/(beta Z(x)) is not symmetric in x and y, so no functional of mu has Phi as its first variation
and the noisy flow is no gradient flow of W2.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...density import Discretisation
from ...dynamics import Dynamics
from ...errors import InputError, require
from ...noise import Brownian
from ...runtime import Scalar
from ...terms import Attention
from ..checks import require_fixed_numbers
from ..galerkin import Basis, Galerkin
from ..kernel import KernelSeries, plain_attention
from ..zonal import ZonalBasis


class Stationary(eqx.Module):
    """The equation of a model on a discretisation, at any temperature."""

    scheme: Galerkin
    model: Dynamics

    def drift_potential(self, state: Float[Array, " mode"]) -> Float[Array, " node"]:
        """Phi at the nodes, up to a constant: the field is its gradient."""
        parts = [
            self._of_term(term, series, state)
            for term, series in zip(self.model.attentions(), self.scheme.series, strict=True)
            if series is not None
        ]
        return sum(parts[1:], parts[0])

    def _of_term(
        self, term: Attention, series: KernelSeries, state: Array
    ) -> Float[Array, " node"]:
        weights = term.weights.at(0.0)
        V = 1.0 if weights.V is None else weights.V
        degrees = self.scheme.basis.degrees.astype(int)
        # sum over l >= 1 of a_l/beta, finite at beta = 0: Z e^{-beta} = a_0 + beta wave
        wave = self.scheme.basis.synthesise(series.potential[degrees] * state)
        if not term.kind.averages:
            return V * term.kind.speed(term.beta) * wave
        wave = wave / series.partition[0]
        positive = jnp.where(term.beta > 0, term.beta, 1.0)
        return V * jnp.where(term.beta > 0, jnp.log1p(term.beta * wave) / positive, wave)

    def gibbs(self, state: Float[Array, " mode"], temperature: Scalar) -> Float[Array, " mode"]:
        """Coefficients of e^{Phi[rho]/T}/Z, the law to which tokens settle in the field of rho."""
        exponent = self.drift_potential(state) / temperature
        c = self.scheme.basis.analyse(jnp.exp(exponent - jnp.max(exponent)))
        return c / c[0]

    def residual(self, state: Float[Array, " mode"], temperature: Scalar) -> Float[Array, " mode"]:
        """rho - e^{Phi[rho]/T}/Z in coefficients: zero at stationary states."""
        return state - self.gibbs(state, temperature)


def stationary_equation(model: Dynamics, on: Discretisation) -> Stationary:
    """The equation, or InputError for models whose stationary states it does not describe."""
    require_fixed_numbers(model, "stationary states")
    on.check(model)
    scheme = on.scheme()
    if not isinstance(scheme, Galerkin):
        raise InputError(
            f"stationary states need a density in harmonics, got {on}; use Fourier, Zonal or Harmonics"
        )
    for term in model.parts():
        require(
            plain_attention(term) is not None,
            f"stationary states are those of plain SA or USA, whose field is a gradient; {model.label} "
            "has another term: solve the equation in time instead",
        )
    return Stationary(scheme.prepared(model), model)


def temperature_of(model: Dynamics) -> Float[Array, ""]:
    """The temperature of the model's noise, or InputError without noise."""
    T = model.temperature()
    if T is None or float(T) <= 0:
        raise InputError(
            "without noise stationary densities are sums of atoms; give noise=Brownian(temperature)"
        )
    return T


def at_temperature(model: Dynamics, temperature: Scalar) -> Dynamics:
    """The model with noise of this temperature."""
    noise = Brownian(temperature)
    return Dynamics(model.space, model.terms, noise, model.normalisation, model.frame, model.label)


def rotations(basis: Basis, state: Float[Array, " mode"]) -> Float[Array, "plane mode"]:
    """d rho/d angle for a turn in every coordinate plane; no row where a density cannot be turned.

    A turn moves x by its generator G x, so that rho changes by -<G x, grad rho>, of the same degrees.
    """
    d = basis.space.d
    if isinstance(
        basis, ZonalBasis
    ):  # turned, it would no longer be symmetric about the first axis
        return jnp.zeros((0, state.size))
    slope = jnp.einsum("nr,nrd->nd", basis.gradient(state), basis.frame)
    x = basis.nodes
    planes = [(i, j) for i in range(d) for j in range(i)]
    return jnp.stack(
        [basis.analyse(x[:, j] * slope[:, i] - x[:, i] * slope[:, j]) for i, j in planes]
    )
