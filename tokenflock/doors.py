"""Doors from a run to what is built upon it: pictures, files, the page.

`run.plot()` is drawn by a package that itself reads runs. So that neither has to know the other, a run knows
only the name of the door, and the package as a whole says in its `__init__` what stands behind each.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_BEHIND: dict[str, str] = {}


def open_doors(**behind: str) -> None:
    """Say what stands behind doors, as "module:function"; it is loaded when the door is used."""
    _BEHIND.update(behind)


def door(name: str) -> Callable[..., Any]:
    """What stands behind a door."""
    module, function = _BEHIND[name].split(":")
    return getattr(import_module(module), function)
