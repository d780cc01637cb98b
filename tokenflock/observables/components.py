"""Clusters: connected components of the graph of tokens closer than a stated angle or distance.

Clusters are listed from the heaviest down (ties: the one with the smallest token index first), so
that entry q of sizes, masses and centres is the same cluster.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from ..errors import InputError, require
from ..graph import component_labels
from ..space import Space, Sphere
from .base import Observable, Snapshot
from .pairs import squared_chords, squared_radius

Parameters = tuple[tuple[str, float | int], ...]


def closeness(space: Space, angle: float | None, distance: float | None) -> float:
    """The geodesic threshold, from the parameter that belongs to the space."""
    chosen = angle if isinstance(space, Sphere) else distance
    if chosen is None:
        word = "angle=... in radians" if isinstance(space, Sphere) else "distance=..."
        raise InputError(f"clusters on {space} need {word}")
    return chosen


def _labels(snapshot: Snapshot, angle: float | None, distance: float | None) -> Int[Array, " n"]:
    mu = snapshot.measure
    threshold = squared_radius(mu.space, closeness(mu.space, angle, distance))
    return component_labels(squared_chords(mu.points, mu.points) <= threshold)


def _clusters(
    snapshot: Snapshot, angle: float | None = None, distance: float | None = None
) -> Int[Array, ""]:
    """Number of components: tokens that are the smallest of their component. O(n^2 d)."""
    labels = _labels(snapshot, angle, distance)
    return jnp.sum(labels == jnp.arange(labels.size))


def _cluster_labels(
    snapshot: Snapshot, angle: float | None = None, distance: float | None = None
) -> Int[Array, " n"]:
    """Compact labels 0, 1, ... in the order of each component's first token."""
    labels = _labels(snapshot, angle, distance)
    is_first = labels == jnp.arange(labels.size)
    return (jnp.cumsum(is_first) - 1)[labels]


def _heaviest(
    values: Shaped[Array, "n ..."], masses: Float[Array, " n"], largest: int
) -> Shaped[Array, "k ..."]:
    """Rows of the `largest` heaviest clusters, padded with zeros."""
    order = jnp.argsort(-masses, stable=True)[:largest]
    missing = [(0, largest - order.size)] + [(0, 0)] * (values.ndim - 1)
    return jnp.pad(values[order], missing)


def _masses(snapshot: Snapshot, labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """Mass of each component, at the index of its first token."""
    return jnp.zeros(labels.size).at[labels].add(snapshot.measure.weights)


def _cluster_sizes(
    snapshot: Snapshot, largest: int, angle: float | None = None, distance: float | None = None
) -> Int[Array, " k"]:
    """Number of tokens of the heaviest clusters, 0 where there are fewer."""
    labels = _labels(snapshot, angle, distance)
    counts = jnp.zeros(labels.size, dtype=int).at[labels].add(1)
    return _heaviest(counts, _masses(snapshot, labels), largest)


def _cluster_masses(
    snapshot: Snapshot, largest: int, angle: float | None = None, distance: float | None = None
) -> Float[Array, " k"]:
    """p_q = sum of w_i over the cluster, 0 where there are fewer."""
    masses = _masses(snapshot, _labels(snapshot, angle, distance))
    return _heaviest(masses, masses, largest)


def _cluster_centres(
    snapshot: Snapshot, largest: int, angle: float | None = None, distance: float | None = None
) -> Float[Array, "k d"]:
    """The mean of the cluster's tokens, retracted onto the space; NaN where there are fewer.

    On the sphere the direction of the mean is lost for a cluster balanced around the centre of the
    ball (a full great circle), where any direction is as good as another.
    """
    mu, labels = snapshot.measure, _labels(snapshot, angle, distance)
    masses = _masses(snapshot, labels)
    sums = jnp.zeros_like(mu.points).at[labels].add(mu.weights[:, None] * mu.points)
    means = sums / jnp.where(masses > 0, masses, 1.0)[:, None]
    exists = _heaviest(masses, masses, largest) > 0
    return jnp.where(exists[:, None], _heaviest(mu.space.retract(means), masses, largest), jnp.nan)


def _threshold(angle: float | None, distance: float | None) -> Parameters:
    if (angle is None) == (distance is None):
        raise InputError(
            "state what a cluster is: angle=... in radians on a sphere, or distance=... in R^d"
        )
    if angle is not None:
        require(0 < angle < math.pi, f"the cluster angle must lie in (0, pi), got {angle}")
        return (("angle", float(angle)),)
    assert distance is not None
    require(distance > 0, f"the cluster distance must be positive, got {distance}")
    return (("distance", float(distance)),)


def _listing(largest: int) -> Parameters:
    require(isinstance(largest, int) and largest >= 1, f"largest must be >= 1, got {largest!r}")
    return (("largest", largest),)


def _ranks(largest: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return (("cluster", tuple(float(rank) for rank in range(largest))),)


def clusters(angle: float | None = None, distance: float | None = None) -> Observable:
    """Number of clusters at a stated angle (sphere) or distance (R^d)."""
    return Observable(
        "clusters",
        "clusters",
        _clusters,
        parameters=_threshold(angle, distance),
        says="Number of connected components of tokens closer than the threshold",
    )


def cluster_labels(angle: float | None = None, distance: float | None = None) -> Observable:
    """Cluster of each token, numbered from 0 in the order of first tokens."""
    return Observable(
        "cluster_labels",
        "1",
        _cluster_labels,
        axes=("token",),
        parameters=_threshold(angle, distance),
        says="Number of the cluster each token belongs to",
    )


def cluster_sizes(
    angle: float | None = None, distance: float | None = None, largest: int = 8
) -> Observable:
    """Tokens in each of the `largest` heaviest clusters, padded with 0."""
    return Observable(
        "cluster_sizes",
        "tokens",
        _cluster_sizes,
        axes=("cluster",),
        parameters=_threshold(angle, distance) + _listing(largest),
        labels=_ranks(largest),
        says="Number of tokens of the heaviest clusters",
    )


def cluster_masses(
    angle: float | None = None, distance: float | None = None, largest: int = 8
) -> Observable:
    """Mass of each of the `largest` heaviest clusters, padded with 0."""
    return Observable(
        "cluster_masses",
        "1",
        _cluster_masses,
        axes=("cluster",),
        parameters=_threshold(angle, distance) + _listing(largest),
        labels=_ranks(largest),
        says="Mass of the heaviest clusters",
    )


def cluster_centres(
    angle: float | None = None, distance: float | None = None, largest: int = 8
) -> Observable:
    """Centre of each of the `largest` heaviest clusters, padded with NaN."""
    return Observable(
        "cluster_centres",
        "1",
        _cluster_centres,
        axes=("cluster", "coordinate"),
        parameters=_threshold(angle, distance) + _listing(largest),
        labels=_ranks(largest),
        says="Centres of the heaviest clusters",
    )
