"""Reading specs: TOML, overrides, and errors that name the key and what it wants."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from ..errors import InputError, StoreError, require
from ..names import nearest
from ..results.own_files import is_own_file
from ..results.strict_json import is_deeper_than
from .sentences import choices, explain
from .spec import RunSpec

LARGEST_SPEC = 64 * 2**20
# Tables and lists inside one another: a spec that means something has eight at most.
DEEPEST_SPEC = 32
# Names of a key joined by dots. More than a key can have, so that a text with dots is not taken for one.
MOST_DOTS = 100
NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_.-]){NAME}(?:[ \t]*+\.[ \t]*+{NAME}){{{MOST_DOTS - 1}}}")
MOST_OVERRIDES = 10_000
SHOWN = 40
# What tomllib raises on bad text: its own error, too many brackets, too many digits.
TOML_ERRORS = (tomllib.TOMLDecodeError, RecursionError, ValueError)


def read_text(path: Path) -> str:
    """The text of a spec file."""
    try:
        if path.stat().st_size > LARGEST_SPEC:
            raise InputError(f"{path} is larger than {LARGEST_SPEC // 2**20} MiB: not a spec")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}; see tokenflock list examples") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; give a TOML file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text, so not a TOML spec") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_stored(path: Path) -> str:
    """The text of a spec in a folder of results; a link or a pipe in its place is none of ours."""
    if not is_own_file(path):
        raise StoreError(
            f"{path} is not a plain file; take the folder from a copy in which it is one"
        )
    return read_text(path)


def parse(text: str, overrides: list[str] | None = None, source: str = "the spec") -> RunSpec:
    """A validated spec from TOML and `path=value` overrides."""
    return validated(load(text, overrides, source), source)


def load(text: str, overrides: list[str] | None, source: str, more: tuple[str, ...] = ()) -> Any:
    """The table of a TOML text with `path=value` overrides; `more` are tables beside those of a run."""
    _refuse_long_keys(text, source)
    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise InputError(f"{source} is nested too deeply") from error
    except TOML_ERRORS as error:
        raise InputError(f"{source} is not valid TOML: {error}") from error
    check_depth(table, source)
    given = overrides or []
    require(
        len(given) <= MOST_OVERRIDES,
        f"--set is given {len(given)} times, and at most {MOST_OVERRIDES:,} times is allowed; write what is "
        "set into a spec file",
    )
    for override in given:
        _apply(table, override, more)
    return table


def _refuse_long_keys(text: str, source: str) -> None:
    """Tables inside tables by dots: TOML's reader takes time that grows with the square of their number."""
    found = LONG_KEY.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(
            f"{source} is nested too deeply: line {line} has {MOST_DOTS} names or more joined by dots (it "
            f"begins {found[0][:SHOWN]!r}), and a key of a spec has a few: tokens.n"
        )


def check_depth(table: Any, source: str) -> None:
    """Refuse tables inside tables inside tables, before anything walks through them."""
    require(
        not is_deeper_than(table, DEEPEST_SPEC),
        f"{source} is nested too deeply: at most {DEEPEST_SPEC} tables and lists may stand inside one "
        "another",
    )


def validated(table: dict[str, Any], source: str) -> RunSpec:
    """A spec from a table, or sentences on what is wrong with it."""
    moved = [name for name in ("tokens", "density") if name in table]
    if len(moved) == 2:
        raise InputError(f"{source} has [tokens] and [density]; a run moves one of them")
    try:
        spec = RunSpec.model_validate(table)
    except ValidationError as error:
        raise InputError(explain(error, table, source)) from error
    require(bool(moved), f"{source}: tokens is missing; a run moves [tokens] or a [density]")
    return spec


def render(spec: RunSpec) -> str:
    """The full resolved spec as TOML; reading it back gives the same numbers."""
    return tomli_w.dumps(content(spec))


def content(spec: RunSpec) -> dict[str, Any]:
    """The full resolved spec as plain data."""
    return spec.model_dump(exclude_none=True)


def identity(spec: RunSpec) -> str:
    """Short hash of everything that decides the numbers."""
    decisive = spec.model_dump(exclude_none=True, exclude={"title", "says", "output"})
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]


