"""The layered mean-field equation of causal attention: one density on the circle per position.

f(t, s, .) is the law of the token at s = j/N of a long prompt, relative to the uniform probability:

    d_t f + d_theta (f v) = T d_theta^2 f,   v(t, s, .) the field at F(s) = int_0^s k(s, s') f(s') ds'

(2605.09213 for KineticFlow, v = w' * F; with softmax v = (log w * F)'/beta). Nothing is differentiated in s:
layers are coupled only by their averages F over earlier ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..density import Density, Discretisation, Functional, Law, Scheme
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..meanfield.circle import Fourier
from ..meanfield.galerkin import Basis, Galerkin
from ..meanfield.kernel import KernelSeries, kernel_series
from ..meanfield.sampling import on_circle, row_quantiles
from ..meanfield.starting import LARGEST_UNDERSHOOT, MASS_TOLERANCE
from ..measure import Measure
from ..runtime import Scalar
from ..space import Space, Sphere
from ..terms import Attention
from ..trajectory import Trajectory
from ..weights import shapes_of
from .graphon import Averages

if TYPE_CHECKING:
    import xarray as xr

# A density at position s of points (m, 2), in any units.
LawByPosition = Callable[[float, Float[Array, "m 2"]], Float[Array, " m"]]
MOST_POSITIONS = 4096


class LayeredDensity(Discretisation):
    """Densities on the circle at positions s_i = i/positions, i = 0..positions, each in Fourier modes.

    The state has one row (c_0, a_1..a_M, b_1..b_M) per position, as `Fourier(modes)`. Averages over earlier
    positions are of order 2 in 1/positions where f is smooth in s, and cost positions^2 modes; angles are
    resolved as by `Fourier`. A start that jumps in s is averaged to order 1 at the jump. `tail` is the size
    of the highest modes at which a run stops.

    What is read off a run (order_parameter, run.densities, pictures) is the law of all tokens together,
    int_0^1 f ds; `by_position(run)` gives every layer.
    """

    positions: int = eqx.field(static=True)
    modes: int = eqx.field(static=True)
    tail: float = eqx.field(static=True, default=1e-6)
    axes: ClassVar[tuple[str, ...]] = ("position", "mode")
    spec_name: ClassVar[str] = "layered"

    def __check_init__(self) -> None:
        require(
            isinstance(self.positions, int) and 1 <= self.positions <= MOST_POSITIONS,
            f"LayeredDensity needs 1 to {MOST_POSITIONS} positions, got {self.positions!r}",
        )
        Fourier(self.modes, self.tail)  # refuses modes and tails that are none

    @property
    def table_size(self) -> float:
        return 20.0 * float(np.prod(self.shape)) + self.positions**2

    @property
    def space(self) -> Space:
        return Sphere(2)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.positions + 1, 2 * self.modes + 1)

    @property
    def largest_tail(self) -> float:
        return self.tail

    @property
    def places(self) -> np.ndarray:
        """s_i = i/positions."""
        return np.arange(self.positions + 1) / self.positions

    @property
    def labels(self) -> dict[str, np.ndarray]:
        return {"position": self.places}

    def scheme(self) -> LayeredScheme:
        return LayeredScheme(Fourier(self.modes, self.tail).scheme(), self.positions)

    def project(self, law: Law) -> Array:
        row = Fourier(self.modes, self.tail).project(law)
        return jnp.broadcast_to(row, self.shape)

    def check_state(self, state: Array) -> None:
        scheme = self.scheme()
        mass, lowest = float(scheme.mass(state)), float(scheme.lowest(state))
        require(
            abs(mass - 1.0) <= MASS_TOLERANCE,
            f"every position has mass 1 (the first coefficient of its row), got {mass:.6g}; divide by it",
        )
        require(
            lowest >= -LARGEST_UNDERSHOOT,
            f"these coefficients make a density that falls to {lowest:.3g}; a density is not negative",
        )

    def check(self, model: Dynamics) -> None:
        _check_model(model)

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """A prompt: token i, in reading order, from the law at s = (i + 1/2)/n, linear between positions."""
        for row in state:
            Fourier(self.modes, self.tail).distribution(row)  # refuses negative densities
        place = (np.arange(n) + 0.5) / n * self.positions
        before = np.minimum(place.astype(int), self.positions - 1)

        def waves(rows: slice) -> np.ndarray:
            along = (place[rows] - before[rows])[:, None]
            row = (1 - along) * state[before[rows]] + along * state[before[rows] + 1]
            cos, sin = row[:, 1 : self.modes + 1], row[:, self.modes + 1 :]
            return (cos - 1j * sin) / np.sqrt(2.0) / row[:, :1]

        return on_circle(row_quantiles(waves, n, self.modes, random.uniform(size=n)))

    def advice(self) -> str:
        return (
            f"its highest modes have grown to {self.tail:g}: use more than modes={self.modes}, a shorter "
            "time, or tokens (flock.uniform), which follow clusters as they form"
        )


def from_law_by_position(on: LayeredDensity, law: LawByPosition) -> Density:
    """The density whose layer at s has the values `law(s, points)` up to a factor; see `laws`."""
    each = Fourier(on.modes, on.tail)
    rows = [each.project(functools.partial(law, float(s))) for s in on.places]
    return Density(on, jnp.stack(rows))


def _check_model(model: Dynamics) -> None:
    """Refuse models that are not causal attention on the circle, with a sentence."""
    require(
        model.space in (None, Sphere(2)),
        f"layers of densities live on the circle Sphere(2), the model on {model.space}",
    )
    require(
        model.is_plain_flow,
        "layers of densities hold directions only; use post-LN in original coordinates, or tokens",
    )
    require(
        model.noise is None or model.temperature() is not None,
        "noise shared by all tokens moves the limit at random; use Brownian(temperature), or tokens",
    )
    term = model.terms.attention()
    plain = (
        term is not None
        and term.kind.exponential
        and term.weights.is_fixed
        and not shapes_of(term.weights)
    )
    require(
        plain,
        "layers of densities follow one softmax or unnormalised attention with Q = K = I and V = c I; use "
        "KineticFlow(beta, slope) or CausalSA(beta, slope=...), or tokens for anything else",
    )
    assert term is not None
    require(
        term.mask.causal,
        f"{type(term.mask).__name__} lets tokens see later ones, and then every position has the same field; "
        "use Fourier(modes), or a causal model such as KineticFlow(beta, slope)",
    )


def only_attention(model: Dynamics) -> Attention:
    """The attention of a model that has passed `check`."""
    return model.attentions()[0]


class Coupling(eqx.Module):
    """What a model needs once for a run: its kernel by degree, and averages over earlier positions."""

    kernel: KernelSeries
    averages: Averages
    matrix: Float[Array, "point point"]

    @staticmethod
    def of(term: Attention, basis: Basis, positions: int) -> Coupling:
        """The tables of an attention term."""
        averages = Averages.of(term.mask, positions)
        return Coupling(kernel_series(term.beta, 2, basis.degree), averages, averages.matrix())


def velocity(
    term: Attention,
    basis: Basis,
    kernel: KernelSeries,
    t: Scalar,
    seen: Float[Array, "point mode"],
) -> Float[Array, "point node"]:
    """The field of attention at the averaged densities `seen`, at the nodes: w' * F, or with softmax."""
    degrees = basis.degrees.astype(int)
    value = term.weights.at(t).V
    scale = jnp.ones(()) if value is None else value
    pull = jax.vmap(basis.gradient)(kernel.potential[degrees] * seen)[..., 0]
    if not term.kind.averages:
        return scale * term.kind.speed(term.beta) * pull
    return scale * pull / jax.vmap(basis.synthesise)(kernel.partition[degrees] * seen)


