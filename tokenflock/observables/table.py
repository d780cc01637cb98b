"""The table of registered observables: what a text spec may ask for, and whose each name is."""

from __future__ import annotations

from collections.abc import Callable

from .base import Observable

Factory = Callable[..., Observable]
# Everything a text spec may ask for; filled by `register`, where an observable is defined.
OBSERVABLES: dict[str, Observable | Factory] = {}


def belongs_to_another(thing: Observable) -> bool:
    """Whether a registered observable that computes something else has this name."""
    known = OBSERVABLES.get(thing.name)
    if known is None:
        return False
    if isinstance(known, Observable):
        return (thing.compute, thing.parameters) != (known.compute, known.parameters)
    return thing.maker is not known
