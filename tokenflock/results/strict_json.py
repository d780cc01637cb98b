"""Data and words that do no harm: nested data as strict JSON has it, texts as a terminal may have them."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """Arrays become lists, and NaN and infinity, which strict JSON cannot hold, become None."""
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numbers and arrays of numpy, which need not be loaded for this
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def exact(value: Any) -> Any:
    """As `plain`, but NaN and infinity are written as {"number": "nan"}, so that `restored` has them back."""
    if isinstance(value, dict):
        return {str(name): exact(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(entry) for entry in value]
    if hasattr(value, "tolist"):
        return exact(value.tolist())
    return (
        {"number": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value
    )


def restored(value: Any) -> Any:
    """The inverse of `exact`, but for tuples, which come back as lists; a stranger's tables stay tables."""
    if isinstance(value, dict):
        if set(value) == {"number"} and value["number"] in ("nan", "inf", "-inf"):
            return float(value["number"])
        return {name: restored(entry) for name, entry in value.items()}
    return [restored(entry) for entry in value] if isinstance(value, list) else value


def is_deeper_than(value: Any, most: int) -> bool:
    """Whether dicts and lists stand inside one another more than `most` deep.

    Counted without recursion: what walks through nested data calls itself once for every level.
    """
    level = [value]
    for _ in range(most + 1):
        level = [entry for entry in level if isinstance(entry, (dict, list, tuple))]
        if not level:
            return False
        level = [
            inner
            for entry in level
            for inner in (entry.values() if isinstance(entry, dict) else entry)
        ]
    return True


def printable(value: Any) -> str:
    """One line of text: what is no letter is written as an escape, so that it cannot steer a terminal."""
    text = str(value).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
