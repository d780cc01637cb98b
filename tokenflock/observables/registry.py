"""Observables by name, for specs written as text. Each is registered once, where it is defined."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import InputError, require
from .base import Observable

Factory = Callable[..., Observable]
Registered = TypeVar("Registered", bound="Observable | Factory")
# Everything a text spec may ask for; filled by `register`, where an observable is defined.
OBSERVABLES: dict[str, Observable | Factory] = {}
# What takes a measure, which a text spec cannot hold.
IN_PYTHON_ONLY: set[str] = set()


def register(thing: Registered) -> Registered:
    """Make an observable, or a function that makes one from parameters, known by its name: a decorator."""
    name = thing.name if isinstance(thing, Observable) else thing.__name__
    require(name not in OBSERVABLES, f"there is an observable {name!r} already; use another name")
    OBSERVABLES[name] = thing
    return thing


def in_python_only(factory: Registered) -> Registered:
    """Mark a function that makes an observable from a measure: specs say how to have it."""
    IN_PYTHON_ONLY.add(getattr(factory, "__name__", ""))
    return factory


# What a parameter that is one number is declared as.
NUMBERS = ("int", "float", "int | None", "float | None")


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
