"""Observables of a run that is over, from the states it kept."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from ..batches import batch_in_axes
from ..observables.base import Observable
from ..observables.plain import as_observable
from . import settle_on
from .protocol import State


def observe_states(
    asked: Any, model: Any, blank: State, times: Any, states: Any, lead: tuple[str, ...]
) -> tuple[Observable, Any]:
    """The observable with its axes, and its values at every (model, sample, time) of an array of states."""
    thing = settle_on(blank, (as_observable(asked),), model)[0]
    return thing, _observe(thing, model, blank, times, states, lead)


@eqx.filter_jit
def _observe(
    observable: Observable, model: Any, blank: State, times: Any, states: Any, lead: tuple[str, ...]
) -> Any:
    def look(model: Any, t: Any, row: Any) -> Any:
        return observable(blank.stored_snapshot(model, t, row))

    compute = eqx.filter_vmap(look, in_axes=(None, 0, 0))
    for axis in reversed(lead[:-1]):
        over = None if axis.startswith("sample") else batch_in_axes(model)
        compute = eqx.filter_vmap(compute, in_axes=(over, None, 0))
    return compute(model, times, states)
