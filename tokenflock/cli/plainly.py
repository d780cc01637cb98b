"""Words of strangers on a terminal: names of files, titles and texts of stored results."""

from __future__ import annotations

import sys
from typing import Any

from ..results.strict_json import printable


def lines_of(text: str) -> str:
    """A text of several lines of which none can steer a terminal."""
    return "\n".join(printable(line.expandtabs(4)) for line in text.split("\n"))


def console() -> Any:
    """A terminal as it is; in a pipe or a file lines are as long as they are."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 1_000
    return Console(markup=False, highlight=False, emoji=False, width=wide)


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows of cells as lines with straight columns; a thousand take no time, and no cell is cut short."""
    from rich.cells import cell_len

    lengths = [[cell_len(cell) for cell in row] for row in rows]
    widths = [max(column) for column in zip(*lengths, strict=True)]
    lines: list[str] = []
    for row, own in zip(rows, lengths, strict=True):
        filled = (
            cell + " " * (width - length)
            for cell, width, length in zip(row, widths, own, strict=True)
        )
        lines.append("  ".join(filled).rstrip())
    return lines


def print_notes(screen: Any, notes: dict[str, str]) -> None:
    """What arrays say of their own meaning, a line each."""
    for name, note in notes.items():
        screen.print(printable(f"{name.replace('_', ' ')}: {note}"))


def number(value: Any) -> str:
    """A number with six digits, and anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else printable(value)


def size(count: int) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count = count / 1024  # pyright: ignore[reportAssignmentType]
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
