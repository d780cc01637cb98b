"""A measure of infinitely many tokens, held by finitely many numbers.

`Density(on, state)` is a state like `Measure`, and `solve` moves it by the same models: it is the limit
n -> infinity of the tokens, d_t mu + div(mu v[mu]) = T Laplacian mu. `on` says how it is held:

| on | measures | numbers |
|---|---|---|
| Fourier(modes) | densities on the circle | Fourier coefficients |
| Quantiles(n) | any measure on the circle, also as it becomes atoms | equal-mass characteristics |
| Zonal(d, degree) | densities on S^{d-1} that are symmetric about an axis | Gegenbauer coefficients |
| Harmonics(degree) | densities on S^2 | spherical-harmonic coefficients |
| LayeredDensity(positions, modes) | a density on the circle per position of a prompt | coefficients of each |
| Moments(d) | Gaussian measures on R^d | mean and covariance |

Densities are relative to the uniform probability: the uniform measure has density 1 everywhere.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .dynamics import Dynamics
from .errors import InputError, require
from .measure import Measure
from .runtime import ArrayLike, Scalar, as_array, is_traced, known
from .space import Space

# A density at points (m, d), in any units: it is divided by its integral.
Law = Callable[[Float[Array, "m d"]], Float[Array, " m"]]
# f(model, t, state, **parameters of the observable)
Functional = Callable[..., Array]


class Scheme(eqx.Module):
    """A discretisation with its tables: what the solver needs at every step."""

    def settled(self, model: Dynamics, state: Array, implicit: bool) -> Scheme:
        """With the choices compiled code cannot make; `implicit`: derivatives of `transport` are asked."""
        return self

    @abc.abstractmethod
    def prepared(self, model: Dynamics) -> Scheme:
        """With whatever the model's terms need, computed once for a run."""

    @abc.abstractmethod
    def transport(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """The time derivative of the state by the model's field, without noise."""

    @abc.abstractmethod
    def damping(self, model: Dynamics) -> Array | None:
        """Rates r >= 0 of the noise, which adds -r * state; None where there is none.

        They are treated implicitly. A scheme that cannot write its noise so adds it in `transport`.
        """

    @abc.abstractmethod
    def power(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """d/dt of `free_energy` by the dissipation identity, from the field alone."""

    @abc.abstractmethod
    def free_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """E[mu] - T int rho log rho: what the flow increases where it is a gradient flow."""

    @abc.abstractmethod
    def mass(self, state: Array) -> Array:
        """The total mass, 1 up to rounding."""

    @abc.abstractmethod
    def lowest(self, state: Array) -> Array:
        """The smallest density, negative where the discretisation has undershot."""

    @abc.abstractmethod
    def tail(self, state: Array) -> Array:
        """Share of the state in its finest scales; beyond the discretisation's `tail` it is lost."""

    def strain(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """What ends a run where it reaches the discretisation's `largest_tail`: mostly the tail."""
        return self.tail(state)

    @abc.abstractmethod
    def functionals(self) -> dict[str, Functional]:
        """Observables with a formula of their own, by name; others are read off `measure`."""

    @abc.abstractmethod
    def measure(self, state: Array) -> Measure:
        """Points and weights with the same integrals, or InputError where there are none."""

    @abc.abstractmethod
    def values(self, state: Array) -> Float[Array, " node"]:
        """The density at `nodes`, relative to the uniform probability."""

    def nodes(self, state: Array) -> Float[Array, "node d"]:
        """The points at which `values` are given."""
        raise InputError(f"{type(self).__name__} does not give its density at points")


class Discretisation(eqx.Module):
    """How a density is held by finitely many numbers: a value with plain numbers in it."""

    # Names of the axes of the state, for labelled results.
    axes: ClassVar[tuple[str, ...]]
    # What files of runs call it: density.on = "fourier".
    spec_name: ClassVar[str] = ""
    # What the end of a run at `largest_tail` is called (outcomes).
    lost_outcome: ClassVar[str] = "unresolved"

    @property
    @abc.abstractmethod
    def space(self) -> Space:
        """Where the measure lives."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the state."""

    @property
    @abc.abstractmethod
    def largest_tail(self) -> float:
        """The tail at which a run stops, since finer scales than the discretisation's have grown."""

    @property
    def sizes(self) -> dict[str, int]:
        """The axes of the state by name, with their sizes."""
        return dict(zip(self.axes, self.shape, strict=True))

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """Values along the axes of the state that have some."""
        return {}

    @property
    def table_size(self) -> float:
        """About how many numbers its tables hold, told before they are made."""
        return 20.0 * float(np.prod(self.shape))

    @abc.abstractmethod
    def scheme(self) -> Scheme:
        """The tables, made once per discretisation."""

    @abc.abstractmethod
    def project(self, law: Law) -> Array:
        """The state of a density given at points, made a probability."""

    def check_state(self, state: Array) -> None:
        """Refuse finite numbers that are no measure, with a sentence."""

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """The points (n, d) of n tokens of the measure of a state; InputError where it is no law."""
        raise InputError(f"{type(self).__name__} does not draw tokens; use as_measure()")

    @abc.abstractmethod
    def check(self, model: Dynamics) -> None:
        """Refuse a model this discretisation cannot follow, with a sentence."""

    def check_forces(self, model: Dynamics, state: Array) -> None:
        """Refuse a model whose forces on this state the discretisation does not resolve."""

    def controller(
        self, given: diffrax.AbstractStepSizeController
    ) -> diffrax.AbstractStepSizeController:
        """The step-size controller to use in the place of the one that was asked for."""
        return given

    @abc.abstractmethod
    def advice(self) -> str:
        """What to do when the finest scales have grown: another discretisation, or a larger one."""

    def last_words(self, final_time: Array, final_tail: Array) -> dict[str, Any]:
        """More for the health of a run: what its last time and strain say, one of each per beta."""
        return {}


def check_draw(n: object, seed: object) -> None:
    """Refuse numbers of tokens and seeds that are none."""
    whole = (int, np.integer)
    require(isinstance(n, whole) and bool(n >= 2), f"need an integer n >= 2 tokens, got n={n!r}")
    require(
        isinstance(seed, whole) and 0 <= int(seed) < 1 << 63,
        f"need an integer seed from 0 to 2^63 - 1, got seed={seed!r}",
    )


class Density(eqx.Module):
    """A measure held by the numbers `state` on the discretisation `on`."""

    on: Discretisation
    state: Float[Array, "*state"]

    @known()
    def __init__(self, on: Discretisation, state: ArrayLike):
        self.on = on
        self.state = as_array(state)
        require(
            self.state.shape == on.shape,
            f"a density on {on} has a state of shape {on.shape}, got {self.state.shape}",
        )
        if not is_traced(self.state):
            require(
                bool(jnp.all(jnp.isfinite(self.state))), "the density has NaN or infinity in it"
            )
            on.check_state(self.state)

    @staticmethod
    @known()
    def from_law(on: Discretisation, law: Law) -> Density:
        """The density whose values at points are `law(points)` up to a factor; see `laws`."""
        return Density(on, on.project(law))

    @property
    def space(self) -> Space:
        """Where the measure lives."""
        return self.on.space

    @property
    def values(self) -> Float[Array, " node"]:
        """The density at the nodes, relative to the uniform probability."""
        return self.on.scheme().values(self.state)

    @property
    def mass(self) -> Float[Array, ""]:
        """The total mass, 1 up to rounding."""
        return self.on.scheme().mass(self.state)

    def as_measure(self) -> Measure:
        """Points and weights with the same integrals: quadrature nodes, or equal-mass quantiles."""
        return self.on.scheme().measure(self.state)

    def sample(self, n: int, seed: int) -> Measure:
        """n independent tokens of this law, exact up to the discretisation; the same seed gives the same.

        A layered density gives a prompt: token i from the law at the position (i + 1/2)/n. A density that
        is negative on more than a mass of 1e-6 is refused. For a law without a discretisation:
        `laws.sample`.
        """
        check_draw(n, seed)
        random = np.random.default_rng(seed)
        return Measure(self.space, self.on.draw(np.asarray(self.state), int(n), random))

    def at(self, state: Array) -> Density:
        """Another state of the same discretisation (no checks: used inside compiled code)."""
        return eqx.tree_at(lambda density: density.state, self, state)


class HeldDensity(eqx.Module):
    """A density at one moment, with the tables of its discretisation: what observables see of it."""

    density: Density
    scheme: Scheme

    def as_measure(self) -> Measure:
        """Points and weights with the same integrals."""
        return self.scheme.measure(self.density.state)

    def functional(self, name: str) -> Functional | None:
        """f(model, t, **parameters) of an observable with a formula of its own here."""
        own = self.scheme.functionals().get(name)
        if own is None:
            return None
        return lambda model, t, **parameters: own(model, t, self.density.state, **parameters)
