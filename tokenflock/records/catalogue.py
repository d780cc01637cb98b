"""The list of results: folders looked through, facts from the index, a condition, an order."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .axes import RecordAxis
from .facts import COLUMNS, Facts, read_facts, stamp
from .finding import folders, is_result
from .index import Index, Stamped
from .naming import Names
from .verifying import verified
from .where import Condition, Evaluator, parse_where

if TYPE_CHECKING:
    import pandas as pd

DEEPEST, MOST_FOLDERS = 16, 200_000
MOST_COMBINATIONS = 100_000
DEFAULT_FOLDER = "runs"


@dataclass(frozen=True)
class Record:
    """A result in the list; `matching` counts the cells of a sweep that fulfil the condition."""

    path: Path
    facts: Facts
    matching: int | None = None

    def value(self, column: str) -> Any:
        """The value in a column or of a setting; None where it has no single one."""
        if column == "path":
            return str(self.path)
        if column in COLUMNS:
            return self.facts.columns.get(column)
        return self.facts.settings.get(column)


@dataclass
class Catalogue:
    """Results with the names of their columns; `notes` say what was left out, and why."""

    records: list[Record]
    names: Names
    notes: list[str] = field(default_factory=list)


def list_records(
    places: Sequence[str | Path] = (),
    where: str | None = None,
    sort: str | None = None,
    rebuild: bool = False,
    verify: bool = False,
) -> Catalogue:
    """The results in some folders that fulfil a condition, in the order of a column (-column: last first).

    verify -- read every byte of every result, too, and call damaged what is not as it was written.
    """
    found = _collect(_roots(places), rebuild)
    if verify:
        found.records = [
            replace(record, facts=verified(record.path, record.facts)) for record in found.records
        ]
    if where is not None:
        condition = parse_where(where, found.names if found.records else None)
        found.records = list(_fulfilling(found, condition))
    if sort is not None and found.records:
        found.records = _sorted(found, sort)
    damaged = ((record.path, record.value("damage")) for record in found.records)
    found.notes += [f"{path} is damaged: {why}" for path, why in damaged if why is not None]
    return found


def runs(
    folder: str | Path | None = None, where: str | None = None, *, verify: bool = False
) -> pd.DataFrame:
    """Stored runs, traces and sweeps in a folder (default: runs, or here), one row each.

    Columns are path, kind, title, model, label, id, outcome, created, seconds, version, device, cells,
    done, failed and damage, then every scalar of the specs, by its last key if it is the least nested one
    with this key (beta: model.beta), else by its path. A result whose label, summary or journal cannot be
    understood has the outcome "damaged", and `damage` says why; with `verify` every number is read, too,
    and so has one whose numbers are not as they were written.
    A setting that a sweep varies has no value in its row; `matching` counts its cells that fulfil
    `where`, a condition such as "beta > 4 and model == 'SA'".
    """
    import pandas as pd

    found = list_records(() if folder is None else (folder,), where, verify=verify)
    paths = sorted(found.names.paths - set(COLUMNS))
    rows = [
        {
            **{column: record.value(column) for column in COLUMNS[1:]},
            "matching": record.matching,
            **{found.names.short(path): record.value(path) for path in paths},
        }
        for record in found.records
    ]
    columns = [*COLUMNS[1:], "matching", *(found.names.short(path) for path in paths)]
    table = pd.DataFrame(rows, columns=columns)
    # Names on a disk need not be Unicode, and only objects hold those.
    places = pd.Series([str(record.path) for record in found.records], dtype=object)
    table.insert(0, "path", places)
    return table


def _roots(places: Sequence[str | Path]) -> list[Path]:
    chosen = places or [DEFAULT_FOLDER if os.path.isdir(DEFAULT_FOLDER) else "."]
    roots: list[Path] = []
    for place in chosen:
        try:
            root = Path(place).expanduser().resolve()
            exists = root.is_dir()
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"cannot look into {str(place)!r}: {error}") from error
        if not exists:
            raise InputError(f"there is no folder {place}; give the folder that holds your runs")
        roots.append(root)
    return roots


def _collect(roots: list[Path], rebuild: bool) -> Catalogue:
    index = Index(rebuild=rebuild)
    try:
        known = {path: entry for root in roots for path, entry in index.under(root).items()}
        stamps, complete = _stamps(roots)
        fresh: dict[Path, Stamped] = {
            path: (mark, read_facts(path))
            for path, mark in stamps.items()
            if path not in known or known[path][0] != mark
        }
        unseen = (path for path in known if path not in stamps)
        gone = [path for path in unseen if complete or not os.path.isdir(path)]
        index.update(fresh, gone)
        notes = list(index.notes)
    finally:
        index.close()
    if not complete:
        notes.append(f"more than {MOST_FOLDERS} folders; the rest was not looked at: name fewer")
    entries = {path: (fresh.get(path) or known[path])[1] for path in stamps}
    records = [Record(path, facts) for path, facts in entries.items() if facts is not None]
    return Catalogue(records, Names(record.facts for record in records), notes)


def _stamps(roots: list[Path]) -> tuple[dict[Path, str], bool]:
    """What may be a result, with the marks of its files, and whether everything was looked at."""
    visited: set[Path] = set()
    found: dict[Path, str] = {}
    for root in roots:
        for folder in folders(root, roots, DEEPEST, visited):
            if is_result(folder):
                found[folder] = stamp(folder)
            if len(visited) >= MOST_FOLDERS:
                return found, False
    return found, True


def _fulfilling(found: Catalogue, condition: Condition) -> Iterator[Record]:
    evaluator = Evaluator(condition)
    try:
        for record in found.records:
            axes = _asked(record.facts, condition)
            if math.prod(len(axis) for axis in axes) > MOST_COMBINATIONS:
                found.notes.append(
                    f"{record.path} has more than {MOST_COMBINATIONS} combinations of what is asked; only "
                    "the first of them were looked at"
                )
            matching = evaluator.count(_rows(record, axes, condition.columns))
            if matching:
                cells = matching * _times(record.facts, axes)
                yield Record(record.path, record.facts, cells if record.facts.axes else None)
    finally:
        evaluator.close()


def _asked(facts: Facts, condition: Condition) -> list[RecordAxis]:
    """The axes that the condition speaks of; the others only multiply."""
    return [axis for axis in facts.axes if _columns(axis).keys() & set(condition.columns)]


def _columns(axis: RecordAxis) -> dict[str, list[Any]]:
    """What varies along an axis; the column `model` is the setting model.name."""
    named = {"model": axis.values["model.name"]} if "model.name" in axis.values else {}
    return axis.values | named


def _times(facts: Facts, asked: list[RecordAxis]) -> int:
    every = math.prod(len(axis) for axis in facts.axes) * facts.repeats
    return every // math.prod(len(axis) for axis in asked)


def _rows(
    record: Record, axes: list[RecordAxis], columns: tuple[str, ...]
) -> Iterator[Sequence[Any]]:
    """The values of the columns in every combination of positions on the axes."""
    fixed = {column: record.value(column) for column in columns}
    if not axes:
        yield [fixed[column] for column in columns]
        return
    positions = itertools.product(*(range(len(axis)) for axis in axes))
    varied = [_columns(axis) for axis in axes]
    for place in itertools.islice(positions, MOST_COMBINATIONS):
        here = dict(fixed)
        for values, position in zip(varied, place, strict=True):
            here |= {path: column[position] for path, column in values.items()}
        yield [here[column] for column in columns]


def _sorted(found: Catalogue, sort: str) -> list[Record]:
    """By a column: numbers, then texts, then what has none; -column turns numbers and texts round."""
    column = found.names.find(sort.removeprefix("-"), "--sort")
    values = [(record.value(column), record) for record in found.records]
    numbers = [each for each in values if isinstance(each[0], (int, float))]
    texts = [each for each in values if isinstance(each[0], str)]
    none = [each for each in values if each[0] is None]
    last_first = sort.startswith("-")
    for group in (numbers, texts):
        group.sort(key=lambda each: each[0], reverse=last_first)
    return [record for _, record in (*numbers, *texts, *none)]