class LayeredScheme(Scheme):
    """The weak form of every layer, coupled by `coupling`."""

    layer: Galerkin
    positions: int = eqx.field(static=True)
    coupling: Coupling | None = None

    @property
    def basis(self) -> Basis:
        """Fourier modes with their nodes."""
        return self.layer.basis

    def prepared(self, model: Dynamics) -> LayeredScheme:
        coupling = Coupling.of(only_attention(model), self.basis, self.positions)
        return LayeredScheme(self.layer, self.positions, coupling)

    def transport(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        assert self.coupling is not None
        seen = self.coupling.matrix @ state
        field = velocity(only_attention(model), self.basis, self.coupling.kernel, t, seen)
        density = jax.vmap(self.basis.synthesise)(state)
        return jax.vmap(self.basis.against_gradients)((density * field)[..., None])

    def damping(self, model: Dynamics) -> Array | None:
        return self.layer.damping(model)

    def power(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """0: forces that look back only are no gradient, so there is no identity to compare with."""
        return jnp.zeros(())

    def free_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """0: see `power`."""
        return jnp.zeros(())

    def functionals(self) -> dict[str, Functional]:
        return {
            "order_parameter": lambda model, t, state: self.layer.order_parameter(self.all(state)),
            "entropy": lambda model, t, state: self.layer.entropy(self.all(state)),
            "largest_density": lambda model, t, state: self.layer.largest(self.all(state)),
            "peaks": lambda model, t, state, above: self.basis.peaks(self.all(state), above),
        }

    def all(self, state: Array) -> Float[Array, " mode"]:
        """int_0^1 f ds by the trapezoid rule: the law of all tokens together."""
        ends = (state[0] + state[-1]) / 2
        return (jnp.sum(state[1:-1], axis=0) + ends) / self.positions

    def mass(self, state: Array) -> Array:
        """The mass of the position that is farthest from 1."""
        masses = state[:, 0]
        return masses[jnp.argmax(jnp.abs(masses - 1.0))]

    def lowest(self, state: Array) -> Array:
        return jnp.min(jax.vmap(self.layer.lowest)(state))

    def tail(self, state: Array) -> Array:
        return jnp.max(jax.vmap(self.layer.tail)(state))

    def measure(self, state: Array) -> Measure:
        return self.layer.measure(self.all(state))

    def values(self, state: Array) -> Float[Array, " node"]:
        return self.layer.values(self.all(state))

    def nodes(self, state: Array) -> Float[Array, "node d"]:
        return self.layer.nodes(self.all(state))

    def layers(self, state: Array) -> Float[Array, "point node"]:
        """The density of every position at the nodes."""
        return jax.vmap(self.layer.values)(state)


def by_position(run: Trajectory) -> xr.DataArray:
    """The density of every position at the nodes, for every saved state; 1 is uniform."""
    import xarray as xr

    on = run.blank_density.on if run.is_density else None
    if not isinstance(on, LayeredDensity):
        raise InputError(
            "by_position reads runs of LayeredDensity(positions, modes); use run.densities"
        )
    lead = run.axes["states"][: run.axes["states"].index("time") + 1]
    scheme = on.scheme()
    values = scheme.layers
    for _ in lead:
        values = eqx.filter_vmap(values)
    nodes = np.asarray(scheme.basis.nodes)
    coords = {name: run.coords[name] for name in lead if name in run.coords}
    return xr.DataArray(
        np.asarray(values(jnp.asarray(run.array("states")))),
        dims=(*lead, "position", "angle"),
        coords={
            **coords,
            "position": on.places,
            "angle": np.mod(np.arctan2(nodes[:, 1], nodes[:, 0]), 2 * np.pi),
        },
        name="density",
    )
