"""Measures on S^{d-1} that are symmetric about the first axis, in any dimension.

They are laws of u = <x, e_1>, held by coefficients of the orthonormal Gegenbauer polynomials of
dimension d: rho(x) = sum_l c_l p_l(u). Only plane rotations about the axis are averaged out, so the
cost does not depend on d. The unit tangent towards the pole is e = (s, -u w) at x = (u, s w),
s = sqrt(1-u^2), and grad p_l(u) = s p_l'(u) e.
"""

from __future__ import annotations

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..batches import members
from ..density import Discretisation, Law
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..measure import Measure
from ..reduce import Dense
from ..runtime import Scalar, is_traced
from ..space import Space, Sphere
from ..terms import Attention, Term
from .axial import AxialKernel, axial_kernel, check_axial
from .checks import check_model
from .galerkin import Basis, Galerkin
from .legendre import gauss, gegenbauer, gegenbauer_slopes
from .resolving import check_forces
from .sampling import AxialLaw, about_axis
from .starting import check_coefficients, project

MOST_DEGREES = 4096
# Laws and fields are asked to be the same on two meridians to this relative accuracy.
MERIDIAN_TOLERANCE = 1e-9
# Largest sum_l p_l^2 at which 1e-16 in every coefficient moves the density by less than 1e-8.
LARGEST_KERNEL = 1e16


class Zonal(Discretisation):
    """Densities on S^{d-1} symmetric about e_1, with Gegenbauer polynomials up to `degree`.

    The state is (c_0, .., c_degree), c_0 = 1. No points and weights stand for such a measure in d > 2:
    observables with a formula for densities can be read (energies, order_parameter, entropy,
    largest_density, peaks); for others draw tokens by `density.sample(n, seed)`. For large d the
    density next to the poles, where next to no mass is, is lost to rounding: `lowest_density` and
    `largest_density` leave those nodes out. `tail` as in Fourier.
    """

    d: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    tail: float = eqx.field(static=True, default=1e-6)
    axes: ClassVar[tuple[str, ...]] = ("mode",)
    spec_name: ClassVar[str] = "zonal"

    def __check_init__(self) -> None:
        require(
            isinstance(self.d, int) and self.d >= 2,
            f"Zonal needs a sphere of dimension d >= 2, got d={self.d!r}",
        )
        require(
            isinstance(self.degree, int) and 1 <= self.degree <= MOST_DEGREES,
            f"Zonal needs a degree from 1 to {MOST_DEGREES}, got {self.degree!r}",
        )
        require(self.tail > 0, f"the tail at which to stop must be positive, got {self.tail}")

    @property
    def table_size(self) -> float:
        return 6.0 * self.degree**2

    @property
    def space(self) -> Space:
        return Sphere(self.d)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.degree + 1,)

    @property
    def largest_tail(self) -> float:
        return self.tail

    def scheme(self) -> Galerkin:
        return Galerkin(_basis(self.d, self.degree))

    def project(self, law: Law) -> Array:
        basis = self.scheme().basis
        here, there = law(basis.nodes), law(_turned(np.asarray(basis.nodes)))
        if not is_traced(here, there):
            require(
                _same(np.asarray(here), np.asarray(there)),
                "this law is not symmetric about the first axis e_1; use Harmonics(degree) for d = 3, "
                "or a law of x[:, 0] alone",
            )
        return project(basis, _basis(self.d, 2 * self.degree + 7), law, self.tail)

    def check_state(self, state: Array) -> None:
        check_coefficients(self.scheme().basis, state)

    def check(self, model: Dynamics) -> None:
        check_model(model, self)
        for part in model.parts():
            term = part.attention()
            if term is None:
                for one in members(part):
                    _check_external(one, np.asarray(self.scheme().basis.nodes))
            elif not term.is_plain:
                check_axial(term, self.d)

    def check_forces(self, model: Dynamics, state: Array) -> None:
        basis, finer = (_basis(self.d, degree) for degree in (self.degree, 2 * self.degree + 7))
        check_forces(model, state, basis, finer, f"use more than degree={self.degree}")

    def advice(self) -> str:
        return (
            f"its highest degrees have grown to {self.tail:g}: use more than "
            f"degree={self.degree}, or tokens: density.sample(n, seed)"
        )

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """u by its inverse law, to rounding; the rest uniform about the axis."""
        law = AxialLaw(self.d, state)
        u = law.quantiles(random.uniform(size=n), f"use more than degree={self.degree}")
        return about_axis(u, self.d, random)


