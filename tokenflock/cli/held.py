"""A place for results that is one command's alone, from before it computes until it has written."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def held(place: Path | None) -> AbstractContextManager[Any]:
    """Refuse a second command that would write there, before it computes anything."""
    if place is None:
        return nullcontext()
    from ..results.locking import only_writer_of

    return only_writer_of(place)
