"""The sphere in R^3: real spherical harmonics, FFT in longitude and Legendre matrices in latitude.

rho = sum_{l, |m| <= l} c_lm Y_lm with Y_l0 = P_l0(cos theta), Y_lm = sqrt2 P_lm cos(m phi) and
Y_{l,-m} = sqrt2 P_lm sin(m phi), orthonormal for the uniform probability. theta is the angle to the first
axis e_1 (so that zonal states are those of Zonal(3, degree)), phi the longitude from e_2 to e_3; the
frame is (e_theta, e_phi). The nodes are Gauss in cos theta and regular in phi, and integrate products of
three harmonics exactly.
"""

from __future__ import annotations

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..density import Discretisation, Law
from ..dynamics import Dynamics
from ..errors import TooLargeError, require
from ..host_memory import GIB
from ..measure import Measure
from ..memory import available_bytes
from ..space import Space, Sphere
from .checks import check_model
from .galerkin import Basis, Galerkin
from .legendre import associated_legendre, associated_slopes, gauss
from .resolving import check_forces
from .sampling import AxialLaw, check_undershoot, row_quantiles
from .starting import check_coefficients, project

MOST_DEGREES = 512
# Undershoots are looked for on the nodes of at least this degree.
FEWEST_CHECKED = 24
# A density below this is rounding of its series.
SMALLEST_DENSITY = 1e-18
# Arrays of the size of the score matrix that a sum over the nodes holds at once.
COPIES_OF_SCORES = 3


class Harmonics(Discretisation):
    """Densities on the sphere in R^3, with spherical harmonics up to `degree`.

    The state has (degree + 1)^2 numbers, c_lm at the place l^2 + l + m. A step costs O(degree^3); with
    weight matrices, general kernels or masks the field is summed over the (9/2) degree^2 nodes, pair by
    pair. `tail` as in Fourier.
    """

    degree: int = eqx.field(static=True)
    tail: float = eqx.field(static=True, default=1e-6)
    axes: ClassVar[tuple[str, ...]] = ("mode",)
    spec_name: ClassVar[str] = "harmonics"

    def __check_init__(self) -> None:
        require(
            isinstance(self.degree, int) and 1 <= self.degree <= MOST_DEGREES,
            f"Harmonics needs a degree from 1 to {MOST_DEGREES}, got {self.degree!r}",
        )
        require(self.tail > 0, f"the tail at which to stop must be positive, got {self.tail}")

    @property
    def table_size(self) -> float:
        return 3.0 * self.degree**3

    @property
    def space(self) -> Space:
        return Sphere(3)

    @property
    def shape(self) -> tuple[int, ...]:
        return ((self.degree + 1) ** 2,)

    @property
    def largest_tail(self) -> float:
        return self.tail

    def scheme(self) -> Galerkin:
        return Galerkin(_basis(self.degree))

    def project(self, law: Law) -> Array:
        return project(self.scheme().basis, _basis(self._finer), law, self.tail)

    @property
    def _finer(self) -> int:
        """The degree of the basis that laws and forces are compared on."""
        return 3 * self.degree // 2 + 3

    def check_state(self, state: Array) -> None:
        check_coefficients(self.scheme().basis, state)

    def check(self, model: Dynamics) -> None:
        check_model(model, self)
        if any(not term.is_plain for term in model.attentions()):
            # The forces are compared once with those on a finer basis.
            _check_pairs(self.degree, self._finer)

    def check_forces(self, model: Dynamics, state: Array) -> None:
        basis, finer = _basis(self.degree), _basis(self._finer)
        check_forces(model, state, basis, finer, f"use more than degree={self.degree}")

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """u = <x, e_1> by the inverse of its law, then the longitude by that of its law given u."""
        advice = f"use more than degree={self.degree}"
        # On the nodes of a finer basis: higher degrees stand behind the lower ones in a state.
        finer = _basis(max(self._finer, FEWEST_CHECKED))
        values = finer.synthesise(jnp.zeros((finer.degree + 1) ** 2).at[: state.size].set(state))
        check_undershoot(-float(jnp.minimum(values, 0.0) @ finer.weights), advice)
        degree = np.arange(self.degree + 1)
        u = AxialLaw(3, state[degree * (degree + 1)]).quantiles(random.uniform(size=n), advice)
        longitude = row_quantiles(
            lambda rows: self._waves_around(state, u[rows]), n, self.degree, random.uniform(size=n)
        )
        s = np.sqrt((1 - u) * (1 + u))
        return np.stack([u, s * np.cos(longitude), s * np.sin(longitude)], axis=-1)

    def _waves_around(self, state: np.ndarray, u: np.ndarray) -> np.ndarray:
        """c_k(u)/c_0(u) of the density along the circle of latitude u, (len(u), degree)."""
        basis = _basis(self.degree)
        orders = np.asarray(basis.orders(jnp.asarray(state)))
        waves = np.einsum("mlt,ml->tm", associated_legendre(self.degree, u), orders)
        return waves[:, 1:] / 2.0 / np.maximum(waves[:, :1].real, SMALLEST_DENSITY)

    def advice(self) -> str:
        return (
            f"its highest degrees have grown to {self.tail:g}: use more than "
            f"degree={self.degree}, Zonal(3, degree) if the measure has an axis, or tokens"
        )


