"""What pydantic found wrong with a spec, as sentences that name the key and what it wants."""

from __future__ import annotations

import functools
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from ..names import nearest
from .spec import MODEL_SPECS, RunSpec
from .tokens import TOKEN_SPECS

Path = tuple[str | int, ...]
MOST_SENTENCES = 5
WANTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
}
BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


@functools.cache
def choices() -> dict[str, tuple[str, dict[str, Any]]]:
    """Tables that come in several kinds: the key that tells them apart, and their specs."""
    from .density import DENSITY_SPECS, LAW_SPECS

    return {
        "model": ("name", MODEL_SPECS),
        "tokens": ("law", TOKEN_SPECS),
        "density": ("on", DENSITY_SPECS),
        "density.law": ("name", LAW_SPECS),
    }


def explain(
    error: ValidationError, table: dict[str, Any], source: str, root: type[BaseModel] = RunSpec
) -> str:
    """One line for the whole error; the alternatives of a union become one sentence."""
    by_key: dict[Path, list[Any]] = {}
    for problem in error.errors(include_url=False):
        by_key.setdefault(_path(problem, table), []).append(problem)
    sentences = [_sentence(path, problems, table, root) for path, problems in by_key.items()]
    shown = sentences[:MOST_SENTENCES]
    more = len(sentences) - len(shown)
    return f"{source}: " + "; ".join(shown) + (f"; and {more} more" if more else "")


def _path(problem: Any, table: dict[str, Any]) -> Path:
    """The key as written in the file: pydantic's names of union branches are left out."""
    here: Any = table
    kept: list[str | int] = []
    for part in problem["loc"]:
        if (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            here = here[part]
        elif problem["type"] != "missing" or part != problem["loc"][-1]:
            continue
        kept.append(part)
    return tuple(kept)


def _sentence(path: Path, problems: list[Any], table: dict[str, Any], root: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in path) or "the spec"
    problem = problems[0]
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key {where}{nearest(problem['loc'][-1], _known_keys(path, table, root))}"
    if kind == "missing":
        return f"{where} is missing"
    if kind.startswith("union_tag"):
        return _choice(where, context.get("tag"))
    if kind == "value_error":
        return f"{where}: {context['error']}"
    given = f", got {_short(problem.get('input'))}"
    if kind in BOUNDS:
        words, key = BOUNDS[kind]
        return f"{where} must be {words} {context[key]}{given}"
    if kind == "literal_error":
        return f"{where} must be {context['expected']}{given}{_near_literal(problem)}"
    wanted = list(dict.fromkeys(WANTED[p["type"]] for p in problems if p["type"] in WANTED))
    if wanted:
        return f"{where} must be {' or '.join(wanted)}{given}"
    message = problem["msg"]
    return f"{where}: {message[:1].lower()}{message[1:]}{given}"


def _near_literal(problem: Any) -> str:
    options = [part.strip("' ") for part in problem["ctx"]["expected"].split(" or ")]
    options = [word.strip("' ") for part in options for word in part.split(",")]
    return nearest(problem.get("input"), options)


def _choice(where: str, given: object) -> str:
    key, options = choices()[where]
    if given is None:
        return f"{where}.{key} is missing; choose one of {', '.join(sorted(options))}"
    hint = nearest(given, options) or f"; choose one of {', '.join(sorted(options))}"
    return f"there is no {where}.{key} {_short(given)}{hint}"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # integers beyond Python's limit of printed digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _known_keys(path: Path, table: dict[str, Any], root: type[BaseModel]) -> list[str]:
    """Keys allowed beside the unknown one."""
    spec: Any = root
    here: Any = table
    for depth, part in enumerate(path[:-1]):
        here = here[part]
        spec = _inner(spec, path[: depth + 1], here)
    return list(getattr(spec, "model_fields", {}))


def _inner(spec: Any, path: Path, value: Any) -> Any:
    """The spec of one table inside another."""
    part, where = path[-1], ".".join(str(step) for step in path)
    if isinstance(part, int):
        return spec
    if where in choices():
        key, options = choices()[where]
        return options.get(str(value.get(key))) if isinstance(value, dict) else None
    field = getattr(spec, "model_fields", {}).get(part)
    return None if field is None else _model_in(field.annotation)


def _model_in(annotation: Any) -> Any:
    """The first pydantic model named by a type, looking through unions and lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(option) for option in typing.get_args(annotation))
    return next((model for model in found if model is not None), None)
