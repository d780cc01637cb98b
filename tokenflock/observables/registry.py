"""Observables by name, for specs written as text. Each is registered once, where it is defined."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..errors import InputError, require
from .base import FACTORY_SAYS_SO, Observable, Snapshot
from .naming import check_word
from .plain import as_observable, makes_observables
from .table import OBSERVABLES, Factory

Made = TypeVar("Made", bound=Factory)
# What takes a measure, which a text spec cannot hold.
IN_PYTHON_ONLY: set[str] = set()


@overload
def register(thing: Observable) -> Observable: ...
@overload
def register(thing: Made) -> Made: ...
@overload
def register(thing: Callable[[Snapshot], Any]) -> Observable: ...
def register(thing: Any) -> Any:
    """Make an observable known by its name: a decorator, too.

    `thing` is an Observable, a function of a snapshot, which becomes one, or a function that makes one from
    parameters and says so: `def above(level: float) -> Observable`.
    """
    known = _marking(thing) if makes_observables(thing) else _from_function(thing)
    name = known.name if isinstance(known, Observable) else known.__name__
    check_word(name)
    require(name not in OBSERVABLES, f"there is an observable {name!r} already; use another name")
    OBSERVABLES[name] = known
    return known


def _from_function(thing: Any) -> Observable:
    """An observable as it is, or a function of a snapshot as one."""
    found = as_observable(thing)
    if found is thing:
        return found
    if getattr(thing, "__name__", "") == "<lambda>":
        raise InputError(
            "a lambda has no name to be asked for by; register Observable(name, units, function)"
        )
    try:
        inspect.signature(thing).bind(None)
    except TypeError as error:
        raise InputError(
            f"{found.name} cannot be called with one snapshot: {error}; {FACTORY_SAYS_SO}"
        ) from error
    return found


def _marking(factory: Factory) -> Factory:
    """The same function; what it makes under its own name knows who made it."""

    @functools.wraps(factory)
    def make_marked(*values: Any, **parameters: Any) -> Observable:
        made = factory(*values, **parameters)
        own = made.name == factory.__name__
        return dataclasses.replace(made, maker=make_marked) if own else made

    return make_marked


def in_python_only(factory: Made) -> Made:
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
        hint = "" if found.is_ours else f"; {FACTORY_SAYS_SO}"
        require(not parameters, f"{name} takes no parameters, got {', '.join(parameters)}{hint}")
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
