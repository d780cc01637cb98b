"""Names of the stores of finished parts of a run: 000003-000007.zarr holds the parts 3 to 7."""

from __future__ import annotations

import re
from collections.abc import Iterable

PART = re.compile(r"([0-9]{6,12})-([0-9]{6,12})\.zarr")


def part_name(first: int, last: int) -> str:
    """The name of the store of some consecutive parts."""
    return f"{first:06d}-{last:06d}.zarr"


def part_range(name: str) -> tuple[int, int] | None:
    """First and last part in a store of this name; None if it is not one of a run's."""
    found = PART.fullmatch(name)
    first, last = (-1, -1) if found is None else map(int, found.groups())
    return (first, last) if 0 <= first <= last and name == part_name(first, last) else None


def chained(names: Iterable[str]) -> list[str]:
    """The stores of parts among these names, in order, up to the first gap; other names are left out."""
    parts = sorted((span, name) for name in names if (span := part_range(name)) is not None)
    found: list[str] = []
    awaited = 0
    for (first, last), name in parts:
        if first != awaited:
            break
        found.append(name)
        awaited = last + 1
    return found
