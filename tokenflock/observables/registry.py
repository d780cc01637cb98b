"""Observables by name, for specs written as text."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import InputError, require
from .attention import attention_entropy, attention_matrix, attention_rank
from .base import Observable
from .centres import renyi_centre_mask, renyi_centres, strong_centre_mask, strong_centres
from .circle import fourier_moments
from .components import (
    cluster_centres,
    cluster_labels,
    cluster_masses,
    cluster_sizes,
    clusters,
)
from .densities import entropy, free_energy, free_energy_rate, largest_density, peaks
from .energies import energy, energy_rate, scaled_energy
from .geometry import (
    convex_hull_volume,
    diameter,
    effective_rank,
    mean_radius,
    min_alignment,
    order_parameter,
    speed,
)
from .hardmax import leader_mask, leaders
from .identities import dissipation
from .pairs import gram_histogram, pair_fraction

_VALUES = (
    energy,
    scaled_energy,
    energy_rate,
    dissipation,
    diameter,
    order_parameter,
    effective_rank,
    mean_radius,
    speed,
    convex_hull_volume,
    attention_matrix,
    attention_entropy,
    attention_rank,
    leader_mask,
    leaders,
    entropy,
    free_energy,
    free_energy_rate,
    largest_density,
)
_FACTORIES = (
    clusters,
    cluster_labels,
    cluster_sizes,
    cluster_masses,
    cluster_centres,
    gram_histogram,
    pair_fraction,
    fourier_moments,
    min_alignment,
    renyi_centres,
    renyi_centre_mask,
    strong_centres,
    strong_centre_mask,
    peaks,
)

OBSERVABLES: dict[str, Observable | Callable[..., Observable]] = {
    **{value.name: value for value in _VALUES},
    **{factory.__name__: factory for factory in _FACTORIES},
}

# What a parameter that is one number is declared as.
NUMBERS = ("int", "float", "int | None", "float | None")
# These take a measure, which a text spec cannot hold.
IN_PYTHON_ONLY = ("w2", "sinkhorn_divergence")


def make(name: str, **parameters: Any) -> Observable:
    """The observable of that name, with its parameters."""
    require(
        name not in IN_PYTHON_ONLY,
        f"{name} needs a target measure: make it in Python with flock.{name}(target, ...)",
    )
    if name not in OBSERVABLES:
        raise InputError(f"there is no observable {name!r}; {_nearest(name, OBSERVABLES)}")
    found = OBSERVABLES[name]
    if isinstance(found, Observable):
        require(not parameters, f"{name} takes no parameters, got {', '.join(parameters)}")
        return found
    _check_parameters(name, found, parameters)
    return found(**parameters)


def _check_parameters(
    name: str, factory: Callable[..., Observable], parameters: dict[str, Any]
) -> None:
    known = inspect.signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"{name} has no parameter {parameter!r}; {_nearest(parameter, known)}")
        value = parameters[parameter]
        require(
            known[parameter].annotation not in NUMBERS or isinstance(value, (int, float)),
            f"{name} needs a number for {parameter}, got {value!r}",
        )
    for parameter, about in known.items():
        require(
            about.default is not inspect.Parameter.empty or parameter in parameters,
            f"{name} needs the parameter {parameter!r}",
        )


def _nearest(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
