"""The circle by equal-mass characteristics: a measure as its quantiles, which move with the flow.

theta_m(t), m = 0..n-1, are the lifted angles at masses (m + 1/2)/n counted from a cut that moves with
the flow. Without noise each obeys theta' = v[mu](theta), so the scheme is the particle system started
from quantiles, and still right when the density becomes atoms, where a grid fails. Order is kept by
one-dimensional transport, hence positivity; mass is exact. While the density is smooth, moments converge
faster than any power of 1/n, the entropy and the noise like n^-2, W2 like 1/n.

What n quantiles do not hold: a kernel narrower than their gaps (a run stops there), and the mass closer to a
repelling point than the last quantile. Fractions of the mass below 1/n leave such a point late, and rates of
convergence that rest on them are those of n tokens after a time of order log n.

Noise is the gradient flow of the entropy of the quantiles. Each gap g_m = theta_{m+1} - theta_m (around
the circle) holds the mass 1/n at the density 2 pi/(n g_m), so

    int rho log rho = (1/n) sum_m log(2 pi/(n g_m)),   theta_m' = v + T (1/g_{m-1} - 1/g_m),

n times the derivative by theta_m, since every quantile has the mass 1/n: the velocity -T (log rho)'.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..density import Discretisation, Functional, Law, Scheme
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..measure import Measure, from_angles
from ..observables.base import Snapshot
from ..observables.energies import energy
from ..reduce import Auto, Dense, Reduction, Task
from ..runtime import Scalar
from ..space import Space, Sphere
from ..terms import Term
from .cdf import distribution_of_law, middle_masses
from .checks import check_model
from .energy import external_part, pair_energy
from .resolving import largest_over_betas
from .sampling import on_circle

# Errors allowed to sums over quantiles: the first that rounding lets a fast reduction keep.
SUMS_TOLERANCES = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
# Sums over gaps g of a smooth density, with a kernel of width s, are off by e^{-2 pi^2 s^2/g^2}: 4e-4 here.
WIDEST_GAP = 1.6
# The share of quantiles that may stand alone within the kernel, on their way between clusters.
MOST_ALONE = 0.1
# Below this a gap is an atom: its density is given as if it were this.
SMALLEST_GAP = 1e-300


class Quantiles(Discretisation):
    """Any measure on the circle as n quantiles of equal mass.

    The state holds lifted angles in increasing order, spanning less than 2 pi. Nothing is lost while
    atoms form. A run stops where neighbours have passed one another by more than `overlap` (radians), which
    only a too large error of the solver can do, and where a tenth of the quantiles has no neighbour within
    1.6 (beta |B|)^{-1/2}: the kernel then falls between them, and they would rest where the measure moves.
    With noise the equation is
    stiff (rates T n^2 rho^2/pi^2): use method=Stiff(), which solves with matrices of n + 1 rows, so
    some hundred quantiles; without it steps of that size are taken.
    """

    n: int = eqx.field(static=True)
    overlap: float = eqx.field(static=True, default=1e-6)
    axes: ClassVar[tuple[str, ...]] = ("quantile",)
    spec_name: ClassVar[str] = "quantiles"

    def __check_init__(self) -> None:
        require(
            isinstance(self.n, int) and self.n >= 2,
            f"Quantiles needs a whole number n >= 2 of quantiles, got {self.n!r}",
        )
        require(self.overlap > 0, f"the overlap at which to stop must be positive: {self.overlap}")

    @property
    def space(self) -> Space:
        return Sphere(2)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def largest_tail(self) -> float:
        return self.overlap

    def scheme(self) -> Characteristics:
        return Characteristics(Dense())

    def project(self, law: Law) -> Array:
        return jnp.asarray(distribution_of_law(law).quantiles(middle_masses(self.n)))

    def check_state(self, state: Array) -> None:
        require(
            bool(jnp.all(gaps(state) >= 0)),
            "quantiles are lifted angles in increasing order that span at most 2 pi; sort them, or start "
            "from Density.from_law",
        )

    def check(self, model: Dynamics) -> None:
        check_model(model, self)
        model.terms.check(from_angles(np.arange(2.0)))

    def check_forces(self, model: Dynamics, state: Array) -> None:
        strain = largest_over_betas(lambda one: self.scheme().strain(one, 0.0, state), model)
        require(strain <= self.overlap, self._alone())

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """Uniform between neighbouring quantiles, where the density is 2 pi/(n g_m); at atoms, the atom."""
        cell, along = np.divmod(random.uniform(size=n) * self.n, 1.0)
        cell = np.minimum(cell.astype(int), self.n - 1)
        return on_circle(state[cell] + along * np.asarray(gaps(jnp.asarray(state)))[cell])

    def advice(self) -> str:
        return (
            f"quantiles have passed one another by {self.overlap:g}, which the flow never does: lower "
            f"rtol and atol (or dt), and with noise use method=Stiff(); or {self._alone()}"
        )

    def _alone(self) -> str:
        return (
            "quantiles stand alone within the kernel's width (beta |B|)^(-1/2), so that it falls between "
            f"them: use more than n={self.n}"
        )


class Characteristics(Scheme):
    """Quantiles moved by the engine's own field, summed by `reduction`."""

    reduction: Reduction

    def settled(self, model: Dynamics, state: Array, implicit: bool) -> Characteristics:
        """With sums in O(n) where these are faster; implicit methods need the derivatives of Dense."""
        if implicit:
            return self
        tasks = [term.task(self.measure(state)) for term in model.attentions()]
        return Characteristics(_most_accurate(tasks))

    def prepared(self, model: Dynamics) -> Characteristics:
        return self

    # --- the equation -----------------------------------------------------------------------------

    def transport(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        drift = self._along(model.terms, t, state)
        return drift + self._diffusion(model, state)

    def _along(self, term: Term, t: Scalar, state: Array) -> Float[Array, " quantile"]:
        """Angular velocity of a term at the quantiles."""
        mu = self.measure(state)
        force = term.tangent_field(t, mu.points, mu, self.reduction)
        return mu.points[:, 0] * force[:, 1] - mu.points[:, 1] * force[:, 0]

    def _diffusion(self, model: Dynamics, state: Array) -> Float[Array, " quantile"] | float:
        """T (1/g_{m-1} - 1/g_m)."""
        T = model.temperature()
        if T is None:
            return 0.0
        crowding = 1.0 / gaps(state)
        return T * (jnp.roll(crowding, 1) - crowding)

    def damping(self, model: Dynamics) -> None:
        """None: the noise of quantiles is not linear, and stands in `transport`."""
        return None

    # --- the dissipation identity -----------------------------------------------------------------

    def free_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """The energies of `energy` at the quantiles, minus T int rho log rho."""
        mu, total = self.measure(state), jnp.zeros(())
        for part in model.parts():
            term = part.attention()
            if term is None:
                total += jnp.mean(external_part(part, mu.points))
            else:
                total += pair_energy(term, t, mu, self.reduction)
        T = model.temperature()
        return total if T is None else total - T * self.entropy(state)

    def power(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """(1/n) sum_m (n dA/dtheta_m) theta_m', A = `free_energy`."""
        parts = [term.rising(2) for term in model.parts()]
        slopes = [self._along(part, t, state) for part in parts if part is not None]
        slope = sum(slopes, jnp.zeros_like(state)) + self._diffusion(model, state)
        return jnp.mean(slope * self.transport(model, t, state))

    def entropy(self, state: Array) -> Float[Array, ""]:
        """int rho log rho = (1/n) sum_m log(2 pi/(n g_m))."""
        return jnp.mean(jnp.log(self.values(state)))

    def functionals(self) -> dict[str, Functional]:
        return {
            "energy": lambda model, t, state: energy(
                Snapshot(jnp.asarray(t), self.measure(state), model, self.reduction)
            ),
            "free_energy": self.free_energy,
            "free_energy_rate": self.power,
            "entropy": lambda model, t, state: self.entropy(state),
        }

    # --- what the state holds ---------------------------------------------------------------------

    def mass(self, state: Array) -> Array:
        """1: every quantile carries 1/n for ever."""
        return jnp.ones(())

    def lowest(self, state: Array) -> Array:
        return jnp.min(self.values(state))

    def tail(self, state: Array) -> Array:
        """How far a quantile has passed its neighbour, in radians; 0 while the order is kept."""
        # max(0, -NaN) is NaN, which stops a run.
        return jnp.maximum(0.0, jnp.max(-gaps(state)))

    def strain(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """The tail; a whole turn where too many quantiles stand alone within the kernel."""
        gap = gaps(state)
        nearest = jnp.minimum(gap, jnp.roll(gap, 1))
        alone = jnp.zeros(())
        for term in model.attentions():
            steepness = jnp.abs(term.beta) * _largest_stretch(term.weights.at(t).bilinear(2))
            lonely = nearest * jnp.sqrt(steepness) > WIDEST_GAP
            alone = jnp.maximum(alone, jnp.mean(lonely.astype(float)))
        return jnp.where(alone > MOST_ALONE, 2 * jnp.pi, self.tail(state))

    def measure(self, state: Array) -> Measure:
        points = jnp.stack([jnp.cos(state), jnp.sin(state)], axis=-1)
        return Measure(Sphere(2), points, ordered=False)

    def values(self, state: Array) -> Float[Array, " node"]:
        """2 pi/(n g_m): the density half-way between neighbours."""
        return 2 * np.pi / (state.size * jnp.maximum(gaps(state), SMALLEST_GAP))

    def nodes(self, state: Array) -> Float[Array, "node d"]:
        """Half-way between neighbours."""
        middle = state + gaps(state) / 2.0
        return jnp.stack([jnp.cos(middle), jnp.sin(middle)], axis=-1)


def _largest_stretch(B: Float[Array, "heads 2 2"]) -> Array:
    """The largest singular value of all heads: (|B|^2 + sqrt(|B|^4 - 4 det^2))/2 is its square."""
    squares = jnp.sum(B**2, axis=(-2, -1))
    det = B[:, 0, 0] * B[:, 1, 1] - B[:, 0, 1] * B[:, 1, 0]
    return jnp.max(jnp.sqrt((squares + jnp.sqrt(jnp.maximum(squares**2 - 4 * det**2, 0.0))) / 2))


def _most_accurate(tasks: list[Task]) -> Reduction:
    """The fastest reduction at the smallest tolerance that any reaches."""
    for tolerance in SUMS_TOLERANCES[:-1]:
        try:
            return Auto(tolerance).settle(tasks)
        except InputError:
            continue
    return Auto(SUMS_TOLERANCES[-1]).settle(tasks)


def gaps(state: Float[Array, " quantile"]) -> Float[Array, " quantile"]:
    """theta_{m+1} - theta_m, the last one across the cut."""
    return jnp.diff(state, append=state[:1] + 2 * jnp.pi)
