"""Clusters: connected components of the graph of tokens closer than a stated angle or distance.

The angle may also be found by a rule, link="spacing", from the number of tokens and the dimension.

Clusters are listed from the heaviest down (ties: the one with the smallest token index first), so
that entry q of sizes, masses and centres is the same cluster.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from ..connected_components import component_labels
from ..errors import InputError, require
from ..measure import Measure
from ..space import Sphere
from ..theory import means_something, spacing_angle, uniform_clusters
from .base import Observable, Snapshot
from .pairs import squared_chords, squared_radius
from .registry import register

Parameters = tuple[tuple[str, float | int | str], ...]
# The rules that find a linking angle; None is an angle or a distance that is given.
LINKS = ("spacing",)
# Clusters that one observable lists at most.
MOST_LISTED = 100_000


def closeness(
    mu: Measure, angle: float | None, distance: float | None, link: str | None = None
) -> float:
    """The geodesic threshold, from the parameter that belongs to the space, or from the rule `link`."""
    sphere = isinstance(mu.space, Sphere)
    if link is not None:
        require(
            sphere,
            f"link='spacing' compares with uniform tokens, which {mu.space} does not have; give distance=...",
        )
        return float(spacing_angle(mu.n, mu.d))
    chosen = angle if sphere else distance
    if chosen is None:
        word = "angle=... in radians or link='spacing'" if sphere else "distance=..."
        raise InputError(f"clusters on {mu.space} need {word}")
    return chosen


def linking(
    mu: Measure,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """What is recorded: the angle in use, about how many clusters uniform tokens make, what that means."""
    used = closeness(mu, angle, distance, link)
    if not isinstance(mu.space, Sphere) or mu.d < 2:
        return {"distance": used}
    chance = float(uniform_clusters(mu.n, mu.d, used))
    recorded = {"angle": used, "uniform_clusters": chance, "meaningful": True}
    if means_something(mu.n, mu.d, used):
        return recorded
    several = "1 cluster" if chance < 1.5 else f"{chance:.0f} clusters"
    says = (
        f"the count means nothing: {mu.n} uniform tokens on S^{mu.d - 1} would make about {several} at the "
        f"angle {used:g}; use link='spacing' (angle {float(spacing_angle(mu.n, mu.d)):.3g})"
    )
    return {**recorded, "meaningful": False, "note": says}


def _labels(
    snapshot: Snapshot, angle: float | None, distance: float | None, link: str | None
) -> Int[Array, " n"]:
    mu = snapshot.measure
    threshold = squared_radius(mu.space, closeness(mu, angle, distance, link))
    return component_labels(squared_chords(mu.points, mu.points) <= threshold)


def _clusters(
    snapshot: Snapshot,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Int[Array, ""]:
    """Number of components: tokens that are the smallest of their component. O(n^2 d)."""
    labels = _labels(snapshot, angle, distance, link)
    return jnp.sum(labels == jnp.arange(labels.size))


def _cluster_labels(
    snapshot: Snapshot,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Int[Array, " n"]:
    """Compact labels 0, 1, ... in the order of each component's first token."""
    labels = _labels(snapshot, angle, distance, link)
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
    snapshot: Snapshot,
    largest: int,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Int[Array, " k"]:
    """Number of tokens of the heaviest clusters, 0 where there are fewer."""
    labels = _labels(snapshot, angle, distance, link)
    counts = jnp.zeros(labels.size, dtype=int).at[labels].add(1)
    return _heaviest(counts, _masses(snapshot, labels), largest)