def _apply(table: dict[str, Any], override: str, more: tuple[str, ...]) -> None:
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        raise InputError(
            "--set takes path=value, for example --set beta=4 or --set tokens.n=128; "
            f"got {override!r}"
        )
    require(
        len(keys) <= DEEPEST_SPEC,
        f"--set {path[:SHOWN]}... names {len(keys)} tables inside one another; a spec has at most "
        f"{DEEPEST_SPEC}",
    )
    if keys[0] not in (*RunSpec.model_fields, *more):
        keys = complete(table, keys, "--set")
    value = _value(path, text.strip())
    # Of the new value alone: the table it is put into was looked at before.
    require(
        not is_deeper_than(value, DEEPEST_SPEC - len(keys)), f"--set {path} is nested too deeply"
    )
    put(table, keys, value, "--set")


def put(table: dict[str, Any], keys: list[str], value: Any, asked_by: str) -> None:
    """Set the value at a path of a table; missing tables on the way are made, entries of lists are not."""
    target: Any = table
    for position in range(len(keys) - 1):
        place = _place(target, keys, position, asked_by)
        target = target.setdefault(place, {}) if isinstance(target, dict) else target[place]
    target[_place(target, keys, len(keys) - 1, asked_by)] = value


def _place(target: Any, keys: list[str], position: int, asked_by: str) -> Any:
    """The key of a table, or the position in a list, counted from 0, that stands in a path."""
    key, path = keys[position], ".".join(keys)
    if isinstance(target, dict):
        return key
    owner = keys[position - 1]
    if not isinstance(target, list):
        raise InputError(f"{asked_by} {path}: {owner} is not a table, so it has no {key}")
    # More digits than nine are no position, and may be more than Python reads.
    if not (key.isdecimal() and len(key) <= 9 and int(key) < len(target)):
        raise InputError(
            f"{asked_by} {path}: {owner} is a list of {len(target)}, counted from 0, so it has no {key}"
        )
    return int(key)


def _value(path: str, text: str) -> Any:
    """A TOML value, or the text itself: --set law=cap needs no quotes, --set dt=.5 no zero."""
    _refuse_long_keys(text, f"--set {path}")
    try:
        table = tomllib.loads(f"value = {text}")
        return table["value"] if len(table) == 1 else text
    except RecursionError as error:
        raise InputError(f"--set {path} is nested too deeply") from error
    except TOML_ERRORS as error:
        if text[:1] in ("[", "{", '"', "'"):
            raise InputError(f"--set {path}: {text} is not a TOML value: {error}") from error
    try:
        return float(text)
    except ValueError:
        return text


def complete(table: dict[str, Any], keys: list[str], asked_by: str) -> list[str]:
    """The one path that ends in these keys, among those given and those the spec allows.

    Positions in a list may follow: beta.values.1.
    """
    given = ".".join(keys)
    if len(keys) > 1 and keys[-1].isdecimal():
        return [*complete(table, keys[:-1], asked_by), keys[-1]]
    for paths in (_leaves(table), _allowed(table)):
        found = [path for path in paths if path[-len(keys) :] == keys]
        if len(found) == 1:
            return found[0]
        if found:
            options = " or ".join(".".join(path) for path in found)
            raise InputError(f"{asked_by} {given}=... is ambiguous; write {options}")
    known = sorted({path[-1] for path in _allowed(table)})
    raise InputError(
        f"{asked_by} {given}=...: this spec has no key {given!r}{nearest(given, known)}"
    )


def _leaves(table: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[list[str]]:
    found: list[list[str]] = []
    for key, value in table.items():
        found.append([*prefix, key])
        if isinstance(value, dict):
            found += _leaves(value, (*prefix, key))
    return found


def _allowed(table: dict[str, Any]) -> list[list[str]]:
    """Paths of one or two keys that the sections of a spec accept."""
    found: list[list[str]] = []
    for name, field in RunSpec.model_fields.items():
        found.append([name])
        inner: Any = field.annotation
        if name in choices():
            key, options = choices()[name]
            section = table.get(name)
            chosen = section.get(key) if isinstance(section, dict) else None
            inner = options.get(chosen) if isinstance(chosen, str) else None
        found += [[name, key] for key in getattr(inner, "model_fields", {})]
    return found
