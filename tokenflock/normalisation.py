"""Where layer norm stands in the block: six schemes as one law for directions and radii, and none.

A token is x = r theta. With A the attention output at the directions, every scheme is

    theta' = P_theta A / s,    r' = its radial law    (2510.22026, table 1)

| scheme | layer | s | r' |
|---|---|---|---|
| PostLN | x <- N(x + A) | 1 | 0 |
| PreLN | x <- x + A(N x) | r | <theta, A> |
| MixLN(tau) | PostLN until tau, then PreLN | 1, then r | 0, then <theta, A> |
| PeriLN | x <- x + N(A(N x)) | r abs(A) | <theta, A>/abs(A) |
| NGPT(alpha) | x <- N(x + alpha N(A)) | abs(A)/alpha | 0 |
| SqrtScaling | x <- N(x + A/sqrt(t+1)) | sqrt(t+1) | 0 |

Without layer norm tokens live on R^d: `Residual(keep)` is x <- keep x + A there.
"""

from __future__ import annotations

import abc
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .errors import require
from .runtime import ArrayLike, Scalar, as_array, is_traced, known
from .schedule import Quantity, Schedule, as_number, jumps_in, now
from .space import Euclidean, Space, Sphere, normalise

Radii = Float[Array, " n"]
Vectors = Float[Array, "n d"]


@known()
def _positive(name: str, value: ArrayLike) -> Array:
    array = as_array(value)
    if not is_traced(array):
        require(bool(jnp.all(array > 0)), f"{name} must be positive, got {value}")
    return array


class Normalisation(eqx.Module):
    """A scheme, as what it makes of the raw update A at time t."""

    moves_radii: ClassVar[bool]
    # Whether only the tangent part of A matters, so that multiples of theta may be dropped early.
    tangent_only: ClassVar[bool]
    # Whether theta' = P_theta A: the flow of the theory, with no clock of its own.
    is_plain: ClassVar[bool] = False
    # Whether directions move as under post-LN up to a positive factor, so that energies stay monotone.
    changes_clock_only: ClassVar[bool] = True
    # How many axes its numbers have for one model (one more is a batch, see docs/model.md), and which of them
    # are times at which it switches: fixed steps have no derivatives by those.
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {}
    switching: ClassVar[tuple[str, ...]] = ()

    def check(self, space: Space) -> None:
        """Refuse a space on which the scheme means nothing."""
        require(
            isinstance(space, Sphere),
            f"normalisation schemes need tokens on a sphere, got {space}",
        )

    def jumps(self, t1: float) -> list[Any]:
        """Times in (0, t1) where the scheme is discontinuous; traced ones whatever they are."""
        return jumps_in(self, t1)

    @abc.abstractmethod
    def update(self, t: Scalar, force: Vectors) -> Vectors:
        """The vector G that is added to x: A itself, or A normalised, or scaled."""

    @abc.abstractmethod
    def grows(self, t: Scalar) -> Array:
        """Whether the radius is kept (true, pre-LN) or reset by a final normalisation (false)."""

    def velocity(
        self, t: Scalar, theta: Vectors, radii: Radii | None, force: Vectors
    ) -> tuple[Vectors, Radii | None]:
        """theta' before projection, and r'.

        theta' = P G / r and r' = <theta, G> where the radius is kept; theta' = P G, r' = 0 elsewhere.
        """
        push = self.update(t, force)
        if radii is None:
            return push, None
        grows = self.grows(t)
        radial = jnp.where(grows, jnp.sum(theta * push, axis=-1), 0.0)
        return push / jnp.where(grows, radii, 1.0)[:, None], radial

    def layer(
        self, t: Scalar, theta: Vectors, radii: Radii | None, force: Vectors, step: Scalar
    ) -> tuple[Vectors, Radii | None]:
        """One layer of the discrete network with residual weight `step`."""
        push = step * self.update(t, force)
        if radii is None:
            return normalise(theta + push), None
        grows = self.grows(t)
        x = jnp.where(grows, radii, 1.0)[:, None] * theta + push
        return normalise(x), jnp.where(grows, jnp.linalg.norm(x, axis=-1), radii)


