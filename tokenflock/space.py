"""Where tokens live: the unit sphere S^{d-1} (layer norm) or Euclidean space R^d.

A space knows how to project a vector on its tangent space, how to retract a point onto itself,
how to measure distance, and what its uniform law is.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .errors import InputError


def normalise(x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """N(x) = x/|x|; a zero vector stays zero instead of becoming NaN."""
    squared = jnp.sum(x * x, axis=-1, keepdims=True)
    is_zero = squared == 0
    return x * jnp.where(is_zero, 0.0, jnp.where(is_zero, 1.0, squared) ** -0.5)


def length(v: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
    """|v|; its derivative at zero is zero instead of NaN, as for a token's distance to itself."""
    squared = jnp.sum(v * v, axis=-1)
    is_zero = squared == 0
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squared)))


def angle(x: Float[Array, "*a d"], y: Float[Array, "*b d"]) -> Float[Array, ...]:
    """Angle between unit vectors by 2 atan2(|x-y|, |x+y|), accurate at 0 and at pi."""
    return 2.0 * jnp.arctan2(length(x - y), length(x + y))


class Space(eqx.Module):
    """A manifold embedded in R^d; `d` is the number of coordinates of a token."""

    d: eqx.AbstractVar[int]
    label: ClassVar[str]

    @abc.abstractmethod
    def project(self, x: Array, v: Array) -> Array:
        """Orthogonal projection of v on the tangent space at x."""

    @abc.abstractmethod
    def retract(self, x: Array) -> Array:
        """Nearest point of the space."""

    @abc.abstractmethod
    def distance(self, x: Array, y: Array) -> Array:
        """Geodesic distance."""

    @abc.abstractmethod
    def defect(self, x: Array) -> Array:
        """How far each point is from the space (0 on it)."""

    def worst_defect(self, x: ArrayLike) -> float:
        """The largest defect of known points, as one small program."""
        return float(_worst_defect(self, jnp.asarray(x)))

    @abc.abstractmethod
    def sample_uniform(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Points of the uniform law, with shape (*shape, d)."""


@eqx.filter_jit
def _worst_defect(space: Space, x: Array) -> Array:
    return jnp.max(space.defect(x))


class Sphere(Space):
    """S^{d-1} = {x in R^d : |x| = 1}, with P_x v = v - <x,v>x (2312.10794, section 2)."""

    d: int = eqx.field(static=True)
    label: ClassVar[str] = "sphere"

    def __check_init__(self) -> None:
        _check_dimension("Sphere", self.d, 2, "the circle is Sphere(2), the usual sphere Sphere(3)")

    def project(self, x: Array, v: Array) -> Array:
        return v - jnp.sum(x * v, axis=-1, keepdims=True) * x

    def retract(self, x: Array) -> Array:
        return normalise(x)

    def distance(self, x: Array, y: Array) -> Array:
        return angle(x, y)

    def defect(self, x: Array) -> Array:
        return jnp.abs(jnp.linalg.norm(x, axis=-1) - 1.0)

    def sample_uniform(self, key: Array, shape: tuple[int, ...]) -> Array:
        return normalise(jr.normal(key, (*shape, self.d), dtype=jnp.float64))


class Euclidean(Space):
    """R^d with its usual metric: attention without layer norm (2305.05465)."""

    d: int = eqx.field(static=True)
    label: ClassVar[str] = "euclidean"

    def __check_init__(self) -> None:
        _check_dimension("Euclidean", self.d, 1, "give the number of coordinates of a token")

    def project(self, x: Array, v: Array) -> Array:
        return v

    def retract(self, x: Array) -> Array:
        return x

    def distance(self, x: Array, y: Array) -> Array:
        return length(x - y)

    def defect(self, x: Array) -> Array:
        return jnp.zeros(x.shape[:-1], x.dtype)

    def sample_uniform(self, key: Array, shape: tuple[int, ...]) -> Array:
        raise InputError(
            "R^d has no uniform law; use flock.starts.box(Euclidean(d), n, half_width, seed) "
            "or flock.gaussian(Euclidean(d), n, scale, seed)"
        )


def _check_dimension(name: str, d: object, smallest: int, advice: str) -> None:
    if not isinstance(d, int) or isinstance(d, bool) or d < smallest:
        raise InputError(f"{name} needs a dimension d >= {smallest}, got d={d!r}; {advice}")