def _cluster_masses(
    snapshot: Snapshot,
    largest: int,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Float[Array, " k"]:
    """p_q = sum of w_i over the cluster, 0 where there are fewer."""
    masses = _masses(snapshot, _labels(snapshot, angle, distance, link))
    return _heaviest(masses, masses, largest)


def _cluster_centres(
    snapshot: Snapshot,
    largest: int,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Float[Array, "k d"]:
    """The mean of the cluster's tokens, retracted onto the space; NaN where there are fewer.

    On the sphere the direction of the mean is lost for a cluster balanced around the centre of the
    ball (a full great circle), where any direction is as good as another.
    """
    mu, labels = snapshot.measure, _labels(snapshot, angle, distance, link)
    masses = _masses(snapshot, labels)
    sums = jnp.zeros_like(mu.points).at[labels].add(mu.weights[:, None] * mu.points)
    means = sums / jnp.where(masses > 0, masses, 1.0)[:, None]
    exists = _heaviest(masses, masses, largest) > 0
    return jnp.where(exists[:, None], _heaviest(mu.space.retract(means), masses, largest), jnp.nan)


def threshold(angle: float | None, distance: float | None, link: str | None) -> Parameters:
    """The one way to say what is linked, checked, as parameters."""
    if sum(given is not None for given in (angle, distance, link)) != 1:
        raise InputError(
            "state what a cluster is, in one way: angle=... in radians or link='spacing' on a sphere, or "
            "distance=... in R^d"
        )
    if link is not None:
        require(link in LINKS, f"link must be {' or '.join(map(repr, LINKS))}, got {link!r}")
        return (("link", link),)
    if angle is not None:
        require(0 < angle < math.pi, f"the cluster angle must lie in (0, pi), got {angle}")
        return (("angle", float(angle)),)
    assert distance is not None
    require(distance > 0, f"the cluster distance must be positive, got {distance}")
    return (("distance", float(distance)),)


def _listing(largest: int) -> Parameters:
    require(
        isinstance(largest, int) and 1 <= largest <= MOST_LISTED,
        f"largest must be a whole number from 1 to {MOST_LISTED}, got {largest!r}",
    )
    return (("largest", largest),)


def _ranks(largest: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return (("cluster", tuple(float(rank) for rank in range(largest))),)


@register
def clusters(
    angle: float | None = None, distance: float | None = None, link: str | None = None
) -> Observable:
    """Number of clusters at a stated angle (sphere) or distance (R^d), or by a rule.

    Many tokens are linked by chance: at a fixed angle n uniform ones are one cluster from some n on.
    link="spacing" scales the angle with their spacing (`theory.spacing_angle`), so that they stay at least
    3n/4 clusters; only the number of tokens counts, not their weights. The angle in use, the count of
    uniform tokens and whether that leaves a meaning are recorded beside the values.
    """
    return Observable(
        "clusters",
        "clusters",
        _clusters,
        parameters=threshold(angle, distance, link),
        says="Number of connected components of tokens closer than the threshold",
        notes=linking,
    )


@register
def cluster_labels(
    angle: float | None = None, distance: float | None = None, link: str | None = None
) -> Observable:
    """Cluster of each token, numbered from 0 in the order of first tokens."""
    return Observable(
        "cluster_labels",
        "1",
        _cluster_labels,
        axes=("token",),
        parameters=threshold(angle, distance, link),
        says="Number of the cluster each token belongs to",
        notes=linking,
    )


@register
def cluster_sizes(
    angle: float | None = None,
    distance: float | None = None,
    largest: int = 8,
    link: str | None = None,
) -> Observable:
    """Tokens in each of the `largest` heaviest clusters, padded with 0."""
    return Observable(
        "cluster_sizes",
        "tokens",
        _cluster_sizes,
        axes=("cluster",),
        parameters=threshold(angle, distance, link) + _listing(largest),
        labels=_ranks(largest),
        says="Number of tokens of the heaviest clusters",
        notes=linking,
    )


@register
def cluster_masses(
    angle: float | None = None,
    distance: float | None = None,
    largest: int = 8,
    link: str | None = None,
) -> Observable:
    """Mass of each of the `largest` heaviest clusters, padded with 0."""
    return Observable(
        "cluster_masses",
        "1",
        _cluster_masses,
        axes=("cluster",),
        parameters=threshold(angle, distance, link) + _listing(largest),
        labels=_ranks(largest),
        says="Mass of the heaviest clusters",
        notes=linking,
    )


@register
def cluster_centres(
    angle: float | None = None,
    distance: float | None = None,
    largest: int = 8,
    link: str | None = None,
) -> Observable:
    """Centre of each of the `largest` heaviest clusters, padded with NaN."""
    return Observable(
        "cluster_centres",
        "1",
        _cluster_centres,
        axes=("cluster", "coordinate"),
        parameters=threshold(angle, distance, link) + _listing(largest),
        labels=_ranks(largest),
        says="Centres of the heaviest clusters",
        notes=linking,
    )
