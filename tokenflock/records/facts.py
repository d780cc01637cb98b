"""What one result says of itself: the columns of the catalogue, the settings of its spec, its axes.

Everything comes from zarr.json and summary.json, which a stranger may have written: what is not of the
expected sort is left out. Of the arrays only the small coordinates of a sweep's axes are read, once.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..results.names import (
    JOURNAL,
    METADATA,
    RUN_FORMAT,
    SEGMENTS,
    SUMMARY,
    SWEEP_FORMAT,
    SWEEP_SPEC,
    SWEEP_STORE,
)
from ..results.own_files import LARGEST_OBJECT, required_object
from .axes import RecordAxis, swept_axes, swept_paths
from .finding import attributes, store_of

COLUMNS = (
    *("path", "kind", "title", "model", "label", "id", "outcome", "created", "seconds"),
    *("version", "device", "cells", "done", "failed", "damage"),
)
DAMAGED = "damaged"
Scalar = str | int | float | bool
DEEPEST_SETTING, MOST_SETTINGS = 8, 2_000
LONGEST_TEXT = 2_000


@dataclass(frozen=True)
class Facts:
    """One line of the catalogue.

    columns -- the values of COLUMNS but for the path, which belongs to the folder;
    settings -- every scalar of the resolved spec by its dotted path;
    axes -- what varies inside it: the axes of a sweep but for seeds, the betas of a batch;
    repeats -- how many cells share one combination of the axes: the seeds of a sweep.
    """

    columns: dict[str, Any]
    settings: dict[str, Scalar] = field(default_factory=dict)
    axes: tuple[RecordAxis, ...] = ()
    repeats: int = 1

    def as_table(self) -> dict[str, Any]:
        """Nested plain data, as `from_table` reads it."""
        return asdict(self)

    @staticmethod
    def from_table(table: dict[str, Any]) -> Facts:
        """The inverse of `as_table`; a KeyError or TypeError says that it is none."""
        axes = tuple(RecordAxis(**axis) for axis in table["axes"])
        return Facts(table["columns"], table["settings"], axes, table["repeats"])


def stamp(folder: Path) -> str:
    """Dates, sizes and places of the files that the facts are read from: they change with the facts."""
    store = store_of(folder)
    if store is None:
        return ""
    marks = [store.name]
    for path in (store / METADATA, folder / SUMMARY, folder / JOURNAL):
        try:
            found = path.lstat()
        except OSError:
            marks.append("-")
        else:
            marks.append(f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}")
    return " ".join(marks)


def read_facts(folder: Path) -> Facts | None:
    """The facts of a folder, or None if it holds no result; of a damaged one what is wrong with it.

    One folder must not hide the others: whatever its files hold, this returns.
    """
    try:
        return facts_of(folder)
    # A stranger's files may raise anything.
    except Exception as error:
        return _damaged(folder, reason_of(error))


def reason_of(error: Exception) -> str:
    """What is wrong with a result: our own sentence, or what its files made somebody else raise."""
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"


def facts_of(folder: Path) -> Facts | None:
    """As `read_facts`; raises where the files of a result cannot be understood."""
    store = store_of(folder)
    labels = None if store is None else attributes(store)
    if store is None:
        return None
    if labels is None:
        _require_label(folder, store)
        return None
    summary, damage = _summary(folder, labels) if store != folder else ({}, None)
    if labels.get("format") == RUN_FORMAT:
        facts = _run_facts(store, labels, summary)
    elif labels.get("format") == SWEEP_FORMAT:
        facts = _sweep_facts(folder, store, labels, summary)
    else:
        return None
    return facts if damage is None else called_damaged(facts, damage)


def called_damaged(facts: Facts, damage: str) -> Facts:
    """The same facts of a result that is not as it was written."""
    told = {"outcome": DAMAGED, "damage": readable(damage)}
    return replace(facts, columns={**facts.columns, **told})


def _damaged(folder: Path, damage: str) -> Facts:
    """All that is known of a result that cannot be understood."""
    columns = dict.fromkeys(COLUMNS[1:])
    columns["kind"] = "sweep" if os.path.lexists(folder / SWEEP_STORE) else "run"
    return called_damaged(Facts(columns), damage)


def _require_label(folder: Path, store: Path) -> None:
    """Refuse a store under one of our names whose label is there and says nothing."""
    label = store / METADATA
    # A folder with a label of its own may be any Zarr array; one that is too large is read when opened.
    if store == folder or not os.path.lexists(label) or label.lstat().st_size > LARGEST_OBJECT:
        return
    required_object(label)


def _summary(folder: Path, labels: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """What a summary says, if it is one of this result, and what is wrong with it."""
    if not os.path.lexists(folder / SUMMARY):
        return {}, None
    try:
        found = required_object(folder / SUMMARY)
    except StoreError as error:
        return {}, str(error)
    # Else of another result that was in this folder.
    return (found if found.get("id") in (None, labels.get("id")) else {}), None


def _run_facts(store: Path, labels: dict[str, Any], summary: dict[str, Any]) -> Facts:
    trace, spec = _table(labels, "trace"), _table(labels, "spec")
    betas = _table(spec, "model").get("beta")
    axes = [RecordAxis("beta", {"model.beta": _numbers(betas)})] if _numbers(betas) else []
    seconds = summary.get("seconds") or trace.get("seconds")
    cut = store.parent.name == SEGMENTS
    columns = {
        "kind": "trace" if trace else "run",
        "title": _text(spec.get("title") or labels.get("label")),
        "model": _model(labels, spec),
        "label": _text(labels.get("label")),
        "id": _text(labels.get("id")),
        "outcome": "interrupted" if cut else _text(labels.get("outcome")),
        "created": _text(labels.get("created")),
        "seconds": _number(seconds),
        "version": _text(_table(labels, "versions").get("tokenflock")),
        "device": _text(labels.get("device")),
        "cells": None,
        "done": None,
        "failed": None,
        "damage": None,
    }
    return Facts(columns, settings_of(spec), tuple(axes))


def _sweep_facts(
    folder: Path, store: Path, labels: dict[str, Any], summary: dict[str, Any]
) -> Facts:
    spec = _table(labels, "spec")
    axes, repeats = swept_axes(store, labels)
    cells = math.prod(len(axis) for axis in axes) * repeats
    done, failed, damage = _progress(folder, summary)
    varied = swept_paths(labels)
    settings = {path: value for path, value in settings_of(spec).items() if path not in varied}
    columns = {
        "kind": "sweep",
        "title": _text(labels.get("title") or labels.get("label")),
        "model": None if "model.name" in varied else _model(labels, spec),
        "label": _text(labels.get("label")),
        "id": _text(labels.get("id")),
        "outcome": _sweep_outcome(cells, done, failed),
        "created": _text(summary.get("created")) or _date(folder / SWEEP_SPEC),
        "seconds": _number(summary.get("seconds")),
        "version": _text(_table(summary, "versions").get("tokenflock")),
        "device": _text(summary.get("device")),
        "cells": cells,
        "done": done,
        "failed": failed,
        "damage": None,
    }
    facts = Facts(columns, settings, axes, repeats)
    return facts if damage is None else called_damaged(facts, damage)


def _progress(folder: Path, summary: dict[str, Any]) -> tuple[int | None, int | None, str | None]:
    """How many cells are done, how many of these failed, and what is wrong with the journal that tells it.

    None where nothing tells. A journal is read even where a summary counts the cells: it may have lost some.
    """
    if not os.path.lexists(folder / JOURNAL):
        done, failed = summary.get("done", summary.get("cells")), summary.get("failed")
        counted = isinstance(done, int) and isinstance(failed, int)
        return (done, failed, f"{JOURNAL} is missing") if counted else (None, None, None)
    # Only here, since it needs numpy: most folders hold runs.
    from ..sweeps.checking import cells_done, check_journal, check_summary
    from ..sweeps.journal import Journal

    try:
        journal = Journal(folder / JOURNAL)
    except StoreError as error:
        return None, None, str(error)
    damages = [*check_journal(journal), *check_summary(folder, journal)]
    done = None if journal.header is None else cells_done(journal)
    return done, journal.failed, "; ".join(map(str, damages)) or None


def _sweep_outcome(cells: int, done: int | None, failed: int | None) -> str:
    if done is None or done < cells:
        return "interrupted"
    return "finished" if not failed else "finished with failures"


def settings_of(spec: dict[str, Any]) -> dict[str, Scalar]:
    """Every scalar of a nested table by its dotted path."""
    found: dict[str, Scalar] = {}
    _collect(spec, "", DEEPEST_SETTING, found)
    return found


def _collect(table: dict[str, Any], prefix: str, depth: int, found: dict[str, Scalar]) -> None:
    for name, entry in table.items():
        key, value = readable(name), _restored(entry)
        if len(found) >= MOST_SETTINGS:
            return
        if isinstance(value, dict) and depth:
            _collect(value, f"{prefix}{key}.", depth - 1, found)
        elif isinstance(value, (bool, int, float)):
            found[f"{prefix}{key}"] = value
        elif isinstance(value, str):
            found[f"{prefix}{key}"] = readable(value)


def _restored(value: Any) -> Any:
    """Numbers that strict JSON cannot hold are stored as tables (tokenflock/store.py)."""
    if isinstance(value, dict) and set(value) == {"number"}:
        return _number(value["number"])
    return value


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return readable(value) if isinstance(value, str) else None


def readable(text: str) -> str:
    """A text of bounded length, with '?' for what is no letter of Unicode, as in names on a disk."""
    return text[:LONGEST_TEXT].encode("utf-8", "replace").decode()


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, (bool, type(None))) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _numbers(value: Any) -> list[float]:
    """A list of nothing but numbers, else an empty one."""
    given = _list(value)
    plain = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in given)
    return given if plain else []


def _model(labels: dict[str, Any], spec: dict[str, Any]) -> str | None:
    return _text(_table(spec, "model").get("name")) or _text(labels.get("label"))


def _date(path: Path) -> str | None:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.lstat(path).st_mtime))
    except (OSError, ValueError, OverflowError):
        return None
