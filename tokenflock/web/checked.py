"""The dataset of a sweep folder for a page: damaged chunks are told and left out, the rest is shown."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from ..errors import StoreError
from ..records.finding import is_own_file
from ..sweeps.checking import JOURNAL, SPEC, STORE, Damage, check_journal, compare, where_is
from ..sweeps.journal import Header, Journal
from ..sweeps.reading import CHUNK, CheckedStore

LARGEST_JOURNAL = 256 * 2**20
MOST_TOLD = 3


class Told:
    """What was found damaged while a sweep was read, each once and in words."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.found: dict[str, str] = {}
        self.unchecked = ""

    def add(self, file: str, words: str) -> None:
        """Note what is wrong with a file."""
        self.found[file] = words

    @property
    def repair(self) -> str:
        """The command that computes again what is lost."""
        return f"repair it with tokenflock sweep --resume --out {shlex.quote(self.folder.name)}"

    def notes(self) -> list[str]:
        """Sentences for the page: the first few, how many more, and what to do."""
        words = list(self.found.values())
        more = [f"and {len(words) - MOST_TOLD} more files"] if len(words) > MOST_TOLD else []
        damage = [*words[:MOST_TOLD], *more, self.repair] if words else []
        return [*damage, *([self.unchecked] if self.unchecked else [])]


def open_shown(store: Path, told: Told) -> Any:
    """The dataset of a sweep, read when its numbers are asked for; a damaged chunk reads as missing.

    Raises StoreError where the shape of an array or the values of an axis cannot be trusted.
    """
    journal = _journal(store, told)
    header = None if journal is None else journal.header
    if journal is None or header is None:
        told.unchecked = told.unchecked or f"the numbers are not checked: {JOURNAL} is damaged"
        return opened(store)
    _check_fixed(store, header, told)
    files = ShownStore(LocalStore(store, read_only=True), store.parent, journal, told)
    dataset = opened(files)
    files.axes.update({name: dataset[name].values for name in header.axes})
    return dataset


def opened(store: Any) -> Any:
    """The dataset of any store that xarray can open."""
    import xarray as xr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_zarr(
            store, consolidated=False, chunks=None, decode_times=False, mask_and_scale=False
        )


def _journal(store: Path, told: Told) -> Journal | None:
    """The journal beside a store, if there is one that a page can read."""
    place = store.parent / JOURNAL
    if store.name != STORE or not is_own_file(place):
        told.unchecked = f"the numbers are not checked: there is no {JOURNAL} beside them"
        return None
    if place.lstat().st_size > LARGEST_JOURNAL:
        told.add(
            JOURNAL, f"its {JOURNAL} is too large for the page, so the numbers are not checked"
        )
        return None
    journal = Journal(place)
    for damage in check_journal(journal):
        told.add(JOURNAL, str(damage))
    return journal


def _check_fixed(store: Path, header: Header, told: Told) -> None:
    """What follows from the spec: a page can do without the spec itself, and not without the rest."""
    wanted = {SPEC: header.text} | {f"{STORE}/{name}": mark for name, mark in header.files.items()}
    for file, mark in wanted.items():
        path = store.parent / file
        found = compare(path, mark) if is_own_file(path) else ("missing", "")
        if found is None:
            continue
        words = str(Damage(found[0], file, detail=found[1]))
        if file != SPEC:
            raise StoreError(f"{words}; {told.repair}")
        told.add(file, words)


class ShownStore(CheckedStore):
    """A damaged chunk is told, and reads as one that is not there."""

    def __init__(
        self,
        store: LocalStore,
        folder: Path,
        journal: Journal,
        told: Told,
        axes: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(store, folder, journal)
        self.told = told
        self.axes = {} if axes is None else axes

    def _with_store(self, store: LocalStore) -> ShownStore:
        return ShownStore(store, self.folder, self.journal, self.told, self.axes)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A file as it was written, or None."""
        chunk = CHUNK.fullmatch(key)
        path = self.folder / STORE / key
        if path.exists() and not is_own_file(path):
            self._tell(key, "is not a plain file")
            return None
        try:
            return await super().get(key, prototype, byte_range)
        except StoreError:
            if chunk is None:
                raise
            self._tell(key, "is changed" if path.exists() else "is missing")
            return None

    def _tell(self, key: str, wrong: str) -> None:
        array, cells = key.split("/")[0], ""
        place, header = CHUNK.fullmatch(key), self.journal.header
        if place is not None and header is not None:
            grid = header.grid
            numbers = [int(n) for n in place["place"].split(".")[1:]][: len(grid.shape)]
            index = int(np.ravel_multi_index(numbers, grid.blocks_along)) if numbers else 0
            cells = f" at {where_is(grid.block(index), self.axes)}" if self.axes else ""
        self.told.add(key, f"{array}{cells} ({STORE}/{key}) {wrong}")
