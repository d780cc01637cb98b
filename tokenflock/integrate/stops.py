"""Stops: conditions that end a run before t1. Any of them suffices."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import require
from ..observables import clusters
from ..observables import diameter as diameter_of
from ..observables.base import Snapshot


class Stop(eqx.Module):
    """A condition looked at after every accepted step.

    A boolean ends the run at the first step where it is true; a real number ends it where it falls to
    zero, located inside the step by root finding.
    """

    condition: Callable[..., Array] = eqx.field(static=True)
    parameters: tuple[tuple[str, float], ...] = eqx.field(static=True, default=())
    says: str = eqx.field(static=True, default="a user's event")

    def __call__(self, snapshot: Snapshot) -> Array:
        return self.condition(snapshot, **dict(self.parameters))


def at_clusters(count: int, angle: float) -> Stop:
    """Stop when at most `count` clusters are left, at this linking angle (a distance on R^d)."""
    require(count >= 1, f"count must be at least 1, got {count}")
    require(angle > 0, f"angle must be positive, got {angle}")
    return Stop(_few_clusters, (("count", count), ("angle", angle)), f"{count} clusters left")


def at_diameter(below: float) -> Stop:
    """Stop when the largest distance between two tokens falls below this."""
    require(below > 0, f"the diameter must be positive, got {below}")
    return Stop(_small_diameter, (("below", below),), f"diameter below {below:g}")


def when(condition: Callable[[Snapshot], Array]) -> Stop:
    """Stop when a function of the snapshot (t, measure, model) becomes true, or falls to zero."""
    return Stop(condition)


def _few_clusters(snapshot: Snapshot, count: float, angle: float) -> Array:
    return clusters(angle)(snapshot) <= count


def _small_diameter(snapshot: Snapshot, below: float) -> Array:
    return diameter_of(snapshot) - below


def first_stop(values: list[Array]) -> Array:
    """Several conditions as one: true when one is true, or falling to zero with the first that does."""
    if all(value.dtype == bool for value in values):
        return jnp.any(jnp.stack(values))
    reals = [jnp.where(v, -1.0, 1.0) if v.dtype == bool else v for v in values]
    return jnp.min(jnp.stack(reals))
