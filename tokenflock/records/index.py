"""The facts of results in an SQLite file, so that a thousand folders are listed in a moment.

The file lies in the user's cache and is never the only copy: what is missing, stale, damaged or locked
is read again from the results themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ..startup import cache_place
from .facts import Facts

FILE = "records.sqlite"
# Raise it when facts are read differently: older files are then made anew.
VERSION = 3
PATIENCE_SECONDS = 2.0

Stamped = tuple[str, Facts | None]
# An entry that cannot be understood; no folder has this stamp, so it is read again.
UNREADABLE: Stamped = ("unreadable", None)


def index_path() -> Path:
    """$TOKENFLOCK_CACHE/records.sqlite, or the same in the user's cache folder."""
    return cache_place() / FILE


class Index:
    """Facts by folder. Without a place that can be written everything stays in memory."""

    def __init__(self, path: Path | None = None, rebuild: bool = False):
        self.path = index_path() if path is None else path
        self.notes: list[str] = []
        if rebuild:
            self._remove()
        self._connection = self._open() or _prepared(sqlite3.connect(":memory:"))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def under(self, root: Path) -> dict[Path, Stamped]:
        """What is known of a folder and of those in it."""
        known: dict[Path, Stamped] = {}
        start, end = _bounds(root)
        with self._forgiving():
            rows = self._connection.execute(
                "SELECT path, stamp, facts FROM results WHERE path = ? OR (path > ? AND path < ?)",
                (os.fsencode(root), start, end),
            )
            for path, stamp, text in rows:
                known[Path(os.fsdecode(path))] = _entry(stamp, text)
        return known

    def update(self, fresh: dict[Path, Stamped], gone: list[Path]) -> None:
        """Keep new facts and forget vanished folders, all at once or not at all."""
        if not fresh and not gone:
            return
        rows = [(os.fsencode(p), stamp, _to_text(facts)) for p, (stamp, facts) in fresh.items()]
        with self._forgiving(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)
            self._connection.executemany(
                "DELETE FROM results WHERE path = ?", [(os.fsencode(path),) for path in gone]
            )

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        """A file that is locked, full or read-only costs time, never an answer; a damaged one goes."""
        try:
            yield
        except sqlite3.OperationalError:
            pass
        except sqlite3.DatabaseError:
            self._replace()

    def _open(self) -> sqlite3.Connection | None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        try:
            return self._connected()
        except sqlite3.OperationalError:
            return None
        except sqlite3.DatabaseError:
            self._note_damage()
            self._remove()
        try:
            return self._connected()
        except sqlite3.Error:
            return None

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
        try:
            return _prepared(connection)
        except BaseException:
            connection.close()
            raise

    def _replace(self) -> None:
        self._note_damage()
        self._connection.close()
        self._remove()
        self._connection = self._open() or _prepared(sqlite3.connect(":memory:"))

    def _note_damage(self) -> None:
        self.notes.append(f"the index {self.path} was damaged and is made anew; no result is lost")

    def _remove(self) -> None:
        for name in (self.path.name, f"{self.path.name}-journal"):
            with contextlib.suppress(OSError):
                self.path.with_name(name).unlink(missing_ok=True)


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """With the table of this version; an index of another version is emptied."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        connection.executescript(
            "BEGIN IMMEDIATE; DROP TABLE IF EXISTS results;"
            "CREATE TABLE results (path BLOB PRIMARY KEY, stamp TEXT, facts TEXT) WITHOUT ROWID;"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )
    return connection


def _bounds(root: Path) -> tuple[bytes, bytes]:
    """Everything below a folder lies between FOLDER/ and FOLDER0, since '0' follows '/'."""
    name = os.fsencode(root).rstrip(b"/")
    return name + b"/", name + b"0"


def _entry(stamp: str, text: str) -> Stamped:
    try:
        return stamp, _from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return UNREADABLE


def _to_text(facts: Facts | None) -> str:
    return json.dumps(None if facts is None else facts.as_table())


def _from_text(text: str) -> Facts | None:
    table = json.loads(text)
    return None if table is None else Facts.from_table(table)
