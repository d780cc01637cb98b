"""The examples shipped in the package. Light: nothing here imports JAX."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from ..errors import InputError
from ..names import nearest


def _folder() -> Traversable:
    return resources.files("tokenflock.lab") / "examples"


def example_names() -> list[str]:
    """Names of the specs shipped in the package."""
    return names_in(_folder())


def example_text(name: str) -> str:
    """The TOML of one example."""
    return named_text(_folder(), name, "tokenflock list examples")


def names_in(folder: Traversable) -> list[str]:
    """Names of the specs in a folder."""
    names = (item.name for item in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def named_text(folder: Traversable, name: str, listing: str) -> str:
    """One spec of a folder; `listing` shows what there is."""
    known = names_in(folder)
    if name not in known:
        hint = nearest(name, known) or f"; see {listing}"
        raise InputError(f"there is no example {name!r}{hint}")
    return (folder / f"{name}.toml").read_text(encoding="utf-8")
