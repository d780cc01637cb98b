"""Plain functions of a snapshot as observables."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InputError, require
from .base import Observable, Snapshot

# An observable, or a function of one snapshot.
Observed = Observable | Callable[[Snapshot], Any]

EXAMPLE = (
    "flock.energy, flock.clusters(link='spacing'), or functions of a snapshot such as "
    "lambda s: s.measure.points[0, 0]"
)


def as_observables(things: Any) -> tuple[Observable, ...]:
    """All as observables; axes of functions are found when the run is known."""
    require(
        isinstance(things, Sequence) and not isinstance(things, str),
        f"observe takes a list of observables such as {EXAMPLE}; got {things!r}",
    )
    return tuple(as_observable(thing, index) for index, thing in enumerate(things))


def as_observable(thing: Any, position: int = 0) -> Observable:
    """A plain function under its own name; a lambda has none and is called observable_<its position>."""
    if isinstance(thing, Observable):
        return thing
    if not callable(thing) or isinstance(thing, type):
        raise InputError(f"observe takes observables such as {EXAMPLE}; got {thing!r}")
    function: Callable[..., Any] = thing
    plain = thing.func if isinstance(thing, functools.partial) else thing
    name = getattr(plain, "__name__", type(plain).__name__)
    if makes_observables(plain):
        raise InputError(
            f"{name} makes an observable and is none itself: call it with its parameters, "
            f"{name}({', '.join(inspect.signature(plain).parameters)})"
        )
    name = f"observable_{position}" if name == "<lambda>" else name
    says = (inspect.getdoc(plain) or "").split("\n")[0] if inspect.isroutine(plain) else ""
    return Observable(name, "", function, says=says)


def makes_observables(function: Any) -> bool:
    """Whether it is a factory such as flock.clusters: it says that an Observable is what it returns."""
    try:
        said = inspect.signature(function).return_annotation
    except (TypeError, ValueError):
        return False
    name = said if isinstance(said, str) else getattr(said, "__name__", "")
    return name.split(".")[-1] == Observable.__name__
