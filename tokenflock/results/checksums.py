"""A checksum of every array beside it, since Zarr reads a missing chunk as fill values without a word."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from ..errors import StoreError
from .names import METADATA
from .own_files import required_object
from .zarr_format import array_names, open_array, require_own_format

# Among the attributes of a store.
CHECKSUMS = "checksums"
SHOWN = 3


def checksum(array: np.ndarray) -> str:
    """Sixteen digits of the type, the shape and the bytes."""
    content = np.ascontiguousarray(array)
    digest = hashlib.blake2b(f"{content.dtype.str}{content.shape}".encode(), digest_size=8)
    digest.update(content.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def differing(stated: dict[str, str], found: dict[str, str]) -> list[str]:
    """Arrays that are missing, or new, or not as they were written."""
    names = stated.keys() | found.keys()
    return sorted(name for name in names if stated.get(name) != found.get(name))


def damage_of(store: Path) -> str | None:
    """What is wrong with a store, or None; one array at a time is in memory."""
    try:
        require_own_format(store)
        attributes = required_object(store / METADATA).get("attributes")
        stated = attributes.get(CHECKSUMS) if isinstance(attributes, dict) else None
        if not isinstance(stated, dict):
            return (
                f"{store.name} has no checksums, so nothing tells whether it is as it was written"
            )
        wrong = [told for name in sorted(stated) if (told := _wrong(store / name, stated[name]))]
        others = sorted(set(array_names(store)) - stated.keys())
    except StoreError as error:
        return str(error)
    wrong += [f"{name} does not belong to it" for name in others]
    more = f", and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return f"{store.name}: {', '.join(wrong[:SHOWN])}{more}" if wrong else None


def _wrong(array: Path, stated: object) -> str | None:
    if array.name in ("", ".", "..") or not (array / METADATA).exists():
        return f"{array.name} is missing"
    try:
        found = checksum(np.asarray(open_array(array)[...]))
    except StoreError as error:
        return f"{array.name} cannot be read: {error}"
    # A damaged file may raise anything, in whatever decodes it.
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:100]
        return f"{array.name} cannot be read ({type(error).__name__}: {reason})"
    return None if found == stated else f"{array.name} is not as it was written"
