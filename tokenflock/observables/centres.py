"""Rényi centres and strong centres of tokens in reading order (2411.04990, section 5).

A Rényi centre is farther than delta from all earlier centres (random parking); a strong centre is
farther than delta from all earlier tokens. Distances are geodesic; the paper takes
delta = c beta^{-1/2}.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ..errors import require
from ..space import Sphere
from .base import Observable, Snapshot
from .pairs import squared_chords, squared_radius
from .reading import require_order
from .registry import register


def _far(snapshot: Snapshot, distance: float, name: str) -> tuple[Array, float]:
    """The tokens, and the squared chord beyond which two of them are far apart."""
    require_order(snapshot, name)
    space = snapshot.measure.space
    require(
        not isinstance(space, Sphere) or distance < np.pi,
        f"{name} needs a distance below pi on a sphere, got {distance}",
    )
    return snapshot.measure.points, squared_radius(space, distance)


def _renyi_centre_mask(snapshot: Snapshot, distance: float) -> Bool[Array, " n"]:
    """Greedy in token order: farther than `distance` from every centre kept before. O(n^2 d)."""
    points, threshold = _far(snapshot, distance, "renyi_centres")

    def visit(kept: Array, i: Array) -> tuple[Array, Array]:
        close = squared_chords(points[i][None], points)[0] <= threshold
        is_centre = ~jnp.any(close & kept)
        return kept.at[i].set(is_centre), is_centre

    nobody = jnp.zeros(points.shape[0], dtype=bool)
    return jax.lax.scan(visit, nobody, jnp.arange(points.shape[0]))[1]


def _strong_centre_mask(snapshot: Snapshot, distance: float) -> Bool[Array, " n"]:
    """Farther than `distance` from every earlier token: some of the Rényi centres. O(n^2 d)."""
    points, threshold = _far(snapshot, distance, "strong_centres")
    order = jnp.arange(points.shape[0])

    def visit(i: Array) -> Array:
        close = squared_chords(points[i][None], points)[0] <= threshold
        return ~jnp.any(close & (order < i))

    return jax.lax.map(visit, order)


def _renyi_centres(snapshot: Snapshot, distance: float) -> Int[Array, ""]:
    """About 0.7476 * 2 pi/delta for many uniform tokens on the circle (Rényi's constant)."""
    return jnp.sum(_renyi_centre_mask(snapshot, distance))


def _strong_centres(snapshot: Snapshot, distance: float) -> Int[Array, ""]:
    """On average (1 - (1-m)^n)/m for n uniform tokens, m the mass of a cap of radius delta."""
    return jnp.sum(_strong_centre_mask(snapshot, distance))


def _checked(distance: float) -> tuple[tuple[str, float], ...]:
    require(distance > 0, f"the centres' distance must be positive, got {distance}")
    return (("distance", float(distance)),)


@register
def renyi_centres(distance: float) -> Observable:
    """Number of Rényi centres at a geodesic distance (radians on a sphere)."""
    return Observable(
        "renyi_centres",
        "tokens",
        _renyi_centres,
        parameters=_checked(distance),
        says="Number of tokens farther than the distance from every earlier centre",
    )


@register
def strong_centres(distance: float) -> Observable:
    """Number of strong centres at a geodesic distance (radians on a sphere)."""
    return Observable(
        "strong_centres",
        "tokens",
        _strong_centres,
        parameters=_checked(distance),
        says="Number of tokens farther than the distance from every earlier token",
    )


@register
def renyi_centre_mask(distance: float) -> Observable:
    """Which tokens are Rényi centres."""
    return Observable(
        "renyi_centre_mask",
        "1",
        _renyi_centre_mask,
        axes=("token",),
        parameters=_checked(distance),
        says="Whether a token is farther than the distance from every earlier centre",
    )


@register
def strong_centre_mask(distance: float) -> Observable:
    """Which tokens are strong centres."""
    return Observable(
        "strong_centre_mask",
        "1",
        _strong_centre_mask,
        axes=("token",),
        parameters=_checked(distance),
        says="Whether a token is farther than the distance from every earlier token",
    )
