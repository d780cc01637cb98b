"""A measure: tokens, that is points with weights.

Tokens are X of shape (..., n, d), leading axes being independent samples. Weights are the masses of
the tokens and sum to one, so that n equal tokens give the empirical measure (1/n) sum_j delta_{x_j}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .errors import require
from .old_names import refusing
from .runtime import ArrayLike, as_array, is_traced, known
from .space import Space, Sphere

ON_SPHERE_TOLERANCE = 1e-6


class Measure(eqx.Module):
    """sum_j w_j delta_{x_j} on a space.

    `ordered` says whether the index of a token is its position in a text: only then does a causal
    mask have a meaning. `radii` are the norms that pre-, mix- and peri-LN carry beside the direction.
    Equal weights are not stored: every array of such a measure then has its axes of samples, and
    `jax.vmap` and `lax.map` go over the samples.
    """

    space: Space
    points: Float[Array, "*batch n d"]
    own_weights: Float[Array, " n"] | None
    radii: Float[Array, "*batch n"] | None = None
    ordered: bool = eqx.field(static=True, default=True)

    @known()
    def __init__(
        self,
        space: Space,
        points: ArrayLike,
        weights: ArrayLike | None = None,
        radii: ArrayLike | None = None,
        ordered: bool = True,
    ):
        self.space = space
        self.points = _checked_points(space, points)
        self.own_weights = None if weights is None else _checked_weights(weights, self.n)
        self.radii = None if radii is None else _checked_radii(radii, self.points)
        self.ordered = ordered

    @property
    def n(self) -> int:
        """Number of tokens."""
        return self.points.shape[-2]

    @property
    def weights(self) -> Float[Array, " n"]:
        """The masses of the tokens; 1/n each if none were given."""
        if self.own_weights is not None:
            return self.own_weights
        # Staged inside a program, which would hold n numbers otherwise.
        staged = is_traced(self.points)
        return jnp.full(self.n, 1.0 / self.n) if staged else as_array(np.full(self.n, 1.0 / self.n))

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.points.shape[-1]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the leading sample axes."""
        return self.points.shape[:-2]

    def as_measure(self) -> Measure:
        """Itself: densities have points and weights, too."""
        return self

    def functional(self, name: str) -> None:
        """No observable has a formula of its own for tokens: each is computed from them."""
        return None

    def at(self, points: Array, radii: Array | None = None) -> Measure:
        """The same weights at other points (no checks: used inside compiled code)."""
        moved = eqx.tree_at(lambda m: m.points, self, points)
        return eqx.tree_at(lambda m: m.radii, moved, radii, is_leaf=_is_none)

    def weighing(self, masses: Array | None) -> Measure:
        """The same points with other masses, equal ones for None (no checks)."""
        return eqx.tree_at(lambda m: m.own_weights, self, masses, is_leaf=_is_none)


def _is_none(leaf: object) -> bool:
    return leaf is None


def _checked_points(space: Space, points: ArrayLike) -> Array:
    array = as_array(points)
    require(
        array.ndim >= 2 and array.shape[-1] == space.d,
        f"tokens must have shape (..., n, {space.d}) on {space}, got {array.shape}",
    )
    require(array.shape[-2] >= 2, f"need n >= 2 tokens to interact, got n={array.shape[-2]}")
    if is_traced(array):
        return array
    require(
        bool(np.all(np.isfinite(array))),
        "tokens contain NaN or infinity; clean the data before making a measure",
    )
    worst = space.worst_defect(array)
    require(
        worst <= ON_SPHERE_TOLERANCE,
        f"tokens are off the sphere by up to {worst:.3g}; normalise them first "
        "(flock.from_array(Sphere(d), x, normalise=True))",
    )
    return array


def _checked_weights(weights: ArrayLike, n: int) -> Array:
    array = as_array(weights)
    require(
        array.shape == (n,), f"weights must have shape ({n},), one per token, got {array.shape}"
    )
    if is_traced(array):
        return array / jnp.sum(array)
    require(
        _all_positive(array) and bool(np.all(np.isfinite(array))),
        "weights must be positive and finite; drop tokens of zero mass",
    )
    return array / jnp.sum(array)


def _checked_radii(radii: ArrayLike, points: Array) -> Array:
    array = jnp.broadcast_to(as_array(radii), points.shape[:-1])
    if not is_traced(array):
        require(_all_positive(array), "radii must be positive")
    return array


def _all_positive(known: Array) -> bool:
    return bool(np.all(np.asarray(known) > 0))


@known()
def from_array(
    space: Space,
    points: ArrayLike,
    weights: ArrayLike | None = None,
    radii: ArrayLike | None = None,
    normalise: bool = False,
    ordered: bool = True,
) -> Measure:
    """Tokens given as an array; `normalise=True` first retracts them onto the space."""
    array = as_array(points)
    return Measure(space, space.retract(array) if normalise else array, weights, radii, ordered)


def padded(space: Space, points: Float[Array, "n d"], present: Bool[Array, " n"]) -> Measure:
    """Tokens of which only those present count, with equal masses; the others have none and move nobody.

    So sequences of different lengths are filled up to one array, and jax.vmap goes over them. Used inside
    compiled code: no checks, and the precision of the points stays.
    """
    mass = present.astype(points.dtype)
    # The constructor would make double precision of the points, and refuse a single one.
    anything = Measure(space, np.eye(2, space.d))
    return anything.at(points).weighing(mass / jnp.maximum(jnp.sum(mass), 1))


@known()
def from_angles(angles: ArrayLike, weights: ArrayLike | None = None) -> Measure:
    """Circle tokens x = (cos theta, sin theta)."""
    theta = as_array(angles)
    return Measure(Sphere(2), jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1), weights)


# A type checker sees the names that there are.
if not TYPE_CHECKING:
    __getattr__ = refusing(__name__)
