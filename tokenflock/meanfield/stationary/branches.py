r"""Stationary states at all temperatures: branches from the uniform state, through their folds.

At temperature T_l the uniform state loses stability to harmonics of degree l, and a branch of axially
symmetric states leaves it along the zonal harmonic of that degree. It is followed by length in
(coefficients, log T). A pitchfork that leaves towards lower temperature is continuous; one that leaves
towards higher temperature is unstable until it folds back, and between the fold and T_1 two stable states
coexist: the first-order point is where their free energies cross.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...density import Density, Discretisation
from ...dynamics import Dynamics
from ...errors import require
from ..circle import Fourier
from ..continuation import Curve, Point, follow
from ..zonal import Zonal
from .equation import Stationary, at_temperature, stationary_equation
from .stability import Stability, spectrum


@dataclasses.dataclass(frozen=True)
class Branch:
    """One branch of axially symmetric stationary states; a row per point, in order along the curve.

    `degree` is the harmonic along which it leaves the uniform state. Why it ends is in `curve.ended`
    ("stopped": the next state is too sharp for the discretisation).
    """

    equation: Stationary
    on: Discretisation
    degree: int
    curve: Curve

    @property
    def temperatures(self) -> np.ndarray:
        """The temperature at every point."""
        return np.exp(self.curve.parameters)

    @functools.cached_property
    def states(self) -> np.ndarray:
        """Coefficients of the densities, (point, mode)."""
        return np.asarray(jax.vmap(lambda x: _whole(self.equation, x))(self.curve.states))

    @functools.cached_property
    def orders(self) -> np.ndarray:
        """|int x dmu|."""
        return np.asarray(_orders(self.equation, jnp.asarray(self.states)))

    @functools.cached_property
    def advantages(self) -> np.ndarray:
        """Free energy E - T int rho log rho minus that of the uniform state: positive where preferred.

        USA only: SA has none.
        """
        self._check_free_energy()
        return np.array([self._advantage(point) for point in self.curve.points])

    @functools.cached_property
    def spectra(self) -> list[Stability]:
        """The spectrum of the linearised equation at every point."""
        return [
            spectrum(self._at(temperature), jnp.asarray(state))
            for temperature, state in zip(self.temperatures, self.states, strict=True)
        ]

    @property
    def growths(self) -> np.ndarray:
        """The largest growth rate of a perturbation at every point; see `Stability`."""
        return np.array([found.growth for found in self.spectra])

    @property
    def unstable(self) -> np.ndarray:
        """How many independent perturbations grow, at every point."""
        return np.array([found.unstable for found in self.spectra])

    def folds(self) -> list[float]:
        """Temperatures at which the branch turns back."""
        return [float(np.exp(point.parameter)) for point in self.curve.folds()]

    def first_order_points(self) -> list[float]:
        """Temperatures at which the branch and the uniform state have the same free energy (USA)."""
        self._check_free_energy()
        return [float(np.exp(p.parameter)) for p in self.curve.crossings(self._advantage)]

    def at(self, temperature: float) -> list[Density]:
        """The states of the branch at one temperature, in order along it."""
        require(temperature > 0, f"a branch has temperatures > 0, got {temperature}")
        return [
            Density(self.on, _whole(self.equation, jnp.asarray(point.state)))
            for point in self.curve.at(float(np.log(temperature)))
        ]

    def _check_free_energy(self) -> None:
        model = self.equation.model
        require(
            all(not term.kind.averages for term in model.attentions()),
            f"{self.equation.model.label} has no free energy whose gradient flow it is, only USA has; "
            "compare states by `growths` or `unstable` instead",
        )

    def _advantage(self, point: Point) -> float:
        return float(_advantage(self._at(np.exp(point.parameter)), jnp.asarray(point.state)))

    def _at(self, temperature: float) -> Stationary:
        model = at_temperature(self.equation.model, temperature)
        return Stationary(self.equation.scheme, model)


def bifurcation_temperatures(model: Dynamics, on: Discretisation) -> np.ndarray:
    """Temperatures at which axial harmonics of degree 1, 2, ... leave the uniform state.

    Eigenvalues of the linearised potential delta rho -> delta Phi at the uniform state, measured by
    differentiating the discretised equation; theory.critical_temperature has the closed form.
    """
    equation = _axial_equation(model, on)
    slope = np.asarray(_potential_slope(equation))
    off = np.max(np.abs(slope - np.diag(np.diag(slope))))
    require(
        bool(off <= 1e-10 * np.max(np.abs(slope))),
        f"harmonics of {on} do not decouple around the uniform state",
    )
    return np.diag(slope)


def branch(
    model: Dynamics,
    on: Discretisation,
    temperatures: tuple[float, float],
    degree: int = 1,
    sign: int = 1,
    *,
    step: float = 0.02,
    largest: float = 0.2,
    points: int = 1000,
) -> Branch:
    """The branch that leaves the uniform state along the harmonic of a degree, within temperatures.

    The noise of the model does not matter: the temperature is what varies. `sign=-1` leaves along minus
    the harmonic, another branch where the degree is even and d > 2 (elsewhere the same one, turned).
    It ends at the ends of `temperatures`, or where the states are too sharp for `on`.
    """
    low, high = temperatures
    equation = _axial_equation(model, on)
    thresholds = bifurcation_temperatures(model, on)
    require(
        1 <= degree <= len(thresholds),
        f"{on} holds degrees 1 to {len(thresholds)}, got {degree}",
    )
    start = float(thresholds[degree - 1])
    require(
        0 < low < start < high,
        f"degree {degree} leaves the uniform state at temperature {start:.6g}, outside of "
        f"temperatures={temperatures}; widen them",
    )
    tangent = np.zeros(len(thresholds) + 1)
    tangent[degree - 1] = sign
    curve = follow(
        axial_residual,
        np.zeros(len(thresholds)),
        float(np.log(start)),
        args=equation,
        tangent=tangent,
        within=(float(np.log(low)), float(np.log(high))),
        step=step,
        largest=largest,
        points=points,
        keep=lambda point: bool(_tail(equation, jnp.asarray(point.state)) <= on.largest_tail),
    )
    return Branch(equation, on, degree, curve)


def branches(
    model: Dynamics,
    on: Discretisation,
    temperatures: tuple[float, float],
    degrees: Sequence[int] | None = None,
) -> list[Branch]:
    """All branches that leave the uniform state within the temperatures (or those of the `degrees`).

    In d > 2 even degrees leave in two directions: a branch for each.
    """
    thresholds = bifurcation_temperatures(model, on)
    low, high = temperatures
    inside = 1 + np.flatnonzero((thresholds > low) & (thresholds < high))
    return [
        branch(model, on, temperatures, int(degree), sign)
        for degree in (inside if degrees is None else degrees)
        for sign in ((1, -1) if on.space.d > 2 and degree % 2 == 0 else (1,))
    ]


def axial_residual(
    x: Float[Array, " degree"], log_temperature: Array, equation: Stationary
) -> Float[Array, " degree"]:
    """The stationary equation for states symmetric about the first axis: one number per degree."""
    left = equation.residual(_whole(equation, x), jnp.exp(log_temperature))
    return left[1 : x.size + 1]


def _axial_equation(model: Dynamics, on: Discretisation) -> Stationary:
    """The equation, or InputError where coefficients are not ordered as `_whole` has them."""
    require(
        isinstance(on, Fourier | Zonal),
        f"branches hold states with an axis, one number per degree, got {on}; use "
        f"Zonal({on.space.d}, degree)",
    )
    return stationary_equation(model, on)


def _whole(equation: Stationary, x: Array) -> Float[Array, " mode"]:
    """All coefficients of an axial state: on the circle the sines, which come last, are zero."""
    rest = equation.scheme.basis.degrees.size - 1 - x.size
    return jnp.concatenate([jnp.ones(1), x, jnp.zeros(rest)])


@eqx.filter_jit
def _potential_slope(equation: Stationary) -> Float[Array, "degree degree"]:
    basis = equation.scheme.basis

    def potential(x: Array) -> Array:
        return basis.analyse(equation.drift_potential(_whole(equation, x)))[1 : x.size + 1]

    return jax.jacfwd(potential)(jnp.zeros(basis.degree))


@eqx.filter_jit
def _advantage(equation: Stationary, x: Array) -> Float[Array, ""]:
    here, uniform = _whole(equation, x), _whole(equation, jnp.zeros_like(x))
    energies = [equation.scheme.free_energy(equation.model, 0.0, c) for c in (here, uniform)]
    return energies[0] - energies[1]


@eqx.filter_jit
def _orders(equation: Stationary, states: Array) -> Float[Array, " point"]:
    return jax.vmap(equation.scheme.order_parameter)(states)


@eqx.filter_jit
def _tail(equation: Stationary, x: Array) -> Float[Array, ""]:
    return equation.scheme.tail(_whole(equation, x))