def grid_size(degree: int) -> tuple[int, int]:
    """Latitudes and longitudes that integrate products of three harmonics exactly."""
    return (3 * degree) // 2 + 2, 3 * degree + 2 + degree % 2


def _check_pairs(degree: int, finer: int) -> None:
    """Refuse sums over all pairs of nodes, those of the finer basis, that do not fit in memory."""
    latitudes, longitudes = grid_size(finer)
    count = latitudes * longitudes
    needed, there = COPIES_OF_SCORES * 8.0 * count**2, available_bytes()
    if needed > there:
        raise TooLargeError(
            f"attention with matrices, masks or other kernels is summed over all pairs of {count} nodes: "
            f"Harmonics({degree}) needs {needed / GIB:.1f} GiB of {there / GIB:.1f}; use a smaller degree "
            "(memory grows like its fourth power), or Zonal(3, degree) if the measure has an axis"
        )


class HarmonicBasis(Basis):
    """Y_lm on Gauss latitudes and regular longitudes; nodes are (latitude, longitude) in rows."""

    nodes: Float[Array, "node 3"]
    weights: Float[Array, " node"]
    frame: Float[Array, "node 2 3"]
    degrees: Float[Array, " mode"]
    # Of order m and degree l at every latitude: P_lm, its slope in theta, and m P_lm/sin theta.
    legendre: Float[Array, "order degree latitude"]
    slopes: Float[Array, "order degree latitude"]
    turning: Float[Array, "order degree latitude"]
    latitude_weights: Float[Array, " latitude"]
    # Places of c_lm and c_{l,-m} in the state, and of every state entry in (order, degree).
    cosines: Int[Array, "order degree"]
    sines: Int[Array, "order degree"]
    order_of: Int[Array, " mode"]
    degree_of: Int[Array, " mode"]
    degree: int = eqx.field(static=True)
    longitudes: int = eqx.field(static=True)

    @property
    def space(self) -> Space:
        return Sphere(3)

    def synthesise(self, c: Float[Array, " mode"]) -> Float[Array, " node"]:
        return self._values(_to_latitudes(self.legendre, self.orders(c)))

    def gradient(self, c: Float[Array, " mode"]) -> Float[Array, "node 2"]:
        orders = self.orders(c)
        south = self._values(_to_latitudes(self.slopes, orders))
        # d/dphi of (A - iB) e^{i m phi} multiplies it by i m.
        east = self._values(1j * _to_latitudes(self.turning, orders))
        return jnp.stack([south, east], axis=-1)

    def analyse(self, values: Float[Array, " node"]) -> Float[Array, " mode"]:
        return self._state(_to_degrees(self.legendre, self._spectrum(values)))

    def against_gradients(self, flux: Float[Array, "node 2"]) -> Float[Array, " mode"]:
        south, east = self._spectrum(flux[:, 0]), self._spectrum(flux[:, 1])
        # The adjoint of multiplication by i m.
        return self._state(_to_degrees(self.slopes, south) - 1j * _to_degrees(self.turning, east))

    def measure(self, masses: Float[Array, " node"]) -> Measure:
        return Measure(Sphere(3), self.nodes, masses, ordered=False)

    def orders(self, c: Float[Array, " mode"]) -> Array:
        """A_lm - i B_lm with rho = Re sum (A - iB) P_lm e^{i m phi}: the coefficients as (m, l)."""
        zonal = jnp.arange(self.degree + 1)[:, None] == 0
        inside = self.cosines >= 0
        even = jnp.where(inside, c[self.cosines], 0.0)
        odd = jnp.where(inside & ~zonal, c[self.sines], 0.0)
        return jnp.where(zonal, 1.0, np.sqrt(2.0)) * (even - 1j * odd)

    def _state(self, orders: Array) -> Float[Array, " mode"]:
        """The coefficients from integrals of values against P_lm e^{-i m phi}."""
        scaled = jnp.where(self.order_of == 0, 1.0, np.sqrt(2.0))
        found = orders[jnp.abs(self.order_of), self.degree_of]
        return scaled * jnp.where(self.order_of >= 0, found.real, -found.imag)

    def _values(self, waves: Array) -> Float[Array, " node"]:
        """Re sum_m waves_m e^{i m phi} on the longitudes."""
        half = jnp.concatenate([waves[:1], waves[1:] / 2.0]).T
        spectrum = jnp.zeros((half.shape[0], self.longitudes // 2 + 1), complex)
        spectrum = spectrum.at[:, : self.degree + 1].set(half)
        return (jnp.fft.irfft(spectrum, self.longitudes, axis=-1) * self.longitudes).ravel()

    def _spectrum(self, values: Float[Array, " node"]) -> Array:
        """Mean over longitudes of values e^{-i m phi}, times the weights of the latitudes."""
        rows = values.reshape(-1, self.longitudes)
        waves = jnp.fft.rfft(rows, axis=-1)[:, : self.degree + 1] / self.longitudes
        return (waves * self.latitude_weights[:, None]).T


# A table is real: two real products, since one complex product would turn the table complex first.
def _to_latitudes(table: Float[Array, "order degree latitude"], orders: Array) -> Array:
    return _real_times(table, orders, "mlt,mlc->mtc")


def _to_degrees(table: Float[Array, "order degree latitude"], waves: Array) -> Array:
    return _real_times(table, waves, "mlt,mtc->mlc")


def _real_times(table: Array, numbers: Array, indices: str) -> Array:
    parts = jnp.einsum(indices, table, jnp.stack([numbers.real, numbers.imag], axis=-1))
    return jax.lax.complex(parts[..., 0], parts[..., 1])


@functools.lru_cache(maxsize=8)
def _basis(degree: int) -> HarmonicBasis:
    latitudes, longitudes = grid_size(degree)
    u, mass = gauss(3, latitudes)
    legendre = associated_legendre(degree, u)
    order = np.arange(degree + 1)[:, None]
    turning = order[..., None] * legendre / np.sqrt((1 - u) * (1 + u))
    # c_lm stands at l^2 + l + m.
    first = np.arange(degree + 1) * (np.arange(degree + 1) + 1)
    inside = order <= np.arange(degree + 1)
    degree_of = np.repeat(np.arange(degree + 1), 2 * np.arange(degree + 1) + 1)
    place = np.arange((degree + 1) ** 2)
    nodes, frame = _grid(u, longitudes)
    # Kept for every later run: also when first made inside a compiled function.
    with jax.ensure_compile_time_eval():
        return HarmonicBasis(
            nodes=jnp.asarray(nodes),
            weights=jnp.asarray(np.repeat(mass / longitudes, longitudes)),
            frame=jnp.asarray(frame),
            degrees=jnp.asarray(degree_of, dtype=float),
            legendre=jnp.asarray(legendre),
            slopes=jnp.asarray(associated_slopes(legendre, u)),
            turning=jnp.asarray(turning),
            latitude_weights=jnp.asarray(mass),
            cosines=jnp.asarray(np.where(inside, first + order, -1)),
            sines=jnp.asarray(np.where(inside, first - order, -1)),
            order_of=jnp.asarray(place - first[degree_of]),
            degree_of=jnp.asarray(degree_of),
            degree=degree,
            longitudes=longitudes,
        )


def _grid(u: np.ndarray, longitudes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and (e_theta, e_phi) at every latitude and longitude."""
    phi = 2 * np.pi * np.arange(longitudes) / longitudes
    u, phi = (part.ravel() for part in np.meshgrid(u, phi, indexing="ij"))
    s, zero = np.sqrt((1 - u) * (1 + u)), np.zeros_like(u)
    cos, sin = np.cos(phi), np.sin(phi)
    nodes = np.stack([u, s * cos, s * sin], axis=-1)
    south = np.stack([-s, u * cos, u * sin], axis=-1)
    east = np.stack([zero, -sin, cos], axis=-1)
    return nodes, np.stack([south, east], axis=1)
