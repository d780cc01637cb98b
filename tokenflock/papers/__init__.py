"""What the papers say, one folder a paper: its identity, its claims, its figures.

A new paper is a new folder here and nothing else; docs/papers.md shows one (`tokenflock.ledger.paper` says
what is in a folder).
"""

import pkgutil
from importlib import import_module
from typing import Any


def __dir__() -> list[str]:
    return [folder.name for folder in pkgutil.iter_modules(__path__) if folder.ispkg]


def __getattr__(name: str) -> Any:
    if name not in __dir__():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