class PostLN(Normalisation):
    """x <- N(x + A): the sphere dynamics of the theory."""

    moves_radii: ClassVar[bool] = False
    tangent_only: ClassVar[bool] = True
    is_plain: ClassVar[bool] = True

    def update(self, t: Scalar, force: Array) -> Array:
        return force

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(False)


class PreLN(Normalisation):
    """x <- x + A(N x): radii grow and slow the directions down."""

    moves_radii: ClassVar[bool] = True
    tangent_only: ClassVar[bool] = False

    def update(self, t: Scalar, force: Array) -> Array:
        return force

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(True)


class MixLN(Normalisation):
    """Post-LN for t <= tau, then pre-LN."""

    tau: Float[Array, ""]
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"tau": (0,)}
    switching: ClassVar[tuple[str, ...]] = ("tau",)
    moves_radii: ClassVar[bool] = True
    tangent_only: ClassVar[bool] = False

    def __init__(self, tau: ArrayLike):
        self.tau = _positive("tau", tau)

    def update(self, t: Scalar, force: Array) -> Array:
        return force

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(t) > self.tau

    def jumps(self, t1: float) -> list[Any]:
        if is_traced(self.tau):
            return [self.tau]
        return [float(tau) for tau in np.ravel(self.tau) if tau < t1]


class PeriLN(Normalisation):
    """x <- x + N(A(N x)). Where A vanishes its direction is undefined and the token rests."""

    moves_radii: ClassVar[bool] = True
    tangent_only: ClassVar[bool] = False

    def update(self, t: Scalar, force: Array) -> Array:
        return normalise(force)

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(True)


class NGPT(Normalisation):
    """x <- N(x + alpha N(A)), with a constant residual weight alpha."""

    alpha: Quantity
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"alpha": (0,)}
    moves_radii: ClassVar[bool] = False
    tangent_only: ClassVar[bool] = False

    def __init__(self, alpha: ArrayLike | Schedule):
        self.alpha = as_number(alpha, partial(_positive, "alpha"))

    def update(self, t: Scalar, force: Array) -> Array:
        return now(self, t).alpha * normalise(force)

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(False)


class SqrtScaling(Normalisation):
    """x <- N(x + A/sqrt(t + 1)): layer-norm scaling, also called CoD."""

    moves_radii: ClassVar[bool] = False
    tangent_only: ClassVar[bool] = True

    def update(self, t: Scalar, force: Array) -> Array:
        return force / jnp.sqrt(1.0 + jnp.asarray(t))

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(False)


class Residual(Normalisation):
    """x <- keep x + A on R^d, with no layer norm: the rho and eta of the blocks of 2502.02270.

    A layer of step h is x <- (1 - h (1 - keep)) x + h A, and the flow is x' = A - (1 - keep) x. The term
    `Drift(keep - 1)` has the same flow, but its layer subtracts x from x: where keep = 0 and A is far
    smaller than x, the digits of A are lost. `keep` is a number, or a `Piecewise` of numbers.
    """

    keep: Quantity
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"keep": (0,)}
    moves_radii: ClassVar[bool] = False
    tangent_only: ClassVar[bool] = False
    changes_clock_only: ClassVar[bool] = False

    def __init__(self, keep: ArrayLike | Schedule):
        self.keep = as_number(keep)

    def update(self, t: Scalar, force: Array) -> Array:
        return force

    def grows(self, t: Scalar) -> Array:
        return jnp.asarray(False)

    def velocity(
        self, t: Scalar, theta: Vectors, radii: Radii | None, force: Vectors
    ) -> tuple[Vectors, Radii | None]:
        return force - (1 - now(self, t).keep) * theta, None

    def layer(
        self, t: Scalar, theta: Vectors, radii: Radii | None, force: Vectors, step: Scalar
    ) -> tuple[Vectors, Radii | None]:
        return (1 - step * (1 - now(self, t).keep)) * theta + step * force, None

    def check(self, space: Space) -> None:
        require(
            isinstance(space, Euclidean),
            f"Residual(keep) scales tokens of R^d, and a sphere forgets the scale; got {space}: use "
            "PostLN() there, or another scheme with layer norm",
        )


SCHEMES = {
    "post": PostLN,
    "pre": PreLN,
    "mix": MixLN,
    "peri": PeriLN,
    "ngpt": NGPT,
    "sqrt": SqrtScaling,
}
