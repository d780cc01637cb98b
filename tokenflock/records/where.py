"""Conditions on results: beta > 4 and model == 'SA', in SQL's language of expressions.

A condition is cut into words; each must be a number, a text, an operator, a harmless function or the
name of a column, and names become parameters of a statement on an empty database. So there is nothing
to read, write or attach, whatever is asked; an authorizer and a time limit stand behind that.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..names import nearest
from .facts import readable
from .naming import Names

WORDS = {
    *("and", "or", "not", "in", "like", "glob", "between", "is", "null", "true", "false"),
    *("escape", "case", "when", "then", "else", "end"),
}
FUNCTIONS = {
    *("abs", "round", "lower", "upper", "length", "min", "max", "coalesce", "ifnull", "nullif"),
    *("instr", "substr", "trim"),
}
SECONDS = 10.0
LONGEST, LONGEST_PATTERN, LONGEST_TEXT = 10_000, 200, 1_000_000
DEEPEST = 100
TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<sign>==|=|!=|<>|<=|>=|<|>|\|\||-(?!-)|[+*/%(),])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Condition:
    """A checked condition: the statement, and the columns its parameters ?1, ?2, ... stand for."""

    text: str
    statement: str
    columns: tuple[str, ...]


def parse_where(text: str, names: Names | None) -> Condition:
    """The condition, or a sentence; without names nothing is known of columns, and any will do."""
    if len(text) > LONGEST or not text.strip():
        raise InputError(f"--where takes a condition of at most {LONGEST} letters{_EXAMPLE}")
    odd = next((letter for letter in text if "\ud800" <= letter <= "\udfff"), None)
    if odd is not None:
        raise InputError(
            f"--where holds {odd!r}, a byte that is no letter; write ? for it, as names of files are listed"
        )
    columns: list[str] = []
    words: list[str] = []
    tokens = _tokens(text)
    for position, (kind, word) in enumerate(tokens):
        follower = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        if kind == "quoted" or (kind == "name" and word.lower() not in WORDS):
            words.append(_named(word, kind, follower, names, columns))
        else:
            words.append(word)
    _check_nesting(words)
    return Condition(text, f"SELECT CASE WHEN ({' '.join(words)}) THEN 1 ELSE 0 END", (*columns,))


_EXAMPLE = """; for example --where "beta > 4 and model == 'SA'\""""


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise InputError(
                f"--where cannot use {text[place : place + 12]!r} at letter {place + 1}: it takes "
                f"columns, numbers, 'texts' and operators{_EXAMPLE}"
            )
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group()))
        place = match.end()
    return found


def _named(word: str, kind: str, follower: str, names: Names | None, columns: list[str]) -> str:
    """A column as a parameter, or a function as it is."""
    if kind == "name" and follower == "(":
        if word.lower() in FUNCTIONS:
            return word
        raise InputError(
            f"--where knows no function {word!r}{nearest(word.lower(), FUNCTIONS)}; it has "
            f"{', '.join(sorted(FUNCTIONS))}"
        )
    name = word[1:-1].replace('""', '"') if kind == "quoted" else word
    try:
        column = name if names is None else names.find(name, "--where")
    except InputError as error:
        hint = f" (texts stand in single quotes: '{name}')" if kind == "quoted" else ""
        raise InputError(f"{error}{hint}") from None
    if column not in columns:
        columns.append(column)
    return f"?{columns.index(column) + 1}"


def _check_nesting(words: list[str]) -> None:
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth > DEEPEST or depth < 0:
            break
    if depth != 0:
        raise InputError(
            "--where has brackets that do not close, close too early or nest too deeply"
        )


class Evaluator:
    """Answers one condition for many rows."""

    def __init__(self, condition: Condition, seconds: float = SECONDS):
        self.condition = condition
        self._end = time.monotonic() + seconds
        self._database = _empty_database(self._is_late)
        self._check()

    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _check(self) -> None:
        """Refuse a condition that is none before it is asked of anything."""
        self.count([[None] * len(self.condition.columns)])

    def count(self, rows: Iterable[Sequence[Any]]) -> int:
        """How many rows fulfil it; a row has one value per column of the condition."""
        total = 0
        try:
            for number, row in enumerate(rows):
                if number % 1000 == 0 and self._is_late():
                    raise sqlite3.OperationalError("interrupted")
                # ?1 is a name to Python, which takes no sequence for names from 3.14 on.
                values = {str(place): _bound(value) for place, value in enumerate(row, 1)}
                total += self._database.execute(self.condition.statement, values).fetchone()[0]
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise InputError(_told(self.condition.text, error)) from error
        return total

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


def _bound(value: Any) -> Any:
    """What SQLite takes: whole numbers of 64 bits, and texts that are Unicode."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 2**1023 else None
    return value


def _told(text: str, error: Exception) -> str:
    if "interrupted" in str(error):
        return f"--where takes longer than {SECONDS:.0f} s; ask for something simpler"
    reason = str(error).strip().split("\n")[0]
    return f"--where {text!r} is not a condition ({reason}){_EXAMPLE}"


def _empty_database(is_late: Any) -> sqlite3.Connection:
    """Nothing in it, nothing allowed but to compute."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
    database.execute("PRAGMA query_only = 1")
    database.set_authorizer(_allow)
    database.set_progress_handler(lambda: int(is_late()), 10_000)
    return database


def _allow(action: int, _first: Any, function: Any, _database: Any, _trigger: Any) -> int:
    computes = action == sqlite3.SQLITE_SELECT
    harmless = action == sqlite3.SQLITE_FUNCTION and function in FUNCTIONS | {"like", "glob"}
    return sqlite3.SQLITE_OK if computes or harmless else sqlite3.SQLITE_DENY
