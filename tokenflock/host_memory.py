"""How much memory this machine has for us; nothing here imports JAX."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import require

SHARE = 0.8
LIMIT_VARIABLE = "TOKENFLOCK_MEMORY_GIB"
GIB = 2.0**30
# The limit of a container (cgroup v2), which the machine's own count of pages does not know.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def stated_bytes() -> float | None:
    """What $TOKENFLOCK_MEMORY_GIB allows, if it is set."""
    given = os.environ.get(LIMIT_VARIABLE)
    if not given:
        return None
    try:
        size = float(given)
    except ValueError:
        size = float("nan")
    require(
        size > 0,
        f"{LIMIT_VARIABLE} must be a positive number of GiB, for example 16; got {given!r}",
    )
    return size * GIB


def host_bytes() -> float:
    """Memory that may be used: $TOKENFLOCK_MEMORY_GIB, or 80 % of machine and container."""
    stated = stated_bytes()
    return SHARE * min(_machine_bytes(), _container_bytes()) if stated is None else stated


def _machine_bytes() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return float("inf")


def _container_bytes() -> float:
    try:
        return float(CONTAINER_LIMIT.read_text())
    except (OSError, ValueError):
        return float("inf")


def in_gib(size: float) -> str:
    """A size in words."""
    return f"{size / GIB:.3g} GiB"
