"""The perceptron of a layer: a term of the velocity that sees the point alone."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ..errors import InputError, require
from ..measure import Measure
from ..reduce import Reduction
from ..runtime import ArrayLike, Number, Scalar, as_array, known
from ..schedule import Per, Schedule
from ..theory.perceptron import LIPSCHITZ
from .base import Kinks, Term
from .neurons import Neurons, RandomNeurons, along, dimension_of, is_gradient


class Activation(eqx.Module):
    """A scalar nonlinearity sigma with a primitive phi of 2 sigma, for the energy."""

    name: str = eqx.field(static=True)
    sigma: Callable[[Array], Array] = eqx.field(static=True)
    primitive: Callable[[Array], Array] = eqx.field(static=True)
    # A Lipschitz constant of sigma, NaN if none is known, and whether sigma' jumps at 0.
    lipschitz: float = eqx.field(static=True, default=float("nan"))
    has_kink: bool = eqx.field(static=True, default=False)


RELU = Activation(
    "relu", jax.nn.relu, lambda s: jax.nn.relu(s) ** 2, LIPSCHITZ["relu"], has_kink=True
)
# phi' = 2 s Phi(s). The primitive s^2 Phi(s) + s pdf(s) found in public code has an extra pdf(s).
GELU = Activation(
    "gelu",
    lambda s: s * norm.cdf(s),
    lambda s: (s**2 - 1.0) * norm.cdf(s) + s * norm.pdf(s),
    LIPSCHITZ["gelu"],
)
ACTIVATIONS = {activation.name: activation for activation in (RELU, GELU)}


class Perceptron(Term):
    """w sigma(a x + b): inner weights a (width, d), bias b (width,), outer weights w (d, width).

    2312.10794, eq. (2.8). With `Perceptron.gradient` the outer weights are omega_j a_j, and the term
    is half the gradient of v(x) = sum_j omega_j phi(a_j . x), phi' = 2 sigma (2601.21366). Give
    `weights=` a schedule of `Neurons` where they change with depth. One axis more in front of any of the
    weights is a batch of models: see `solve`.
    """

    weights: Schedule
    activation: Activation

    def __init__(
        self,
        inner: ArrayLike | None = None,
        outer: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        activation: Activation = RELU,
        omega: ArrayLike | None = None,
        weights: Schedule | None = None,
    ):
        given = [matrix is not None for matrix in (inner, outer, bias, omega)]
        require(
            not any(given) if weights is not None else all(given[:2]),
            "a perceptron needs inner and outer weights, or weights=, a schedule of them, not both",
        )
        if weights is None:
            assert inner is not None
            assert outer is not None
            weights = Neurons(inner, outer, bias, omega)
        self.weights, self.activation = weights, activation

    @staticmethod
    @known()
    def gradient(omega: ArrayLike, a: ArrayLike, activation: Activation = RELU) -> Perceptron:
        """Gradient-structured: u(x) = sum_j omega_j sigma(a_j . x) a_j."""
        return Perceptron(weights=Neurons.gradient(omega, a), activation=activation)

    @staticmethod
    @known()
    def random(
        d: int,
        width: int,
        seed: int,
        scale: Number = 1.0,
        gradient: bool = False,
        activation: Activation = RELU,
        bias: Number = 0.0,
        period: float | None = None,
        per: Per = "run",
    ) -> Perceptron:
        """Unit inner weights in random directions; outer weights (or omega) N(0, scale^2/width).

        The velocity has the same size for every width: E |u|^2 = scale^2/2 for ReLU and |x| = 1. Biases
        are N(0, bias^2/d). With `period` the weights are drawn anew on [m period, (m+1) period): a
        network of fresh layers is `Layers(step)` with `period=step`. `RandomNeurons` has the law.
        """
        drawn = RandomNeurons(d, width, seed, scale, gradient, bias, period, per)
        fixed = period is None and per == "run"
        return Perceptron(weights=drawn.at(0.0) if fixed else drawn, activation=activation)

    @property
    def neurons(self) -> Neurons:
        """The weights, where they are constant."""
        if not isinstance(self.weights, Neurons):
            raise InputError(
                "the weights of this perceptron change with depth or sample; ask for those of one "
                "time: perceptron.weights.at(t)"
            )
        return self.weights

    @property
    def inner(self) -> Float[Array, "*model width d"]:
        """a, where it is constant."""
        return self.neurons.inner

    @property
    def outer(self) -> Float[Array, "*model d width"]:
        """w, where it is constant."""
        return self.neurons.outer

    @property
    def bias(self) -> Float[Array, "*model width"]:
        """b, where it is constant."""
        return self.neurons.bias

    @property
    def omega(self) -> Float[Array, "*model width"] | None:
        """omega of a gradient-structured perceptron, where it is constant."""
        return self.neurons.omega

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        now = self.weights.at(t)
        return self.activation.sigma(x @ now.inner.T + now.bias) @ now.outer.T

    def v(self, x: Float[Array, "m d"], t: Scalar = 0.0) -> Float[Array, " m"]:
        """v(x) = sum_j omega_j phi(a_j . x) (2601.21366); the field is its gradient over 2."""
        now = self.weights.at(t)
        if now.omega is None:
            raise InputError(
                "only a gradient-structured perceptron has a potential; make it with "
                "Perceptron.gradient(omega, a)"
            )
        return self.activation.primitive(x @ now.inner.T) @ now.omega

    def check(self, mu: Measure) -> None:
        d = self.dimension
        require(d == mu.d, f"this perceptron acts on d={d}, the tokens have d={mu.d}")

    # --- of gradient structure --------------------------------------------------------------------

    def potential(self, t: Scalar, x: Array) -> Array | None:
        """v/2."""
        return self.v(x, t) / 2.0 if is_gradient(self.weights) else None

    @property
    def is_gradient(self) -> bool:
        return self.weights.is_fixed and is_gradient(self.weights)

    def opposite(self) -> Perceptron:
        return self.scaled(-1.0)

    def scaled(self, factor: Scalar) -> Perceptron:
        own = self.neurons
        omega = None if own.omega is None else as_array(factor * own.omega)
        outer = factor * own.outer if omega is None else along(omega, own.inner)
        return Perceptron(own.inner, outer, own.bias, self.activation, omega)

    @property
    def dimension(self) -> int:
        return dimension_of(self.weights)

    def turn_conditions(self, generators: np.ndarray, present: bool) -> np.ndarray:
        """G a_j of all neurons in use: turns about them leave the term as it is."""
        used = np.asarray(self.omega) != 0 if present else np.zeros(0, dtype=int)
        return (generators @ np.asarray(self.inner)[used].T).reshape(len(generators), -1)

    def kinks(self) -> Kinks | None:
        if not self.activation.has_kink or self.omega is None:
            return None
        return Kinks(self.omega, self.inner)

    def curvature_bound(self) -> float:
        """sum_j |omega_j| |a_j|^2 times the Lipschitz constant of sigma."""
        size = np.abs(np.asarray(self.omega)) @ np.sum(np.asarray(self.inner) ** 2, axis=-1)
        return self.activation.lipschitz * float(size)
