"""One cell of a sweep by its coordinates: the run that it is, and its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..lab.files import render
from ..names import nearest
from ..sweeps.grid import Axis, Index
from ..sweeps.plan import Sweep
from ..sweeps.stored_spec import stored_sweep
from .opening import Result

EXACT = 1e-12
SHOWN = 6
# A comma separates two settings only where the second one begins.
BETWEEN = re.compile(r",(?=\s*[A-Za-z_][\w.]*\s*=)")


def sweep_of(result: Result) -> Sweep:
    """The plan of a stored sweep, or a sentence for a result that is none."""
    if result.kind != "sweep":
        raise InputError(f"{result.folder} is a {result.kind}, and only a sweep has cells")
    return stored_sweep(result.folder)


def find_cell(sweep: Sweep, asked: str) -> Index:
    """The cell at coordinates such as beta=4,seed=3; only exact values are taken."""
    wanted = _wanted(asked)
    unknown = [name for name in wanted if not any(name in _columns(axis) for axis in sweep.axes)]
    if unknown:
        known = [name for axis in sweep.axes for name in _columns(axis)]
        hint = (
            nearest(unknown[0], known) or f"; it has {', '.join(axis.name for axis in sweep.axes)}"
        )
        raise InputError(f"--cell: this sweep has no axis {unknown[0]!r}{hint}")
    return tuple(_position(axis, wanted) for axis in sweep.axes)


def cell_text(sweep: Sweep, index: Index) -> str:
    """The run spec of a cell as TOML, which tokenflock run takes."""
    where = sweep.says_where(index).encode("unicode_escape").decode()
    return f"# The cell {where} of sweep {sweep.id}.\n{render(sweep.cell_spec(index))}"


def cell_values(result: Result, sweep: Sweep, index: Index) -> Any:
    """The arrays of a cell as a dataset in memory."""
    place = {axis.name: position for axis, position in zip(sweep.axes, index, strict=True)}
    return result.dataset().isel(place).load()


def _wanted(asked: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in BETWEEN.split(asked):
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not text or name in found:
            raise InputError(f"--cell takes coordinates such as beta=4,seed=3; got {asked!r}")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    """A number or truth value, else the text itself, with or without quotes."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, (bool, int, float, str)):
        return found
    try:
        return float(text)
    except ValueError:
        return text.strip("'")


def _columns(axis: Axis) -> dict[str, Sequence[Any]]:
    """Everything a position on an axis can be named by: the axis, its coordinates, its settings."""
    coordinates = {axis.name: axis.values, **axis.beside}
    return {
        **axis.settings,
        **{name: np.asarray(values).tolist() for name, values in coordinates.items()},
    }


def _position(axis: Axis, wanted: dict[str, Any]) -> int:
    columns = _columns(axis)
    asked = {name: value for name, value in wanted.items() if name in columns}
    fits = [
        position
        for position in range(len(axis))
        if all(_same(columns[name][position], value) for name, value in asked.items())
    ]
    if len(fits) == 1:
        return fits[0]
    if not asked:
        raise InputError(
            f"--cell must say where on {axis.name} ({len(axis)} values: {_some(columns[axis.name])})"
        )
    given = ", ".join(f"{name}={value}" for name, value in asked.items())
    if fits:
        raise InputError(
            f"--cell {given} fits {len(fits)} positions of {axis.name}; add {axis.name}={fits[0]} or another "
            f"of {_some(fits)}"
        )
    name, value = next(iter(asked.items()))
    raise InputError(
        f"--cell {given}: there is no such cell; {_neighbours(name, columns[name], value)}"
    )


def _same(stored: Any, asked: Any) -> bool:
    if isinstance(stored, str) or isinstance(asked, str):
        return str(stored) == str(asked)
    if isinstance(stored, float) or isinstance(asked, float):
        return abs(stored - asked) <= EXACT * max(1.0, abs(stored))
    return stored == asked


def _neighbours(name: str, values: Sequence[Any], asked: Any) -> str:
    """The stored values next to one that is not there."""
    if isinstance(asked, str) or any(isinstance(value, str) for value in values):
        return f"{name} is one of {_some(values)}"
    below = max((value for value in values if value < asked), default=None)
    above = min((value for value in values if value > asked), default=None)
    near = [str(value) for value in (below, above) if value is not None]
    return f"the nearest {name} {'are' if len(near) > 1 else 'is'} {' and '.join(near)}"


def _some(values: Sequence[Any]) -> str:
    shown = ", ".join(str(value) for value in values[:SHOWN])
    return shown + (f", ... {values[-1]}" if len(values) > SHOWN else "")