class ZonalBasis(Basis):
    """p_0(u), .., p_degree(u) on Gauss nodes, by matrices."""

    nodes: Float[Array, "node d"]
    weights: Float[Array, " node"]
    frame: Float[Array, "node 1 d"]
    degrees: Float[Array, " mode"]
    # p_l and s p_l' at the nodes.
    polynomials: Float[Array, "node mode"]
    slopes: Float[Array, "node mode"]
    degree: int = eqx.field(static=True)
    # The others turn about the axis.
    scalars: ClassVar[slice] = slice(0, 1)

    @property
    def space(self) -> Space:
        return Sphere(self.nodes.shape[-1])

    @property
    def known(self) -> Bool[Array, " node"]:
        return jnp.sum(self.polynomials**2, axis=-1) <= LARGEST_KERNEL

    def synthesise(self, c: Float[Array, " mode"]) -> Float[Array, " node"]:
        return self.polynomials @ c

    def analyse(self, values: Float[Array, " node"]) -> Float[Array, " mode"]:
        return (self.weights * values) @ self.polynomials

    def gradient(self, c: Float[Array, " mode"]) -> Float[Array, "node 1"]:
        return (self.slopes @ c)[:, None]

    def against_gradients(self, flux: Float[Array, "node 1"]) -> Float[Array, " mode"]:
        return (self.weights * flux[:, 0]) @ self.slopes

    def mean(self, masses: Float[Array, " node"]) -> Float[Array, " d"]:
        return jnp.zeros(self.nodes.shape[-1]).at[0].set(masses @ self.nodes[:, 0])

    def table(self, term: Term) -> AxialKernel | None:
        attention = term.attention()
        if attention is None:
            return None
        return axial_kernel(attention, self.nodes[:, 0], self.nodes.shape[-1])

    def field(
        self, term: Term, t: Scalar, masses: Float[Array, " node"], table: eqx.Module | None = None
    ) -> Float[Array, "node 1"]:
        attention = term.attention()
        if attention is not None:
            assert isinstance(table, AxialKernel)
            return table.field(attention, masses)
        # Other terms do not look at the measure: the nodes stand for the meridian, not for it.
        meridian = Measure(self.space, self.nodes, masses, ordered=False)
        force = term.field(t, self.nodes, meridian, Dense())
        return jnp.einsum("nrd,nd->nr", self.frame, force)

    def head_energies(
        self, term: Attention, masses: Float[Array, " node"]
    ) -> Float[Array, " heads"]:
        """(1/2beta) iint e^{beta<x, B_h y>} of every head, over nodes and the turns about the axis."""
        table = self.table(term)
        assert table is not None
        return table.head_energies(term, self.nodes[:, 0], masses)

    def peaks(self, c: Float[Array, " mode"], above: float) -> Float[Array, ""]:
        """Local maxima along the meridian from pole to pole, the last known nodes included."""
        values = jnp.where(self.known, self.synthesise(c), -jnp.inf)
        left = jnp.concatenate([jnp.array([-jnp.inf]), values[:-1]])
        right = jnp.concatenate([values[1:], jnp.array([-jnp.inf])])
        return jnp.sum((values > left) & (values >= right) & (values > above)).astype(float)

    def measure(self, masses: Float[Array, " node"]) -> Measure:
        raise InputError(
            f"a zonal density on S^{self.nodes.shape[-1] - 1} is no sum over its nodes; draw tokens by "
            "density.sample(n, seed), or read observables with a formula for densities (energy, "
            "order_parameter, entropy, free_energy, largest_density, peaks)"
        )


@functools.lru_cache(maxsize=32)
def _basis(d: int, degree: int) -> ZonalBasis:
    # Products of three polynomials are integrated exactly.
    u, weights = gauss(d, (3 * degree) // 2 + 2)
    s = np.sqrt((1 - u) * (1 + u))
    aside = np.zeros((len(u), d - 2))
    # Kept for every later run: also when first made inside a compiled function.
    with jax.ensure_compile_time_eval():
        return ZonalBasis(
            nodes=jnp.asarray(np.column_stack([u, s, aside])),
            weights=jnp.asarray(weights),
            frame=jnp.asarray(np.column_stack([s, -u, aside])[:, None]),
            degrees=jnp.arange(degree + 1, dtype=float),
            polynomials=jnp.asarray(gegenbauer(d, degree, u).T),
            slopes=jnp.asarray((s * gegenbauer_slopes(d, degree, u)).T),
            degree=degree,
        )


def _turn(d: int) -> np.ndarray:
    """A rotation (for d = 2 the reflection) that keeps e_1 and moves every other direction."""
    turn = np.eye(d)
    if d == 2:
        turn[1, 1] = -1.0
        return turn
    around = np.random.default_rng(d).normal(size=(d - 1, d - 1))
    turn[1:, 1:] = np.linalg.qr(around)[0]
    return turn


def _turned(nodes: np.ndarray) -> Array:
    return jnp.asarray(nodes @ _turn(nodes.shape[-1]).T)


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    size = max(float(np.max(np.abs(first))), 1e-300)
    return bool(np.max(np.abs(first - second)) <= MERIDIAN_TOLERANCE * size)


def _check_external(term: Term, nodes: np.ndarray) -> None:
    """Refuse a term whose field is not turned with the meridian."""
    if is_traced(term):
        return
    d = nodes.shape[-1]
    term.check(Measure(Sphere(d), nodes, ordered=False))
    turned = _turned(nodes)
    here = _tangent(term, jnp.asarray(nodes)) @ _turn(d).T
    require(
        _same(here, _tangent(term, turned)),
        f"this {type(term).__name__} does not respect the axis e_1, so a zonal density does not stay "
        "one (a perceptron needs its a_j along e_1, a drift diag(b, a, .., a)); use Harmonics(degree) "
        "for d = 3, or tokens",
    )


def _tangent(term: Term, points: Array) -> np.ndarray:
    space = Sphere(points.shape[-1])
    force = term.field(0.0, points, Measure(space, points, ordered=False), Dense())
    return np.asarray(space.project(points, force))
