"""tokenflock list runs: the catalogue of stored results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..records.catalogue import Catalogue, Record

# Shown to people; everything is in --json.
ALWAYS = ("kind", "title", "model")
SETTINGS = ("beta", "n", "d")
AFTER = ("outcome", "created", "seconds")


def list_runs(
    folders: list[Path],
    where: str | None,
    sort: str | None,
    rebuild: bool,
    as_json: bool,
    verify: bool = False,
) -> None:
    """Print the results in some folders that fulfil a condition."""
    from ..records.catalogue import list_records

    found = list_records(folders, where, sort, rebuild, verify)
    for note in found.notes:
        typer.echo(f"tokenflock: {note}", err=True)
    if as_json:
        rows = [_row(record) for record in found.records]
        typer.echo(json.dumps({"runs": rows, "notes": found.notes}, allow_nan=False))
    elif not found.records:
        typer.echo(
            "no results here" if where is None else "no result here fulfils the condition", err=True
        )
    else:
        _print(found, where is not None, _asked(found, where, sort))


def _row(record: Record) -> dict[str, Any]:
    from ..records.facts import COLUMNS

    row = {column: _finite(record.value(column)) for column in COLUMNS}
    axes = {
        path: {"count": len(values), "first": _finite(values[0]), "last": _finite(values[-1])}
        for axis in record.facts.axes
        for path, values in axis.values.items()
        if values
    }
    settings = {path: _finite(value) for path, value in record.facts.settings.items()}
    return {**row, "matching": record.matching, "settings": settings, "axes": axes}


def _finite(value: Any) -> Any:
    """Strict JSON has neither NaN nor infinity."""
    return None if isinstance(value, float) and value - value != 0 else value


def _asked(found: Catalogue, where: str | None, sort: str | None) -> list[str]:
    """The settings that the condition and the order speak of."""
    from ..records.where import parse_where

    asked = [] if where is None else [*parse_where(where, found.names).columns]
    if sort is not None:
        asked.append(found.names.find(sort.removeprefix("-"), "--sort"))
    return asked


def _columns(found: Catalogue, asked: list[str]) -> list[str]:
    usual = [path for name in SETTINGS for path in found.names.meant(name)]
    shown = [*ALWAYS, *usual, *asked, *AFTER]
    return [column for column in dict.fromkeys(shown) if column != "path"]


def _print(found: Catalogue, is_search: bool, asked: list[str]) -> None:
    from .plainly import aligned, printable

    columns = _columns(found, asked)
    rows = [["path", *(found.names.short(column) for column in columns), "cells"]]
    for record in found.records:
        values = (_cell(record, column) for column in columns)
        rows.append([_place(record.path), *values, _count(record, is_search)])
    for line in aligned([[printable(cell) for cell in row] for row in rows]):
        typer.echo(line)


def _place(path: Path) -> str:
    """Relative to here if it lies here."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)


def _cell(record: Record, column: str) -> str:
    from .plainly import number

    for axis in record.facts.axes:
        values = axis.values.get(column)
        if values:
            return f"{number(values[0])}..{number(values[-1])} ({len(values)})"
    value = record.value(column)
    if column == "seconds" and value is not None:
        return f"{value:.1f}"
    return "" if value is None else number(value)


def _count(record: Record, is_search: bool) -> str:
    """Cells of a sweep: those that match, those done, those that failed."""
    facts = record.facts.columns
    matching = [f"{record.matching} match"] if is_search and record.matching is not None else []
    if facts.get("kind") != "sweep":
        return matching[0] if matching else ""
    done = facts["cells"] if facts.get("done") is None else facts["done"]
    counted = f"{done}/{facts['cells']}" if done != facts["cells"] else f"{facts['cells']}"
    failed = [f"{facts['failed']} failed"] if facts.get("failed") else []
    return ", ".join([counted, *failed, *matching])
