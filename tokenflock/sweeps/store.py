"""The folder of a sweep, which may be killed at any moment and loses no finished block.

    folder/
      sweep.toml      the full resolved spec
      sweep.zarr      the dataset: metadata and coordinates from the start, chunks block by block
      journal.jsonl   which blocks are done, with a mark of each of their chunks
      summary.json, figure.png

One process writes. A block is committed in three steps, each on the disk before the next begins: its
chunks under hidden names, their real names, its line in the journal. It counts by that line alone, so
what a killed process left half done is computed again, and gives the same bytes.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, StoreError
from ..results.atomic import beside, flush, making, put
from ..results.durable import (
    flush_tree,
    how_to_continue,
    keeping_what_is_done,
    mark,
    replace_files,
    what_is_kept,
)
from ..results.locking import Writer, only_writer
from ..results.names import JOURNAL, SCRATCH, SWEEP_SPEC, SWEEP_STORE
from ..results.places import check_parent
from .arrays import BlockEncoder, chunk_names, fixed_files
from .checking import CountReport, Damage, check_fixed, verify
from .grid import Block, Index
from .journal import FORMAT, OLD_FORMAT, Entry, Header, Journal, to_line
from .layout import BlockResult, Layout
from .ownership import refuse_links
from .plan import Sweep
from .probe import layout_of
from .stored_spec import stored_sweep

BLOCK_SCRATCH = f"{SCRATCH}block"


class SweepStore:
    """A sweep on disk. Read by anyone; written by the process that holds `lock`."""

    def __init__(self, folder: Path, sweep: Sweep, layout: Layout):
        """Use `create` for a new sweep and `open` for one that exists."""
        self.folder = folder
        self.sweep = sweep
        self.layout = layout
        self.journal = Journal(folder / JOURNAL)
        self._writer: Writer | None = None

    @classmethod
    def create(cls, folder: str | Path, sweep: Sweep, layout: Layout) -> SweepStore:
        """Make the folder with everything that follows from the spec, all or nothing."""
        folder = Path(folder)
        _refuse_existing(folder)
        check_parent(folder)
        fixed = fixed_files(sweep, layout)
        advice = f"or wait for it and continue with {how_to_continue(folder)}"
        with making(folder), beside(folder) as scratch:
            fresh = scratch / folder.name
            fill(fresh, sweep, fixed)
            put(fresh, folder, advice)
            flush(folder.parent)
        return cls(folder, sweep, layout)

    @classmethod
    def open(
        cls, folder: str | Path, sweep: Sweep | None = None, layout: Layout | None = None
    ) -> SweepStore:
        """The sweep in a folder, as its own spec says.

        sweep -- what the caller takes it for: anything else in the folder is refused, and a damaged
            spec is replaced by it when the folder is locked;
        layout -- of that sweep, if it is known already.
        """
        folder = Path(folder)
        refuse_links(folder)
        stored = stored_sweep(folder, sweep)
        known = layout if stored is sweep else None
        opened = cls(folder, stored, layout_of(stored) if known is None else known)
        opened._require_own_header()
        return opened

    def _require_own_header(self) -> None:
        header = self.journal.header
        if header is not None and not header.describes(self.sweep.axes, self.sweep.grid):
            raise StoreError(
                f"{self.folder / JOURNAL} is not the journal of {SWEEP_SPEC} beside it (its blocks are "
                f"{header.block_shape} of {header.shape} cells); take the folder from a copy, or start "
                "the sweep again with another --out"
            )

    @contextlib.contextmanager
    def lock(self, writer: Writer | None = None) -> Iterator[list[str]]:
        """Be the only writer; gives the names of files that were damaged and are repaired.

        Only what follows from the spec is repaired. Damaged blocks are found by `verify`.
        writer -- of a caller who holds the folder already.
        """
        refuse_links(self.folder)
        self._require_continuable()
        with contextlib.ExitStack() as held:
            self._writer = writer or held.enter_context(only_writer(self.folder, what_is_kept))
            scratch = self._scratch
            try:
                with keeping_what_is_done(self.folder):
                    repaired = self._tidy()
                yield repaired
            finally:
                self._writer = None
                with contextlib.suppress(OSError):
                    scratch.rmdir()

    def _require_continuable(self) -> None:
        """Blocks of release 0.1 do not say which sweep they belong to: nothing is added to them."""
        header = self.journal.header
        if header is not None and header.format == OLD_FORMAT and not self.done().all():
            raise StoreError(
                f"{self.folder} was begun by release 0.1 and is not finished ({JOURNAL} is of the format "
                f"{OLD_FORMAT}, and {FORMAT} is needed to go on); read what is done with "
                "tokenflock.open, and start the sweep again with --overwrite or another --out"
            )

    def require_place(self) -> None:
        """Stop if the folder at this path is not the one that was locked."""
        self._held().require_place()

    def _held(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("a sweep is written inside `with store.lock():`")
        return self._writer

    def _tidy(self) -> list[str]:
        """Remove what a killed writer left, and write again what follows from the spec."""
        for item in self.folder.glob(f"{SCRATCH}*"):
            if item.is_dir():
                shutil.rmtree(item)
            else:
                item.unlink()
        self.journal.reload()
        damaged = [damage.file for damage in check_fixed(self.folder, self.journal.header)]
        if self.journal.header is None:
            damaged.append(JOURNAL)
        if damaged:
            self._write_fixed()
        return damaged

    def _write_fixed(self) -> None:
        fixed = fixed_files(self.sweep, self.layout)
        files = {f"{SWEEP_STORE}/{name}": text for name, text in fixed.items()}
        files[SWEEP_SPEC] = self.sweep.text.encode()
        replace_files(self.folder, files, self._scratch, self.require_place)
        self.journal.rewrite(self._header(fixed), self._scratch, self.require_place)

    def _header(self, fixed: dict[str, bytes]) -> Header:
        """The header of this sweep; a journal of release 0.1 stays one."""
        known = self.journal.header
        return _header(self.sweep, fixed, FORMAT if known is None else known.format)

    @property
    def _scratch(self) -> Path:
        """A name of this writer's own, so that nothing is ever moved out of another one's."""
        return self.folder / f"{BLOCK_SCRATCH}-{self._held().word}"

    @functools.cached_property
    def _encoder(self) -> BlockEncoder:
        return BlockEncoder(self.sweep, self.layout)

    def write(self, block: Block, result: BlockResult) -> None:
        """Commit a block; it counts when this returns, and not at all if this raises."""
        self._held()
        files = self._encoder.encode(block, result)
        marks = {name: mark(content) for name, content in files.items()}
        failures = {int(place): str(told) for place, told in sorted(result.failures.items())}
        with keeping_what_is_done(self.folder):
            self.require_place()
            replace_files(self.folder / SWEEP_STORE, files, self._scratch, self.require_place)
            self.journal.append(Entry(int(block.index), marks, failures), self.require_place)

    def done(self) -> np.ndarray:
        """Which blocks are finished, one truth value for each."""
        count = self.sweep.grid.block_count
        flags = np.zeros(count, dtype=bool)
        flags[[block for block in self.journal.done if block < count]] = True
        return flags

    def failures(self) -> list[tuple[Index, dict[str, Any], str]]:
        """Failed cells of the finished blocks: index in the grid, coordinates, and what happened."""
        found: list[tuple[Index, dict[str, Any], str]] = []
        for entry in self.journal.entries(only_failed=True):
            cells = list(self.sweep.grid.block(entry.block).cells())
            for place, told in entry.failures.items():
                found.append((cells[place], self.sweep.coordinates(cells[place]), told))
        return sorted(found, key=lambda failure: failure[0])

    def verify(self, report: CountReport | None = None) -> list[Damage]:
        """Every file that is not as it was written; see `forget` for what to do about blocks."""
        axes = {axis.name: axis.values for axis in self.sweep.axes}
        return verify(self.folder, self.journal, axes, report)

    def forget(self, blocks: Collection[int]) -> None:
        """Make blocks unfinished again, and drop damaged lines of the journal, durably.

        The line goes before the chunks: killed in between, a block is unfinished and its chunks are
        replaced when it is computed again.
        """
        self._held()
        gone = {int(block) for block in blocks}
        header = self.journal.header
        if header is None:
            header = self._header(fixed_files(self.sweep, self.layout))
        with keeping_what_is_done(self.folder):
            self.journal.rewrite(header, self._scratch, self.require_place, without=gone)
            for index in gone:
                block = self.sweep.grid.block(index)
                for name in chunk_names(self.sweep, self.layout, block):
                    (self.folder / SWEEP_STORE / name).unlink(missing_ok=True)


def _refuse_existing(folder: Path) -> None:
    try:
        if "\0" in str(folder):
            raise ValueError("a path has no null characters")
        exists = folder.exists() or folder.is_symlink()
    except (OSError, ValueError) as error:
        raise InputError(f"--out {str(folder)!r} cannot be used: {error}") from error
    if exists and (folder / SWEEP_SPEC).exists():
        raise InputError(
            f"{folder} holds a sweep; continue it with --resume, or choose another --out"
        )
    if exists:
        raise InputError(f"{folder} exists; choose another --out")


def fill(fresh: Path, sweep: Sweep, fixed: dict[str, bytes]) -> None:
    """All files of a sweep of which no block is done."""
    header = to_line(_header(sweep, fixed))
    files = {f"{SWEEP_STORE}/{name}": content for name, content in fixed.items()}
    for name, content in {SWEEP_SPEC: sweep.text.encode(), JOURNAL: header, **files}.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).write_bytes(content)
    flush_tree(fresh)


def _header(sweep: Sweep, fixed: dict[str, bytes], format: str = FORMAT) -> Header:
    return Header(
        id=sweep.id,
        text=mark(sweep.text.encode()),
        axes=tuple(axis.name for axis in sweep.axes),
        shape=sweep.grid.shape,
        block_shape=sweep.grid.block_shape,
        files={name: mark(content) for name, content in fixed.items()},
        format=format,
    )
