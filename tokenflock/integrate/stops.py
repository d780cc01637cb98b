"""Stops: conditions that end a run before t1. Any of them suffices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import require
from ..measure import Measure
from ..observables import clusters
from ..observables import diameter as diameter_of
from ..observables.base import Snapshot
from ..observables.components import linking, threshold
from ..states.protocol import State


class Stop(eqx.Module):
    """A condition looked at after every accepted step.

    A boolean ends the run where it becomes true, a real number where it falls to zero; the time is
    located inside the step by bisection. `notes` says what the parameters come to on given tokens, as
    that of an observable does.
    """

    condition: Callable[..., Array] = eqx.field(static=True)
    parameters: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())
    says: str = eqx.field(static=True, default="a user's event")
    notes: Callable[..., dict[str, Any]] | None = eqx.field(static=True, default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return self.condition(snapshot, **dict(self.parameters))

    @property
    def attributes(self) -> dict[str, Any]:
        """What is written beside the times at which it ended runs."""
        return {"stop": self.says, **dict(self.parameters)}

    def attributes_on(self, measure: Measure) -> dict[str, Any]:
        """The attributes, with what the parameters come to on these tokens."""
        more = {} if self.notes is None else self.notes(measure, **dict(self.parameters))
        return {**self.attributes, **more}


def at_clusters(
    count: int,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Stop:
    """Stop when at most `count` clusters are left, linked at an angle or by a rule, or a distance (R^d)."""
    require(count >= 1, f"count must be at least 1, got {count}")
    linked = threshold(angle, distance, link)
    return Stop(
        _few_clusters,
        (("count", count), *linked),
        "1 cluster left" if count == 1 else f"{count} clusters left",
        linking,
    )


def at_diameter(below: float) -> Stop:
    """Stop when the largest distance between two tokens falls below this."""
    require(below > 0, f"the diameter must be positive, got {below}")
    return Stop(_small_diameter, (("below", float(below)),), f"diameter below {below:g}")


def when(condition: Callable[[Snapshot], Array]) -> Stop:
    """Stop when a function of the snapshot (t, measure, model) becomes true, or falls to zero."""
    return Stop(condition)


def _few_clusters(
    snapshot: Snapshot,
    count: float,
    angle: float | None = None,
    distance: float | None = None,
    link: str | None = None,
) -> Array:
    return clusters(angle, distance, link)(snapshot) <= count


def _small_diameter(snapshot: Snapshot, below: float) -> Array:
    return diameter_of(snapshot) - below


def said_of_stops(stops: tuple[Stop, ...], state: State) -> dict[str, Any]:
    """What is written beside the time a run reached: its stops, the angles they use, what those mean."""
    told = [state.notes(stop) for stop in stops]
    notes = [f"stop at {said['stop']}: {said['note']}" for said in told if "note" in said]
    merged = {name: value for said in told for name, value in said.items()}
    if told:
        merged["stop"] = "; ".join(said["stop"] for said in told)
    return {**merged, "note": "; ".join(notes)} if notes else merged


def rises_at_stop(values: list[Array]) -> Array:
    """Several conditions as one number that rises through zero when the first of them is met."""
    reals = [jnp.where(v, -1.0, 1.0) if v.dtype == bool else v for v in values]
    return -jnp.min(jnp.stack(reals))
