"""Noise: independent spherical Brownian motion, or one random value matrix shared by all tokens.

Both are Ito increments dX_i = P_{x_i} sigma_i dW; the retraction that ends every step supplies the
normal Ito correction, so none is added by hand.
"""

from __future__ import annotations

import abc
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import require
from .measure import Measure
from .reduce import Reduction
from .runtime import ArrayLike, Scalar, as_array, is_traced, known
from .schedule import Quantity, Schedule, as_number, now
from .terms import Attention


@known()
def _non_negative(name: str, value: ArrayLike) -> Array:
    array = as_array(value)
    if not is_traced(array):
        require(bool(jnp.all(array >= 0)), f"{name} must be >= 0, got {value}")
    return array


class Noise(eqx.Module):
    """A diffusion coefficient acting linearly on a Brownian increment."""

    # Whether the Ito and Stratonovich readings agree after projection on the tangent space.
    reading_free: ClassVar[bool]

    @property
    def diffusivity(self) -> Any:
        """T where every token has noise of its own, which spreads their law by T Laplacian; else None."""
        return None

    def attentions(self) -> list[Attention]:
        """The attention terms that shape it."""
        return []

    def check(self, mu: Measure) -> None:
        """Refuse a measure this noise cannot act on."""

    @abc.abstractmethod
    def brownian_shape(self, mu: Measure) -> tuple[int, ...]:
        """Shape of the driving Brownian motion."""

    @abc.abstractmethod
    def amplitude(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        """What multiplies the increment."""

    @abc.abstractmethod
    def apply(self, amplitude: Array, increment: Array) -> Float[Array, "n d"]:
        """The displacement, before projection on the tangent space."""


class Brownian(Noise):
    """sqrt(2 T) dB_i, one independent Brownian motion per token; generator T Laplacian.

    T = 1/kappa in the survey's notation (2512.01868).
    """

    temperature: Quantity
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"temperature": (0,)}
    reading_free: ClassVar[bool] = True

    def __init__(self, temperature: ArrayLike | Schedule):
        self.temperature = as_number(temperature, partial(_non_negative, "temperature"))

    @property
    def diffusivity(self) -> Any:
        return self.temperature

    def brownian_shape(self, mu: Measure) -> tuple[int, ...]:
        return mu.points.shape[-2:]

    def amplitude(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return jnp.sqrt(2.0 * now(self, t).temperature)

    def apply(self, amplitude: Array, increment: Array) -> Array:
        return amplitude * increment


class CommonNoise(Noise):
    """scale dW m_i, with one d x d Brownian matrix W for all tokens and m_i the attention output.

    The limit of random value matrices shared by the tokens of a layer: 2601.21942 with
    scale^2 = v, and 2604.01978 with scale^2 = sigma_V^2 eta/H. An Ito equation: the Stratonovich
    reading is another model.
    """

    attention: Attention
    scale: Quantity
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"scale": (0,)}
    reading_free: ClassVar[bool] = False

    def __init__(self, attention: Attention, scale: ArrayLike | Schedule):
        self.attention = attention
        self.scale = as_number(scale, partial(_non_negative, "scale"))

    def attentions(self) -> list[Attention]:
        return [self.attention]

    def brownian_shape(self, mu: Measure) -> tuple[int, ...]:
        return (mu.d, mu.d)

    def check(self, mu: Measure) -> None:
        self.attention.check(mu)

    def amplitude(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return now(self, t).scale * self.attention.field(t, x, mu, reduction)

    def apply(self, amplitude: Array, increment: Array) -> Array:
        return amplitude @ increment.T
