"""Whose a part is: every stored part names what its numbers follow from.

An identity is a few short texts by name, such as {"spec": "1f0c...", "precision": "float64"}. Parts are
continued, joined or shown together only if theirs are equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..errors import StoreError

Identity: TypeAlias = Mapping[str, str]
# The name under which a part keeps it.
PART_OF = "part_of"
DIGITS = 16
SHOWN = 40


def digest(content: Any) -> str:
    """Sixteen digits of plain data, whatever the order of its names."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def require_same(part: object, found: Any, expected: Identity, what_to_do: str) -> None:
    """Refuse a part that belongs elsewhere, with what it says, what is needed, and what to do."""
    if not isinstance(found, Mapping) or not found:
        raise StoreError(
            f"{part} does not say what it belongs to, as parts written by release 0.1 do not (needed: "
            f"{_listed(expected)}); {what_to_do}"
        )
    wrong = [name for name in expected if found.get(name) != expected[name]]
    if wrong:
        here = {name: found.get(name, "nothing") for name in wrong}
        needed = {name: expected[name] for name in wrong}
        raise StoreError(
            f"{part} belongs to something else: it has {_listed(here)}, where {_listed(needed)} is needed; "
            f"{what_to_do}"
        )


def _listed(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {str(value)[:SHOWN]}" for name, value in entries.items())
