"""What is damaged in the folder of a sweep: every file against the mark its journal keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ..results.durable import Mark, mark_of
from ..results.names import JOURNAL, SUMMARY, SWEEP_SPEC, SWEEP_STORE
from ..results.own_files import read_object
from .grid import Block
from .journal import Entry, Header, Journal

Kind = Literal["missing", "truncated", "changed", "unreadable"]
CountReport = Callable[[int, int], None]
SHOWN = 40


@dataclass(frozen=True)
class Damage:
    """One damaged file.

    file -- its path in the folder of the sweep;
    array, block, cells -- of a chunk: the array, the block, and the coordinates of its cells in words;
    detail -- what is wrong, where there is more to say than its kind.
    """

    kind: Kind
    file: str
    array: str | None = None
    block: int | None = None
    cells: str = ""
    detail: str = ""

    def __str__(self) -> str:
        what = self.file if self.block is None else f"{self.array} at {self.cells} ({self.file})"
        return f"{what} is {self.kind}" + (f": {self.detail}" if self.detail else "")


def verify(
    folder: Path,
    journal: Journal,
    axes: Mapping[str, np.ndarray],
    report: CountReport | None = None,
) -> list[Damage]:
    """Read every file of a sweep that its journal has a mark of; memory does not grow with their size.

    axes -- the coordinate of each axis, to say which cells are affected;
    report -- called with the number of blocks read, and of all to read.
    """
    found = [*check_journal(journal), *check_summary(folder, journal)]
    found += check_fixed(folder, journal.header)
    total = len(journal.done)
    for number, entry in enumerate(journal.entries(), start=1):
        found += check_block(folder, journal.header, entry, axes)
        if report is not None:
            report(number, total)
    return found


def check_journal(journal: Journal) -> Iterator[Damage]:
    """Lines of the journal that are not as they were written."""
    if not journal.path.exists():
        yield Damage("missing", JOURNAL)
    elif journal.header is None and not journal.damaged:
        yield Damage("truncated", JOURNAL, detail="its first line is missing")
    elif journal.damaged:
        lines = ", ".join(map(str, journal.damaged))
        yield Damage("changed", JOURNAL, detail=f"line {lines} is not as it was written")
    for line, found in journal.foreign.items():
        told = (
            f"line {line} belongs to another sweep: it has {found[:SHOWN]}, not {journal.identity}"
        )
        yield Damage("changed", JOURNAL, detail=told)


def check_summary(folder: Path, journal: Journal) -> Iterator[Damage]:
    """What a summary counts otherwise than the journal, of which no line goes while there is a summary.

    Lines that were lost at the end of a journal leave no other trace.
    """
    header, said = journal.header, read_object(folder / SUMMARY)
    if header is None or said.get("id") not in (None, header.id):
        return
    done, told = cells_done(journal), said.get("done", said.get("cells"))
    if isinstance(told, int) and told != done:
        detail = (
            f"it lists {done} of {header.grid.size} cells, and {SUMMARY} says that {told} are done"
        )
        yield Damage("truncated", JOURNAL, detail=detail)
    failed = said.get("failed")
    if told == done and isinstance(failed, int) and failed != journal.failed:
        detail = f"it tells of {failed} failed cells, and {JOURNAL} of {journal.failed}"
        yield Damage("changed", SUMMARY, detail=detail)


def cells_done(journal: Journal) -> int:
    """How many cells the finished blocks have."""
    if journal.header is None:
        return 0
    grid = journal.header.grid
    return sum(grid.block(index).size for index in journal.done)


def check_fixed(folder: Path, header: Header | None) -> Iterator[Damage]:
    """The files that follow from the spec, and the spec."""
    for name, wanted in (
        {} if header is None else {SWEEP_SPEC: header.text, **header.files}
    ).items():
        path = name if name == SWEEP_SPEC else f"{SWEEP_STORE}/{name}"
        found = compare(folder / path, wanted)
        if found is not None:
            yield Damage(found[0], path, detail=found[1])


def check_block(
    folder: Path, header: Header | None, entry: Entry, axes: Mapping[str, np.ndarray]
) -> Iterator[Damage]:
    """The chunks of one block."""
    for name, wanted in entry.files.items():
        found = compare(folder / SWEEP_STORE / name, wanted)
        if found is not None:
            yield chunk_damage(found[0], name, header, entry.block, axes, found[1])


def chunk_damage(
    kind: Kind,
    name: str,
    header: Header | None,
    block: int,
    axes: Mapping[str, np.ndarray],
    detail: str = "",
) -> Damage:
    """Damage of a chunk, with the cells it holds."""
    where = f"block {block}" if header is None else where_is(header.grid.block(block), axes)
    return Damage(kind, f"{SWEEP_STORE}/{name}", name.split("/")[0], block, where, detail)


def compare(path: Path, wanted: Mark) -> tuple[Kind, str] | None:
    """How a file differs from its mark."""
    try:
        found = mark_of(path)
    except FileNotFoundError:
        return "missing", ""
    except OSError as error:
        return "unreadable", str(error.strerror or error)
    if found == wanted:
        return None
    if found.size < wanted.size:
        return "truncated", f"{found.size} of {wanted.size} bytes"
    return "changed", ""


def where_is(block: Block, axes: Mapping[str, np.ndarray]) -> str:
    """The coordinates of a block's cells in words: beta = 0.1 to 0.4, seed = 0 to 63."""
    parts: list[str] = []
    for (name, values), span in zip(axes.items(), block.region, strict=True):
        first, last = values[span.start], values[span.stop - 1]
        to = "" if span.stop - span.start == 1 else f" to {_short(last)}"
        parts.append(f"{name} = {_short(first)}{to}")
    return ", ".join(parts)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
