"""The dataset of a sweep folder for a page: damaged chunks are told and left out, the rest is shown."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from ..errors import StoreError
from ..results.names import JOURNAL, SWEEP_SPEC, SWEEP_STORE
from ..results.own_files import is_own_file
from ..results.own_store import OwnFiles
from ..results.zarr_format import files_of, open_zarr
from ..sweeps.checked_reading import CHUNK, CheckedStore
from ..sweeps.checking import Damage, check_journal, check_summary, compare, where_is
from ..sweeps.journal import Header, Journal

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
        return open_zarr(store)
    _check_fixed(store, header, told)
    files = ShownStore(files_of(store), store.parent, journal, told)
    dataset = open_zarr(store, through=files)
    files.axes.update({name: dataset[name].values for name in header.axes})
    return dataset


def _journal(store: Path, told: Told) -> Journal | None:
    """The journal beside a store, if there is one that a page can read."""
    place = store.parent / JOURNAL
    if store.name != SWEEP_STORE or not is_own_file(place):
        told.unchecked = f"the numbers are not checked: there is no {JOURNAL} beside them"
        return None
    if place.lstat().st_size > LARGEST_JOURNAL:
        told.add(
            JOURNAL, f"its {JOURNAL} is too large for the page, so the numbers are not checked"
        )
        return None
    try:
        journal = Journal(place)
    except StoreError:
        told.unchecked = f"the numbers are not checked: {JOURNAL} cannot be read"
        return None
    # A damaged line is the reason why the two disagree.
    for damage in [*check_journal(journal)] or check_summary(store.parent, journal):
        told.add(damage.file, str(damage))
    return journal


def _check_fixed(store: Path, header: Header, told: Told) -> None:
    """What follows from the spec: a page can do without the spec itself, and not without the rest."""
    wanted = {SWEEP_SPEC: header.text} | {
        f"{SWEEP_STORE}/{name}": mark for name, mark in header.files.items()
    }
    for file, mark in wanted.items():
        path = store.parent / file
        found = compare(path, mark) if is_own_file(path) else ("missing", "")
        if found is None:
            continue
        words = str(Damage(found[0], file, detail=found[1]))
        if file != SWEEP_SPEC:
            raise StoreError(f"{words}; {told.repair}")
        told.add(file, words)


class ShownStore(CheckedStore):
    """A damaged chunk is told, and reads as one that is not there."""

    def __init__(
        self,
        store: OwnFiles,
        folder: Path,
        journal: Journal,
        told: Told,
        axes: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(store, folder, journal)
        self.told = told
        self.axes = {} if axes is None else axes

    def _with_store(self, store: OwnFiles) -> ShownStore:
        return ShownStore(store, self.folder, self.journal, self.told, self.axes)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A file as it was written, or None."""
        path = self.folder / SWEEP_STORE / key
        there = os.path.lexists(path)
        try:
            if not there or is_own_file(path):
                return await super().get(key, prototype, byte_range)
            wrong = "is not a plain file"
        except (StoreError, OSError):
            wrong = "is changed or cannot be read" if there else "is missing"
        header = self.journal.header
        if CHUNK.fullmatch(key) is None or header is None or key in header.files:
            raise StoreError(f"{SWEEP_STORE}/{key} {wrong}; {self.told.repair}")
        self._tell(header, key, wrong)
        return None

    def _tell(self, header: Header, key: str, wrong: str) -> None:
        """Name the array, the cells of the chunk, and its file."""
        array, _, place = key.partition("/")
        grid = header.grid
        numbers = [int(number) for number in place.split(".")[1:]][: len(grid.shape)]
        index = int(np.ravel_multi_index(numbers, grid.blocks_along)) if numbers else 0
        cells = where_is(grid.block(index), self.axes)
        self.told.add(key, f"{array} at {cells} ({SWEEP_STORE}/{key}) {wrong}")
