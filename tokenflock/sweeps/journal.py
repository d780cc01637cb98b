"""Which blocks of a sweep are done: one line per block, appended after its chunks are on the disk.

    {"header": {...}, "sum": "..."}                                     what follows from the spec alone
    {"block": 7, "failures": {...}, "files": {...}, "of": "...", "sum": "..."}          a finished block

Every line ends with a checksum of itself, so that a changed one is found, and a block names the header it
belongs to, so that one of another sweep is. A last line without its end is what a killed process was
writing: it never counts, and is cut off before the next one is appended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import StoreError
from ..results.bounds import MOST_AXES, MOST_CELLS
from ..results.durable import Mark, replace_files, write_all
from ..results.identity import digest
from ..results.own_files import NO_LINKS, open_own
from .grid import Axis, Grid

FORMAT = "tokenflock-sweep-journal-2"
# Of release 0.1: its blocks do not say which sweep they belong to.
OLD_FORMAT = "tokenflock-sweep-journal-1"


@dataclass(frozen=True)
class Header:
    """What every reader needs to know of the spec, and the marks of the files that follow from it."""

    id: str
    text: Mark
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    block_shape: tuple[int, ...]
    files: dict[str, Mark]
    format: str = FORMAT

    @property
    def identity(self) -> str:
        """What every line of this sweep names: it follows from the spec, and from how cells are batched."""
        if self.format == OLD_FORMAT:
            return ""
        return digest({name: value for name, value in vars(self).items() if name != "files"})

    @property
    def grid(self) -> Grid:
        """The cells of the sweep."""
        return Grid(self.shape, self.block_shape)

    def describes(self, axes: Iterable[Axis], grid: Grid) -> bool:
        """Whether it is about the cells of a sweep."""
        return self.axes == tuple(axis.name for axis in axes) and self.grid == grid


@dataclass(frozen=True)
class Entry:
    """A finished block: the marks of its chunks, and a sentence for each failed cell by its place.

    of -- the identity of the header it belongs to; empty in journals of release 0.1.
    """

    block: int
    files: dict[str, Mark]
    failures: dict[int, str] = field(default_factory=dict)
    of: str = ""


def to_line(record: Header | Entry) -> bytes:
    """One line of the journal."""
    if isinstance(record, Header):
        content: dict[str, Any] = {"header": vars(record)}
    else:
        content = {name: value for name, value in vars(record).items() if name != "of" or value}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f'{text[:-1]},"sum":"{_checksum(text)}"}}\n'.encode()


def from_line(line: bytes) -> Header | Entry | None:
    """What a line says, or None if it is not as it was written."""
    try:
        content = json.loads(line)
        del content["sum"]
        record = _header(**content["header"]) if "header" in content else _entry(**content)
        inside = all(map(_stays_inside, record.files))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record if inside and to_line(record) == line else None


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _header(text: list[Any], files: dict[str, list[Any]], **rest: Any) -> Header:
    lists = {name: tuple(rest.pop(name)) for name in ("axes", "shape", "block_shape")}
    counts = [*lists["shape"], *lists["block_shape"]]
    of_one_length = len({*map(len, lists.values())}) == 1
    known = rest["format"] in (FORMAT, OLD_FORMAT) and of_one_length
    if not known or not all(type(n) is int and n > 0 for n in counts) or not _may_be(**lists):
        raise ValueError("a journal of another kind")
    return Header(text=_mark(*text), files=_marks(files), **lists, **rest)


def _may_be(axes: tuple[Any, ...], shape: tuple[int, ...], block_shape: tuple[int, ...]) -> bool:
    """Whether a sweep can have such a grid."""
    return len(axes) <= MOST_AXES and max(map(math.prod, (shape, block_shape))) <= MOST_CELLS


def _entry(
    block: int, files: dict[str, list[Any]], failures: dict[str, str], of: str = ""
) -> Entry:
    if not all(isinstance(told, str) for told in (of, *failures.values())):
        raise TypeError("a failure is told in words")
    told_by_place = {int(place): told for place, told in failures.items()}
    return Entry(int(block), _marks(files), told_by_place, of)


def _marks(files: dict[str, list[Any]]) -> dict[str, Mark]:
    return {name: _mark(*found) for name, found in files.items()}


def _mark(size: int, digest: str) -> Mark:
    if type(size) is not int or not isinstance(digest, str):
        raise TypeError("a mark is a size and a digest")
    return Mark(size, digest)


def _stays_inside(name: str) -> bool:
    """A journal may come from a stranger: a file it names lies in the store, or in a folder of that."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and len(path.parts) <= 2


