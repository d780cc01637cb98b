"""Reading specs: TOML, overrides, examples, and errors that name the key and what it wants."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from ..errors import InputError
from .spec import MODEL_SPECS, TOKEN_SPECS, RunSpec

LARGEST_SPEC = 64 * 2**20


def example_names() -> list[str]:
    """Names of the specs shipped in the package."""
    folder = resources.files("tokenflock.lab") / "examples"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def example_text(name: str) -> str:
    """The TOML of one example."""
    if name not in example_names():
        raise InputError(f"there is no example {name!r}{_nearest(name, example_names())}; see tokenflock list examples")
    return (resources.files("tokenflock.lab") / "examples" / f"{name}.toml").read_text()


def read_text(path: Path) -> str:
    """The text of a spec file."""
    try:
        if path.stat().st_size > LARGEST_SPEC:
            raise InputError(f"{path} is larger than {LARGEST_SPEC // 2**20} MiB; that is not a spec")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def parse(text: str, overrides: list[str] | None = None, source: str = "the spec") -> RunSpec:
    """A validated spec from TOML and `path=value` overrides."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source} is not valid TOML: {error}") from error
    for override in overrides or []:
        _apply(table, override)
    try:
        return RunSpec.model_validate(table)
    except ValidationError as error:
        raise InputError(_explain(error, source)) from error
    except RecursionError as error:
        raise InputError(f"{source} is nested too deeply") from error


def render(spec: RunSpec) -> str:
    """The full resolved spec as TOML."""
    return tomli_w.dumps(spec.model_dump(exclude_none=True))


def identity(spec: RunSpec) -> str:
    """Short hash of everything that decides the numbers."""
    content = spec.model_dump(exclude_none=True, exclude={"title", "says", "output"})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _apply(table: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise InputError(f"--set takes path=value, for example --set beta=4 or --set tokens.n=128; got {override!r}")
    keys = path.strip().split(".")
    if len(keys) == 1:
        keys = _find_leaf(table, keys[0])
    target = table
    for key in keys[:-1]:
        target = target.setdefault(key, {})
        if not isinstance(target, dict):
            raise InputError(f"--set {path}: {key} is not a table")
    target[keys[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _find_leaf(table: dict[str, Any], leaf: str) -> list[str]:
    """The one path that ends in this key, among those given and those the spec allows."""
    present = [path for path in _leaves(table) if path[-1] == leaf]
    candidates = present or [path for path in _allowed(table) if path[-1] == leaf]
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) > 1:
        options = " or ".join(".".join(path) for path in candidates)
        raise InputError(f"--set {leaf}=... is ambiguous; write {options}")
    known = sorted({path[-1] for path in _allowed(table)})
    raise InputError(f"--set {leaf}=...: this spec has no key {leaf!r}{_nearest(leaf, known)}")


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
        section = table.get(name)
        if name == "model":
            inner = MODEL_SPECS.get(section.get("name") if isinstance(section, dict) else None)
        elif name == "tokens":
            inner = TOKEN_SPECS.get(section.get("law") if isinstance(section, dict) else None)
        else:
            inner = field.annotation
        found += [[name, key] for key in getattr(inner, "model_fields", {})]
    return found


def _nearest(word: str, options: list[str]) -> str:
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _explain(error: ValidationError, source: str) -> str:
    problems = [_sentence(problem) for problem in error.errors()]
    unique = list(dict.fromkeys(problems))[:5]
    return f"{source}: " + "; ".join(unique)


def _sentence(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"] if part not in MODEL_SPECS)
    kind = problem["type"]
    if kind == "extra_forbidden":
        return f"unknown key {where}{_suggest_key(problem['loc'])}"
    if kind == "missing":
        return f"{where} is missing"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        context = problem["ctx"]
        given = context.get("tag")
        key = context["discriminator"].strip("'")
        options = sorted(MODEL_SPECS if where == "model" else TOKEN_SPECS)
        hint = _nearest(given, options) if given else f"; choose one of {', '.join(options)}"
        return f"{where}.{key} is {given!r}{hint}" if given else f"{where}.{key} is missing{hint}"
    return f"{where}: {problem['msg']}, got {_short(problem.get('input'))}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _suggest_key(location: tuple[Any, ...]) -> str:
    section = location[0] if len(location) > 1 else None
    if section in ("model", "tokens") and len(location) >= 3:
        spec = {**MODEL_SPECS, **TOKEN_SPECS}.get(str(location[1]))
    elif section in RunSpec.model_fields:
        spec = RunSpec.model_fields[str(section)].annotation
    else:
        spec = RunSpec
    return _nearest(str(location[-1]), list(getattr(spec, "model_fields", {})))
