"""Opening a sweep, finished or not, with every byte checked against what was written.

Zarr reads a missing chunk as fill values without a word, and a changed one with an error that names
neither the array nor the cells. So chunks pass through a store that compares each with the journal.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import WrapperStore

from ..errors import StoreError
from ..results.durable import Mark, how_to_continue, mark
from ..results.names import JOURNAL, SWEEP_STORE
from ..results.own_store import OwnFiles
from ..results.zarr_format import files_of, open_zarr
from . import checking
from .checking import (
    Damage,
    Kind,
    cells_done,
    check_fixed,
    check_journal,
    check_summary,
    chunk_damage,
)
from .journal import Header, Journal
from .ownership import refuse_links

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 3
CHUNK = re.compile(r"(?P<array>.+)/c(?P<place>(\.\d+)*)")


def open_sweep(path: str | Path, verify: bool = True) -> xr.Dataset:
    """The dataset of a sweep; arrays are read from disk when they are used.

    path -- the folder of a sweep, or its sweep.zarr;
    verify -- read every file once and refuse a damaged sweep now. Without it a damaged chunk is refused
        when it is read.

    Dimensions are the swept names, then those of what was observed. Cells that are not finished are NaN,
    and "missing" in `outcome`; the attributes `cells`, `cells_done` and `cells_failed` count them.
    """
    folder = _folder(Path(path))
    refuse_links(folder, chunks=False)
    journal = Journal(folder / JOURNAL)
    header = journal.header
    if header is None:
        raise _damaged(folder, [*check_journal(journal)])
    known = [*check_fixed(folder, header), *check_summary(folder, journal)]
    if known:
        raise _damaged(folder, known)
    store = CheckedStore(files_of(folder / SWEEP_STORE), folder, journal)
    dataset = _in_order(_open(folder, store))
    _require_axes(folder, header, dataset)
    store.axes = {name: dataset[name].values for name in header.axes}
    damage = checking.verify(folder, journal, store.axes) if verify else []
    if damage:
        raise _damaged(folder, damage)
    return dataset.assign_attrs(_counts(header, journal))


def _folder(path: Path) -> Path:
    """The folder of a sweep from what a user may give for it."""
    try:
        if not path.exists():
            raise StoreError(f"{path} does not exist")
        folder = path.absolute().parent if path.name == SWEEP_STORE else path
        is_sweep = (folder / SWEEP_STORE).is_dir()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot open {str(path)!r}: {error}") from error
    if not is_sweep:
        raise StoreError(
            f"{path} is not the folder of a sweep (no {SWEEP_STORE}); open other results with tokenflock.open"
        )
    return folder


def _require_axes(folder: Path, header: Header, dataset: xr.Dataset) -> None:
    """A journal that is sound in itself may still be that of another dataset."""
    found = tuple(dataset.sizes.get(name) for name in header.axes)
    if found != header.shape or not set(header.axes) <= dataset.coords.keys():
        raise StoreError(
            f"{folder / JOURNAL} is not the journal of {SWEEP_STORE} beside it (it tells of {header.shape} "
            "cells); take the folder from a copy"
        )


def _open(folder: Path, store: CheckedStore) -> xr.Dataset:
    try:
        return open_zarr(folder / SWEEP_STORE, through=store)
    except StoreError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise StoreError(
            f"{folder / SWEEP_STORE} is not readable ({type(error).__name__}: {reason}); repair it with "
            f"{how_to_continue(folder)}"
        ) from error


def _in_order(dataset: xr.Dataset) -> xr.Dataset:
    """Arrays by name and not as the disk lists them, and texts as numpy's own, which all tools know."""
    texts = {
        name: (array.dims, np.array(array.values.tolist(), dtype=str))
        for name, array in dataset.coords.items()
        if array.dtype.kind == "T"
    }
    return dataset[sorted(map(str, dataset.data_vars))].assign_coords(texts)


def _damaged(folder: Path, damage: list[Damage]) -> StoreError:
    shown = "; ".join(map(str, damage[:SHOWN]))
    more = f"; and {len(damage) - SHOWN} more" if len(damage) > SHOWN else ""
    return StoreError(
        f"{folder} is damaged: {shown}{more}. Compute what is lost again with "
        f"{how_to_continue(folder)}, or take the folder from a copy"
    )


def _counts(header: Header, journal: Journal) -> dict[str, int]:
    done = cells_done(journal)
    return {"cells": header.grid.size, "cells_done": done, "cells_failed": journal.failed}


class CheckedStore(WrapperStore[OwnFiles]):
    """The files of a sweep as they were when its journal was read: unfinished blocks are not there."""

    def __init__(self, store: OwnFiles, folder: Path, journal: Journal):
        super().__init__(store)
        self.folder = folder
        self.journal = journal
        self.axes: dict[str, np.ndarray] = {}

    def _with_store(self, store: OwnFiles) -> CheckedStore:
        """Zarr asks for the same store once more, to read only."""
        same = CheckedStore(store, self.folder, self.journal)
        same.axes = self.axes
        return same

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A file, if it is what the journal has a mark of."""
        block = self._block(key)
        wanted = self._wanted(key, block)
        if block is not None and wanted is None:
            return None
        if wanted is not None:
            self._require_file(key, block)
        found = await super().get(key, prototype, byte_range)
        if wanted is not None and byte_range is None:
            self._check(key, block, wanted, None if found is None else found.to_bytes())
        return found

    def _block(self, key: str) -> int | None:
        """The block of a chunk; None for a file that follows from the spec."""
        header, place = self._header, CHUNK.fullmatch(key)
        if place is None or key in header.files:
            return None
        numbers = [int(number) for number in place["place"].split(".")[1:]]
        along = header.grid.blocks_along
        return int(np.ravel_multi_index(numbers[: len(along)], along)) if along else 0

    @property
    def _header(self) -> Header:
        header = self.journal.header
        if header is None:
            raise _damaged(self.folder, [*check_journal(self.journal)])
        return header

    def _wanted(self, key: str, block: int | None) -> Mark | None:
        if block is None:
            return self._header.files.get(key)
        entry = self.journal.entry(block)
        return None if entry is None else entry.files.get(key)

    def _require_file(self, key: str, block: int | None) -> None:
        """A link or a pipe in the place of a file is none of ours, wherever it leads."""
        try:
            kind = (self.folder / SWEEP_STORE / key).lstat().st_mode
        except OSError:
            return
        if not stat.S_ISREG(kind):
            raise _damaged(self.folder, [self._damage("unreadable", key, block)])

    def _check(self, key: str, block: int | None, wanted: Mark, content: bytes | None) -> None:
        if content is not None and mark(content) == wanted:
            return
        kind: Kind = "missing" if content is None else "changed"
        raise _damaged(self.folder, [self._damage(kind, key, block)])

    def _damage(self, kind: Kind, key: str, block: int | None) -> Damage:
        if block is None:
            return Damage(kind, f"{SWEEP_STORE}/{key}")
        return chunk_damage(kind, key, self._header, block, self.axes)
