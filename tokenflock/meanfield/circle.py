"""The circle: Fourier series, products on a grid of three times the modes."""

from __future__ import annotations

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.fft import next_fast_len

from ..density import Discretisation, Law
from ..dynamics import Dynamics
from ..errors import require
from ..measure import Measure
from ..runtime import ArrayLike
from ..space import Space, Sphere
from .cdf import CELLS_PER_MODE, Distribution, trimmed
from .checks import check_model
from .galerkin import Basis, Galerkin
from .resolving import check_forces
from .sampling import FEWEST_CELLS, check_rising, on_circle
from .starting import check_coefficients, project

# Nodes per mode: products of two series of degree M have degree 2M, and 3M nodes resolve their
# coefficients up to M; forces that are finer are refused (resolving.py).
NODES_PER_MODE = 3
MOST_MODES = 1 << 20


class Fourier(Discretisation):
    """Densities on the circle with Fourier modes up to `modes`.

    The state is (c_0, a_1..a_M, b_1..b_M): rho = c_0 + sqrt(2) sum_k (a_k cos k theta + b_k sin k theta),
    relative to d theta/(2 pi). `tail` is the size of the highest modes at which a run stops: attention
    sharpens densities without end, and beyond it the modes no longer hold them.

    What is promised: the mass c_0 = 1 is kept exactly, and on smooth data errors fall faster than any
    power of `modes`. Positivity is not enforced: no filter and no limiter touches the modes, for they
    would cost that accuracy. A resolved density undershoots by no more than its missing modes, of the size
    of `tail`; run.health["lowest_density"] tells the smallest value at the nodes. Quantiles keep
    positivity.
    """

    modes: int = eqx.field(static=True)
    tail: float = eqx.field(static=True, default=1e-6)
    axes: ClassVar[tuple[str, ...]] = ("mode",)
    spec_name: ClassVar[str] = "fourier"

    def __check_init__(self) -> None:
        require(
            isinstance(self.modes, int) and 1 <= self.modes <= MOST_MODES,
            f"Fourier needs 1 to {MOST_MODES} modes, got {self.modes!r}",
        )
        require(self.tail > 0, f"the tail at which to stop must be positive, got {self.tail}")

    @property
    def space(self) -> Space:
        return Sphere(2)

    @property
    def shape(self) -> tuple[int, ...]:
        return (2 * self.modes + 1,)

    @property
    def largest_tail(self) -> float:
        return self.tail

    def scheme(self) -> Galerkin:
        return Galerkin(_basis(self.modes))

    def project(self, law: Law) -> Array:
        return project(_basis(self.modes), _basis(2 * self.modes + 7), law, self.tail)

    def check_state(self, state: Array) -> None:
        check_coefficients(_basis(self.modes), state)

    def check(self, model: Dynamics) -> None:
        check_model(model, self)
        model.terms.check(_basis(self.modes).cloud)

    def check_forces(self, model: Dynamics, state: Array) -> None:
        basis, finer = _basis(self.modes), _basis(2 * self.modes + 7)
        check_forces(model, state, basis, finer, f"use more than modes={self.modes}")

    def distribution(self, state: ArrayLike) -> Distribution:
        """The distribution function of a state, refused where the density is negative."""
        c = np.asarray(state)
        cos, sin = c[1 : self.modes + 1], c[self.modes + 1 :]
        found = trimmed((cos - 1j * sin) / np.sqrt(2.0) / c[0])
        advice = f"use more modes than {self.modes}, or Quantiles(n)"
        check_rising(found.table(max(FEWEST_CELLS, CELLS_PER_MODE * self.modes))[1], advice)
        return found

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """By the inverse of the distribution function, to rounding."""
        return on_circle(self.distribution(state).quantiles(random.uniform(size=n)))

    def advice(self) -> str:
        return (
            f"its highest modes have grown to {self.tail:g}: use more than "
            f"modes={self.modes}, or Quantiles(n), which follows densities until they are atoms"
        )


class FourierBasis(Basis):
    """1, sqrt2 cos k theta, sqrt2 sin k theta on equally spaced angles, by FFT."""

    nodes: Float[Array, "node 2"]
    weights: Float[Array, " node"]
    frame: Float[Array, "node 1 2"]
    degrees: Float[Array, " mode"]
    degree: int = eqx.field(static=True)
    # The nodes as tokens, checked once.
    cloud: Measure

    @property
    def space(self) -> Space:
        return Sphere(2)

    def synthesise(self, c: Float[Array, " mode"]) -> Float[Array, " node"]:
        count, M = self.weights.size, self.degree
        high = (c[1 : M + 1] - 1j * c[M + 1 :]) / np.sqrt(2.0)
        spectrum = (
            jnp.zeros(count // 2 + 1, complex)
            .at[: M + 1]
            .set(jnp.concatenate([c[:1].astype(complex), high]))
        )
        return jnp.fft.irfft(spectrum, count) * count

    def analyse(self, values: Float[Array, " node"]) -> Float[Array, " mode"]:
        spectrum = jnp.fft.rfft(values)[: self.degree + 1] / self.weights.size
        high = np.sqrt(2.0) * spectrum[1:]
        return jnp.concatenate([spectrum[:1].real, high.real, -high.imag])

    def gradient(self, c: Float[Array, " mode"]) -> Float[Array, "node 1"]:
        M, k = self.degree, jnp.arange(1, self.degree + 1)
        return self.synthesise(jnp.concatenate([jnp.zeros(1), k * c[M + 1 :], -k * c[1 : M + 1]]))[
            :, None
        ]

    def against_gradients(self, flux: Float[Array, "node 1"]) -> Float[Array, " mode"]:
        c, M = self.analyse(flux[:, 0]), self.degree
        k = jnp.arange(1, M + 1)
        return jnp.concatenate([jnp.zeros(1), -k * c[M + 1 :], k * c[1 : M + 1]])

    def peaks(self, c: Float[Array, " mode"], above: float) -> Float[Array, ""]:
        values = self.synthesise(c)
        higher = (values > jnp.roll(values, 1)) & (values >= jnp.roll(values, -1))
        return jnp.sum(higher & (values > above)).astype(float)

    def measure(self, masses: Float[Array, " node"]) -> Measure:
        return self.cloud.weighing(masses / jnp.sum(masses))


@functools.lru_cache(maxsize=32)
def _basis(modes: int) -> FourierBasis:
    # Twice a length without large prime factors: the transforms are then several times faster.
    half = next_fast_len(-(-(NODES_PER_MODE * modes + 2) // 2), real=True)
    assert half is not None
    count = 2 * half
    angles = 2 * np.pi * np.arange(count) / count
    cos, sin = np.cos(angles), np.sin(angles)
    degrees = np.concatenate([[0], np.arange(1, modes + 1), np.arange(1, modes + 1)])
    # Kept for every later run: also when first made inside a compiled function.
    with jax.ensure_compile_time_eval():
        nodes = jnp.asarray(np.stack([cos, sin], -1))
        return FourierBasis(
            nodes=nodes,
            weights=jnp.full(count, 1.0 / count),
            frame=jnp.asarray(np.stack([-sin, cos], -1)[:, None]),
            degrees=jnp.asarray(degrees, dtype=float),
            degree=modes,
            cloud=Measure(Sphere(2), nodes, ordered=False),
        )
