"""How a user names a claim or a figure: PAPERvVERSION/NAME, or any part of it that is unique."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from .errors import InputError


class Identified(Protocol):
    """Anything with an id of the form PAPERvVERSION/NAME."""

    @property
    def id(self) -> str:
        """The id."""
        ...


T = TypeVar("T", bound=Identified)


def without_version(paper: str) -> str:
    """2312.10794v4 -> 2312.10794."""
    return paper.split("v")[0]


def find_named(name: str, things: Sequence[T], kind: str) -> T:
    """The thing with this id; the version, or the whole paper, may be left out if that is unique."""
    for shorten in (str, _without_version, _without_paper):
        found = [thing for thing in things if shorten(thing.id) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"{name!r} is ambiguous: {', '.join(thing.id for thing in found)}")
    advice = nearest(name, [thing.id for thing in things], most=3) or "."
    raise InputError(f"no {kind} is called {name!r}{advice} See tokenflock list {kind}s")


def nearest(word: object, options: Iterable[str], most: int = 1) -> str:
    """A suggestion to end a sentence with, or nothing; of several, as they are typed in a shell."""
    close = difflib.get_close_matches(str(word), list(options), n=most, cutoff=0.5)
    said = map(repr, close) if most == 1 else close
    return f"; did you mean {' or '.join(said)}?" if close else ""


def _without_version(identity: str) -> str:
    paper, name = identity.split("/", 1)
    return f"{without_version(paper)}/{name}"


def _without_paper(identity: str) -> str:
    return identity.split("/", 1)[1]
