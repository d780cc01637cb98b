"""The files of a folder as a Zarr store to read, each looked at before it is read and before it grows."""

from __future__ import annotations

import os
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore, WrapperStore

from ..errors import StoreError
from .bounds import LONGEST_HEAD, require_chunk
from .names import METADATA
from .own_files import is_no_file, read_object


class OwnFiles(WrapperStore[LocalStore]):
    """What is no plain file is refused: a pipe would be waited for, and a link may lead anywhere.

    So is a chunk that would grow beyond what its array says.
    """

    def __init__(self, store: LocalStore):
        super().__init__(store)
        self._described: dict[str, dict[str, Any]] = {}

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A file, or None where there is none."""
        path = self._store.root / key
        if is_no_file(path) and not os.path.isdir(path):
            raise StoreError(f"{path} is a link or a pipe, and not a plain file")
        found = await super().get(key, prototype, byte_range)
        array = _array_of(key)
        if found is not None and byte_range is None and array is not None:
            head = found[:LONGEST_HEAD].to_bytes()
            require_chunk(path, head, self._metadata(array))
        return found

    def _metadata(self, array: str) -> dict[str, Any]:
        if array not in self._described:
            self._described[array] = read_object(self._store.root / array / METADATA)
        return self._described[array]


def _array_of(key: str) -> str | None:
    """The array that a chunk belongs to: energy/c/0/1 and energy/c.0.1 to energy; None for no chunk."""
    parts = key.split("/")
    for place, part in enumerate(parts):
        if part == "c" or part.startswith("c."):
            return "/".join(parts[:place])
    return None
