"""States: what `solve` integrates. Tokens, merged clusters and densities; a new state is one class.

`as_state` turns what a user holds (a Measure, a Density) into the state that moves it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..batches import first_member
from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, StoreError
from ..measure import Measure
from ..observables.base import Observable
from ..observables.settle import settle, shape_of
from ..serialise import rebuild
from .densities import DensityState as DensityState
from .protocol import Carried as Carried
from .protocol import State as State
from .stepping import Merge as Merge
from .tokens import TokenState as TokenState


@functools.singledispatch
def as_state(start: Any) -> State:
    """The state of a start."""
    if isinstance(start, State):
        return start
    raise InputError(
        f"the tokens must be a Measure or a Density, got {type(start).__name__}; make one with "
        "flock.from_array(flock.Sphere(d), x) or flock.uniform(...)"
    )


@as_state.register
def _(start: Measure) -> State:
    return TokenState(start)


@as_state.register
def _(start: Density) -> State:
    return DensityState(start)


def from_description(attributes: dict[str, Any]) -> State:
    """The blank state of a stored run."""
    held = next((name for name in ("measure", "density") if name in attributes), None)
    if held is None:
        raise StoreError(
            "this run is of a state that tokenflock cannot rebuild; its arrays are in run.dataset"
        )
    return as_state(rebuild(attributes[held]))


def settle_on(
    state: State, things: Sequence[Observable], model: Dynamics
) -> tuple[Observable, ...]:
    """The observables of a run, tried on shapes alone: nothing is computed."""

    def grown(thing: Observable) -> tuple[int, ...] | None:
        try:
            return value_shape(state, thing, model, more=1).shape
        except (
            Exception
        ):  # Whatever fits these tokens only: a mask, weights, an array in a function.
            return None

    return settle(things, lambda thing: value_shape(state, thing, model), state.sizes, grown)


def value_shape(state: State, thing: Observable, model: Dynamics, more: int = 0) -> Any:
    """Shape and type of an observable's value, or of that with `more` tokens, without computing it."""
    one = first_member(model)
    given = (thing, one, state.blank(), state.at_start(), more)
    return shape_of(thing, lambda: thing(state.trial(one, more)), given)
