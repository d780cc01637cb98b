"""The sweeps shipped in the package. Light: nothing here imports JAX."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from ..lab.catalogue import named_text, names_in


def _folder() -> Traversable:
    return resources.files("tokenflock.sweeps") / "examples"


def sweep_example_names() -> list[str]:
    """Names of the sweeps shipped in the package."""
    return names_in(_folder())


def sweep_example_text(name: str) -> str:
    """The TOML of one of them."""
    return named_text(_folder(), name, "tokenflock sweep --help")
