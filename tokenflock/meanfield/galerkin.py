"""Densities in eigenfunctions of the Laplacian, by weak form.

rho = sum_k c_k phi_k with phi_k orthonormal for the uniform probability sigma and phi_0 = 1. Tested
against phi_k, the equation d_t rho + div(rho v) = T Laplacian rho is

    d_t c_k = int rho v . grad phi_k dsigma - T lambda_k c_k,

so the mass c_0 is constant by construction. Products are formed at quadrature nodes fine enough for
twice the degree; nothing is filtered. By Funk and Hecke a kernel of <x, y> acts on degree l as a
number, so the field of plain attention costs two transforms; any other field is summed over the nodes.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Bool, Float

from ..density import Functional, Scheme
from ..dynamics import Dynamics
from ..errors import InputError
from ..measure import Measure
from ..reduce import Dense
from ..runtime import Scalar
from ..space import Space
from ..terms import Attention, Term
from .energy import external_part, head_energies
from .kernel import KernelSeries, kernel_series, plain_attention

# Weights of tokens must be positive: where the density is not, the measure of the nodes has this.
SMALLEST_WEIGHT = 1e-300
# Below this the logarithm of a density says nothing: its gradient is taken as if it were this.
SMALLEST_DENSITY = 1e-14


class Basis(eqx.Module):
    """Eigenfunctions of the Laplacian on a sphere, with nodes on which products are formed."""

    # Points of the nodes, their quadrature weights (summing to one), orthonormal tangent vectors.
    nodes: eqx.AbstractVar[Float[Array, "node d"]]
    weights: eqx.AbstractVar[Float[Array, " node"]]
    frame: eqx.AbstractVar[Float[Array, "node r d"]]
    # Degree of every coefficient; the eigenvalue of the Laplacian is -l(l + d - 2).
    degrees: eqx.AbstractVar[Float[Array, " mode"]]
    degree: eqx.AbstractVar[int]
    # Which Cartesian components of a tangent field are functions the basis can analyse; mostly all.
    scalars: ClassVar[slice] = slice(None)

    @property
    @abc.abstractmethod
    def space(self) -> Space:
        """The sphere."""

    @abc.abstractmethod
    def synthesise(self, c: Float[Array, " mode"]) -> Float[Array, " node"]:
        """sum_k c_k phi_k at the nodes."""

    @abc.abstractmethod
    def analyse(self, values: Float[Array, " node"]) -> Float[Array, " mode"]:
        """int f phi_k dsigma of values at the nodes."""

    @abc.abstractmethod
    def gradient(self, c: Float[Array, " mode"]) -> Float[Array, "node r"]:
        """sum_k c_k grad phi_k at the nodes, in the frame."""

    @abc.abstractmethod
    def against_gradients(self, flux: Float[Array, "node r"]) -> Float[Array, " mode"]:
        """int flux . grad phi_k dsigma: the coefficients of -div flux."""

    @abc.abstractmethod
    def measure(self, masses: Float[Array, " node"]) -> Measure:
        """The nodes with masses, or InputError where they do not stand for the whole measure."""

    def mean(self, masses: Float[Array, " node"]) -> Float[Array, " d"]:
        """int x dmu."""
        return masses @ self.nodes

    def table(self, term: Term) -> eqx.Module | None:
        """What `field` needs of a term, computed once for a run; mostly nothing."""
        return None

    def field(
        self, term: Term, t: Scalar, masses: Float[Array, " node"], table: eqx.Module | None = None
    ) -> Float[Array, "node r"]:
        """Any term's field at the nodes, in the frame, by the engine's own sums over the nodes."""
        nodes = self.measure(masses)
        force = term.field(t, nodes.points, nodes, Dense())
        return jnp.einsum("nrd,nd->nr", self.frame, force)

    def head_energies(
        self, term: Attention, masses: Float[Array, " node"]
    ) -> Float[Array, " heads"]:
        """(1/2beta) iint phi(beta <x, B_h y>) of every head, summed over the nodes."""
        return head_energies(term, self.measure(masses), Dense())

    def peaks(self, c: Float[Array, " mode"], above: float) -> Float[Array, ""]:
        """Number of local maxima above a density, where nodes have an order."""
        raise InputError(
            "peaks are counted on the circle and for zonal densities; use order_parameter"
        )

    @property
    def known(self) -> Bool[Array, " node"]:
        """Nodes where rounding of the coefficients leaves the density a meaning; mostly all."""
        return jnp.ones_like(self.weights, bool)

    @property
    def eigenvalues(self) -> Float[Array, " mode"]:
        """l(l + d - 2)."""
        return self.degrees * (self.degrees + self.space.d - 2)


class Galerkin(Scheme):
    """The weak form on a basis; `series` are the kernels of the model's plain attention terms.

    `tables` are what the basis needs for the fields of the other terms, `rises` the terms whose fields
    are grad dA/dmu of these (see `energy`), with their tables.
    """

    basis: Basis
    series: tuple[KernelSeries | None, ...] = ()
    tables: tuple[eqx.Module | None, ...] = ()
    rises: tuple[tuple[Term, eqx.Module | None] | None, ...] = ()

    def prepared(self, model: Dynamics) -> Galerkin:
        """With the kernels of a model's terms, computed once for a run."""
        d, degree = self.basis.space.d, self.basis.degree
        plain = [plain_attention(term) for term in model.parts()]
        series = tuple(
            None if term is None else kernel_series(term.beta, d, degree) for term in plain
        )
        tables = tuple(
            self.basis.table(term) if kernel is None else None
            for term, kernel in zip(model.parts(), series, strict=True)
        )
        rises = tuple(
            self._rise(term, table) if kernel is None else None
            for term, kernel, table in zip(model.parts(), series, tables, strict=True)
        )
        return Galerkin(self.basis, series, tables, rises)

    def _rise(self, term: Term, table: eqx.Module | None) -> tuple[Term, eqx.Module | None] | None:
        part = term.rising(self.basis.space.d)
        if part is None:
            return None
        return part, table if part is term else self.basis.table(part)

    # --- the equation -----------------------------------------------------------------------------

    def transport(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        density = self.basis.synthesise(state)
        velocity = self.field(model, t, state, density)
        return self.basis.against_gradients(density[:, None] * velocity)

    def field(
        self, model: Dynamics, t: Scalar, state: Array, density: Float[Array, " node"]
    ) -> Float[Array, "node r"]:
        """v[mu] at the nodes, in the frame."""
        fields = [
            self.basis.field(term, t, self._masses(density), table)
            if series is None
            else self._plain(term, series, t, state)
            for term, series, table in zip(model.parts(), self.series, self.tables, strict=True)
        ]
        return sum(fields[1:], fields[0])

    def _plain(self, part: Term, series: KernelSeries, t: Scalar, state: Array) -> Array:
        """V grad Z/beta (USA) or V grad log Z/beta (SA), Z = int e^{beta(<x,y>-1)} dmu(y)."""
        term = _attention(part)
        pull = _value(term, t) * self.basis.gradient(self._by_degree(series.potential) * state)
        if not term.kind.averages:
            return term.kind.speed(term.beta) * pull
        partition = self.basis.synthesise(self._by_degree(series.partition) * state)
        return pull / partition[:, None]

    def _by_degree(self, numbers: Float[Array, " degrees"]) -> Float[Array, " mode"]:
        return numbers[self.basis.degrees.astype(int)]

    def _masses(self, density: Array) -> Array:
        return jnp.maximum(density * self.basis.weights, SMALLEST_WEIGHT)

    def damping(self, model: Dynamics) -> Array | None:
        T = model.temperature()
        return None if T is None else T * self.basis.eigenvalues

    # --- the dissipation identity -----------------------------------------------------------------

    def free_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """The energies of `energy`, minus T int rho log rho."""
        density = self.basis.synthesise(state)
        total = jnp.zeros(())
        for part, series in zip(model.parts(), self.series, strict=True):
            term = part.attention()
            if term is None:
                total += self._external(part, density)
            elif series is None:
                total += self._tied_pairs(term, density)
            else:
                total += _value(term, t) * term.lift() * self._pairs(term, series, state)
        T = model.temperature()
        return total if T is None else total - T * self.entropy(state)

    def power(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """int grad(dA/dmu) . (rho v - T grad rho) dsigma, A = `free_energy`."""
        density = self.basis.synthesise(state)
        flux = density[:, None] * self.field(model, t, state, density)
        slope = jnp.zeros_like(flux)
        for part, series, rise in zip(model.parts(), self.series, self.rises, strict=True):
            if series is not None:
                term = _attention(part)
                gradient = self.basis.gradient(self._by_degree(series.potential) * state)
                slope += _value(term, t) * term.lift() * gradient
            elif rise is not None:
                slope += self.basis.field(rise[0], t, self._masses(density), rise[1])
        T = model.temperature()
        if T is not None:
            spread = T * self.basis.gradient(state)
            flux -= spread
            slope -= spread / jnp.maximum(density, SMALLEST_DENSITY)[:, None]
        return jnp.sum(self.basis.weights[:, None] * slope * flux)

    def _tied_pairs(self, term: Attention, density: Float[Array, " node"]) -> Array:
        """s sum_h c_h E_h of attention with matrices or another kernel."""
        if not term.has_pairs:
            return jnp.zeros(())
        # SA climbs the energy of the perspective's clock.
        clock = 1.0 if term.kind.averages else term.kind.clock(term.beta)
        ratios = clock * term.weights.at(0.0).tied_ratios(self.basis.space.d)
        return jnp.sum(ratios * self.basis.head_energies(term, self._masses(density)))

    def _external(self, term: Term, density: Float[Array, " node"]) -> Array:
        return jnp.sum(self.basis.weights * density * external_part(term, self.basis.nodes))

    def _pairs(self, term: Attention, series: KernelSeries, state: Array) -> Array:
        """(e^{-beta}/2beta) iint e^{beta<x,y>} = sum_k a_k c_k^2/2beta; less 1/(2beta) at beta = 0."""
        squares = state**2
        whole = jnp.sum(self._by_degree(series.partition) * squares)
        rest = jnp.sum(self._by_degree(series.potential) * squares)
        beta = jnp.where(term.beta == 0, 1.0, term.beta)
        return jnp.where(term.beta == 0, rest / 2.0, whole / (2.0 * beta))

    def entropy(self, state: Array) -> Float[Array, ""]:
        """int rho log rho dsigma, the density cut at 0."""
        density = jnp.maximum(self.basis.synthesise(state), 0.0)
        return jnp.sum(self.basis.weights * xlogy(density, density))

    def functionals(self) -> dict[str, Functional]:
        return {
            "energy": lambda model, t, state: self.energy(model, state),
            "free_energy": self.free_energy,
            "free_energy_rate": self.power,
            "entropy": lambda model, t, state: self.entropy(state),
            "order_parameter": lambda model, t, state: self.order_parameter(state),
            "scaled_energy": self.scaled_energy,
            "energy_rate": self.energy_rate,
            "dissipation": self.dissipation,
            "largest_density": lambda model, t, state: self.largest(state),
            "peaks": lambda model, t, state, above: self.basis.peaks(state, above),
        }

    def energy(self, model: Dynamics, state: Array) -> Array:
        """(1/2beta) iint e^{beta<x,y>} of the first attention term, plus potentials: see `energy`."""
        density = self.basis.synthesise(state)
        total, first = jnp.zeros(()), True
        for part, series in zip(model.parts(), self.series, strict=True):
            term = part.attention()
            if term is None:
                # As tokens' energy, which knows no drift.
                pulled = part.potential(0.0, self.basis.nodes)
                total += 0.0 if pulled is None else jnp.sum(self.basis.weights * density * pulled)
            elif first:
                total += self._first_pairs(term, series, state)
            first = first and term is None
        return total

    def _first_pairs(self, term: Attention, series: KernelSeries | None, state: Array) -> Array:
        if series is not None:
            return jnp.exp(term.beta) * self._pairs(term, series, state)
        density = self.basis.synthesise(state)
        return jnp.sum(self.basis.head_energies(term, self._masses(density)))

    def scaled_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """2 beta e^{-beta} E, at most 1: the sum over pairs of e^{beta(<x,y>-1)} for one attention."""
        beta = model.attentions()[0].beta
        return 2.0 * beta * jnp.exp(-beta) * self.energy(model, state)

    def energy_rate(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """dE/dt along the field, without noise: the derivative of E in the direction of transport."""
        direction = self.transport(model, t, state)
        return jax.jvp(lambda moved: self.energy(model, moved), (state,), (direction,))[1]

    def dissipation(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """dE/dt = (1/V) int g |v|^2 dmu, g = Z for SA and e^beta/speed for USA (2312.10794, 3.6)."""
        term, series = self._one_plain(model)
        density = self.basis.synthesise(state)
        squares = jnp.sum(self.field(model, t, state, density) ** 2, axis=-1)
        if not term.kind.averages:
            metric = 1.0 / term.kind.clock(term.beta)
        else:
            partition = self.basis.synthesise(self._by_degree(series.partition) * state)
            metric = jnp.exp(term.beta) * partition
        return jnp.sum(self.basis.weights * density * metric * squares) / _value(term, t)

    def _one_plain(self, model: Dynamics) -> tuple[Attention, KernelSeries]:
        """The only term, if it is plain attention."""
        (first, *others), series = model.parts(), next(iter(self.series))
        if others or series is None:
            raise InputError(
                f"the dissipation identity is that of SA or USA alone, got {model.label}; use "
                "energy_rate or free_energy_rate"
            )
        return _attention(first), series

    def order_parameter(self, state: Array) -> Array:
        """|int x dmu|."""
        density = self.basis.synthesise(state)
        return jnp.linalg.norm(self.basis.mean(self.basis.weights * density))

    # --- what the state holds ---------------------------------------------------------------------

    def mass(self, state: Array) -> Array:
        return state[0]

    def lowest(self, state: Array) -> Array:
        return jnp.min(jnp.where(self.basis.known, self.basis.synthesise(state), jnp.inf))

    def largest(self, state: Array) -> Float[Array, ""]:
        """The largest density."""
        return jnp.max(jnp.where(self.basis.known, self.basis.synthesise(state), -jnp.inf))

    def tail(self, state: Array) -> Array:
        """The size of the last degree, as every coefficient above the middle foretells it.

        No coefficient of degree l of a probability exceeds m_l = max |phi|. One of size c, l > L/2, foretells
        m_L (c/m_l)^{L/l}: geometric decay from degree 0. The last ones say so themselves; the others are
        asked because a state with a k-fold symmetry has only multiples of k, which may all lie below the
        last ones, but never all below the middle.
        """
        degrees, last = self.basis.degrees, self.basis.degree
        upper = degrees > last / 2
        asked = jnp.where(upper, degrees, last)
        most = _largest_harmonic(asked, self.basis.space.d)
        shares = jnp.where(upper, jnp.abs(state), 0.0) / most
        end = _largest_harmonic(jnp.asarray(float(last)), self.basis.space.d)
        # A power below 2 has no second derivative at zero; coefficients that are zero foretell zero.
        is_zero = shares == 0
        foretold = jnp.where(is_zero, 1.0, shares) ** (last / asked)
        return end * jnp.max(jnp.where(is_zero, 0.0, foretold))

    def measure(self, state: Array) -> Measure:
        return self.basis.measure(self._masses(self.basis.synthesise(state)))

    def values(self, state: Array) -> Float[Array, " node"]:
        return self.basis.synthesise(state)

    def nodes(self, state: Array) -> Float[Array, "node d"]:
        return self.basis.nodes


def _largest_harmonic(degree: Array, d: int) -> Array:
    """max |phi| over harmonics of a degree >= 1, at most the root of their number N_l."""
    if d == 2:
        return jnp.full_like(degree, 2.0**0.5)
    count = gammaln(degree + d - 2) - gammaln(degree + 1) - gammaln(d - 1.0)
    return jnp.sqrt(2 * degree + d - 2) * jnp.exp(count / 2)


def _attention(part: Term) -> Attention:
    """The attention of a part that has a series."""
    found = part.attention()
    assert found is not None
    return found


def _value(term: Attention, t: Scalar) -> Array:
    value = term.weights.at(t).V
    return jnp.ones(()) if value is None else value
