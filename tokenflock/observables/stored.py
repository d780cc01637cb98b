"""Observables of a run that is over, from the states it kept."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from ..density import Density
from ..dynamics import beta_axes
from ..measure import Measure
from ..reduce import Dense
from .base import Observable, Snapshot
from .settle import as_observable, settle_on_tokens


def observe_states(
    asked: Any,
    model: Any,
    blank: Measure | Density,
    times: Any,
    states: Any,
    lead: tuple[str, ...],
) -> tuple[Observable, Any]:
    """The observable with its axes, and its values at every (beta, sample, time) of an array of states."""
    thing = _settled(as_observable(asked), model, blank)
    return thing, _observe(thing, model, blank, times, states, lead)


def _settled(thing: Observable, model: Any, blank: Measure | Density) -> Observable:
    if isinstance(blank, Density):
        from ..meanfield.reading import settle_on_density

        return settle_on_density((thing,), model, blank)[0]
    return settle_on_tokens((thing,), model, blank, Dense())[0]


@eqx.filter_jit
def _observe(
    observable: Observable,
    model: Any,
    blank: Measure | Density,
    times: Any,
    states: Any,
    lead: tuple[str, ...],
) -> Any:
    def look(model: Any, t: Any, state: Any) -> Any:
        if isinstance(blank, Density):
            from ..meanfield.reading import read_state

            return read_state(observable, t, blank.at(state), model)
        return observable(Snapshot(t, blank.at(state), model, Dense()))

    compute = eqx.filter_vmap(look, in_axes=(None, 0, 0))
    for axis in reversed(lead[:-1]):
        over = beta_axes(model) if axis == "beta" else None
        compute = eqx.filter_vmap(compute, in_axes=(over, None, 0))
    return compute(model, times, states)