def _within(places: Iterable[int], size: int) -> bool:
    return all(0 <= place < size for place in places)


class Journal:
    """The lines of a sweep, of which only their places are kept in memory."""

    def __init__(self, path: Path):
        self.path = path
        self.header: Header | None = None
        # Of the header: what a line must name. Kept, since it is compared with every line.
        self.identity = ""
        self.damaged: list[int] = []
        # Lines of another sweep: their number, and what they say they belong to.
        self.foreign: dict[int, str] = {}
        self._places: dict[int, int] = {}
        self._failed: dict[int, int] = {}
        self._end = 0
        self.reload()

    def reload(self) -> None:
        """Read what is on the disk now."""
        self.header, self.damaged, self.foreign, self._end = None, [], {}, 0
        self.identity = ""
        self._places, self._failed = {}, {}
        for number, (place, line) in enumerate(self._lines(), start=1):
            record = from_line(line)
            if isinstance(record, Header):
                self.header, self.identity = record, record.identity
            elif record is not None and self.header and record.of != self.identity:
                self.foreign[number] = record.of or "nothing"
            elif record is not None and self._fits(record):
                self._note(record, place)
            else:
                self.damaged.append(number)
            self._end = place + len(line)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines and where they begin; a last line without its end was never finished."""
        place = 0
        try:
            with open_own(self.path) as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield place, line
                    place += len(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _fits(self, entry: Entry) -> bool:
        """Whether there is such a block, with such cells; without a header nobody knows."""
        if self.header is None:
            return True
        grid = self.header.grid
        if not 0 <= entry.block < grid.block_count:
            return False
        return not entry.failures or _within(entry.failures, grid.block(entry.block).size)

    def _note(self, entry: Entry, place: int) -> None:
        self._places[entry.block] = place
        self._failed.pop(entry.block, None)
        if entry.failures:
            self._failed[entry.block] = len(entry.failures)

    @property
    def done(self) -> Collection[int]:
        """The finished blocks."""
        return self._places.keys()

    @property
    def failed(self) -> int:
        """How many cells of the finished blocks failed."""
        return sum(self._failed.values())

    def entry(self, block: int) -> Entry | None:
        """The line of a block, or None while it is unfinished."""
        for _ in range(2):
            if block not in self._places:
                return None
            found = self._read(self._places[block])
            if isinstance(found, Entry) and found.block == block:
                return found
            self.reload()  # another process has rewritten the journal since it was read
        return None

    def _read(self, place: int) -> Header | Entry | None:
        try:
            with open_own(self.path) as file:
                file.seek(place)
                return from_line(file.readline())
        except OSError:
            return None

    def entries(self, only_failed: bool = False) -> Iterator[Entry]:
        """The lines of the finished blocks, in the order of blocks."""
        for block in sorted(self._failed if only_failed else self._places):
            found = self.entry(block)
            if found is not None:
                yield found

    def append(self, entry: Entry, check: Callable[[], None]) -> None:
        """Add a finished block; it counts when this returns, and leaves no trace if it fails.

        check -- raises if the journal at this path is not the writer's own any more.
        """
        line = to_line(dataclasses.replace(entry, of=self.identity))
        descriptor = os.open(self.path, os.O_WRONLY | NO_LINKS)
        try:
            # After it was opened: what is open now stays the same file, wherever it is moved.
            check()
            os.ftruncate(descriptor, self._end)
            os.lseek(descriptor, self._end, os.SEEK_SET)
            try:
                write_all(descriptor, line)
                os.fsync(descriptor)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self._end)
                raise
        finally:
            os.close(descriptor)
        self._note(entry, self._end)
        self._end += len(line)

    def rewrite(
        self,
        header: Header,
        scratch: Path,
        check: Callable[[], None],
        without: Collection[int] = (),
    ) -> None:
        """Replace the journal by its sound lines, less those of some blocks, in one step."""
        identity = header.identity
        own = [entry for entry in self.entries() if entry.of == identity]
        kept = [to_line(entry) for entry in own if entry.block not in without]
        content = b"".join([to_line(header), *kept])
        replace_files(self.path.parent, {self.path.name: content}, scratch, check)
        self.reload()
