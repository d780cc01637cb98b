"""Which arrays a sweep stores, found by tracing its cells without computing them.

Where a setting of the clock is swept, cells are looked at at times of their own: arrays then have the
dimension `save`, with room for the cell that is looked at most often, and `time` is an array too.
Everything else grows with whole numbers (tokens, coordinates, heads) or changes with words (laws,
models), so the largest of the former and each of the latter are traced.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..errors import InputError, TooLargeError, require
from ..integrate.stops import said_of_stops
from ..lab.files import put, validated
from ..memory import require_bytes
from ..outcomes import OUTCOMES
from ..states import as_state
from .cells import Cell, Cells
from .cost import cell_bytes, largest_part
from .grid import Axis, Index
from .layout import ERROR, MISSING, Layout, Variable, angle_name
from .plan import Sweep
from .program import run_cell
from .spec import seed_name

# Cells that are traced, and different clocks that are counted one by one.
MOST_TRACED, MOST_CLOCKS = 64, 2_000
# Settings that change when a cell is looked at, and those by which it is looked at more often.
CLOCK = ("solve.t1", "save.")
COUNTS = ("steps", "accepted_steps", "rejected_steps")
SAYS = {
    "final_time": ("time", "the time the cell reached"),
    "steps": ("1", "steps of the solver"),
    "accepted_steps": ("1", "steps it kept"),
    "rejected_steps": ("1", "steps it refused"),
}


def layout_of(sweep: Sweep, cells: Cells | None = None) -> Layout:
    """The arrays of every cell: the largest of each kind, where cells differ in shape."""
    places = _places(sweep)
    working = max(_checked_bytes(sweep, index) for index in places)
    probes = _probes(Cells(sweep) if cells is None else cells, places)
    shared = not _clock_axes(sweep)
    found: dict[str, Variable] = {}
    # Cells of one program have the same arrays; tracing them takes a second.
    for cell in {cell.shape: cell for cell in probes}.values():
        for variable in _variables(cell, "time" if shared else "save"):
            found[variable.name] = _larger(found.get(variable.name, variable), variable)
    found |= {angle.name: angle for angle in _angles(found)}
    coordinates = _coordinates(probes, found)
    if shared:
        coordinates["time"] = probes[0].frame.times
    else:
        saves = _most_saves(sweep)
        found = {name: _with_saves(variable, saves) for name, variable in found.items()}
        says = {"units": "time", "long_name": "when the cell was looked at"}
        found["time"] = Variable("time", ("save",), (saves,), "float64", np.nan, says)
    flags = {
        "flag_values": [MISSING, ERROR, *range(len(OUTCOMES))],
        "flag_meanings": " ".join(["missing", "error", *OUTCOMES]),
        "long_name": "how the cell ended",
    }
    found["outcome"] = Variable("outcome", (), (), "int8", MISSING, flags)
    for path in sweep.own_seeds:
        says = {"units": "1", "long_name": f"{path} of the cell"}
        found[seed_name(path)] = Variable(seed_name(path), (), (), "int64", -1, says)
    _check_names(sweep, found, coordinates)
    return Layout(tuple(found.values()), coordinates, working)


def _clock_axes(sweep: Sweep) -> list[int]:
    """Axes along which cells are looked at at other times."""
    return [
        position
        for position, axis in enumerate(sweep.axes)
        if any(path.startswith(CLOCK) for path in axis.settings)
    ]


def _most_saves(sweep: Sweep) -> int:
    """How often the cell is looked at that is looked at most often."""
    clocks = _clock_axes(sweep)
    lengths = [len(axis) if place in clocks else 1 for place, axis in enumerate(sweep.axes)]
    if math.prod(lengths) <= MOST_CLOCKS:
        found = [_saves(sweep, index) for index in itertools.product(*map(range, lengths))]
    else:
        # Saves grow with t1 and with log.count, and as `every` falls: no cell has more than the
        # extremes together.
        table = sweep.cell_table((0,) * len(sweep.axes))
        for path, choose in (("solve.t1", max), ("save.log.count", max), ("save.every", min)):
            for axis in sweep.axes:
                if path in axis.settings:
                    put(table, path.split("."), choose(axis.settings[path]), "sweep axis")
        found = [_saves_of(table)]
    require(max(found) > 0, "no cell of this sweep has times to look at it: see t1 and [save]")
    return max(found)


def _saves(sweep: Sweep, index: Index) -> int:
    return _saves_of(sweep.cell_table(index))


def _saves_of(table: dict[str, Any]) -> int:
    """The number of save times; 0 for a cell that is no run, which says so when it is computed."""
    try:
        spec = validated(table, "this cell")
        return len(spec.save.build().times(spec.solve.t1))
    except InputError:
        return 0


def _with_saves(variable: Variable, saves: int) -> Variable:
    if variable.dims[:1] != ("save",):
        return variable
    return dataclasses.replace(variable, shape=(saves, *variable.shape[1:]))


def _places(sweep: Sweep) -> list[Index]:
    """The first cell, and those that may have larger or other arrays."""
    first = (0,) * len(sweep.axes)
    corners = list(itertools.product(*(sorted({0, *_largest(axis)}) for axis in sweep.axes)))
    words = [
        (*first[:place], value, *first[place + 1 :])
        for place, axis in enumerate(sweep.axes)
        for value in _worded(axis)
    ]
    others = [*corners[::-1][:MOST_TRACED], *words[:MOST_TRACED]]
    return list(dict.fromkeys([first, *others]))


def _probes(cells: Cells, places: list[Index]) -> list[Cell]:
    first, *others = places
    return [cells.cell(first), *(cell for index in others for cell in _made(cells, index))]


def _checked_bytes(sweep: Sweep, index: Index) -> float:
    """What a cell takes; refused before tokens are drawn that would fill the machine."""
    try:
        spec = validated(sweep.cell_table(index), "this cell")
        needed = cell_bytes(spec)
    except InputError:
        return 0.0
    require_bytes(
        needed,
        f"{largest_part(spec)} of the cell {sweep.says_where(index)}",
        "sweep fewer tokens or modes, or use reduction = 'tiled' or 'auto'",
    )
    return needed


def _made(cells: Cells, index: Index) -> list[Cell]:
    """A cell, if it is a run: others say so when they are computed, but too large ones at once."""
    try:
        return [cells.cell(index)]
    except TooLargeError:
        raise
    except InputError:
        return []


def _largest(axis: Axis) -> list[int]:
    """Where the whole numbers that an axis sets are largest; other numbers change no shape."""
    if axis.is_seed:
        return []
    return [
        int(np.argmax(values))
        for values in axis.settings.values()
        if all(isinstance(value, int) for value in values)
    ]


def _worded(axis: Axis) -> list[int]:
    """Where each word that an axis sets comes first."""
    return [
        values.index(value)
        for values in axis.settings.values()
        for value in dict.fromkeys(value for value in values if isinstance(value, str))
    ]


def _variables(cell: Cell, time: str) -> list[Variable]:
    """The arrays of one cell, by tracing its program."""
    frame = cell.frame
    shapes = eqx.filter_eval_shape(
        run_cell, frame.plan, cell.varying, jax.numpy.asarray(frame.times)
    )
    state = as_state(cell.varying.x0)
    observed = {thing.name: thing for thing in frame.plan.observe}
    found = []
    for name, value in shapes.items():
        plain = name.removeprefix("final_")
        if name in COUNTS:
            found.append(_variable(name, (), value.shape, "int64", -1))
        elif name == "final_time":
            ends = said_of_stops(frame.plan.stops, state)
            found.append(_variable(name, (), value.shape, "float64", np.nan, ends))
        elif plain in observed or name in state.axes:
            thing = observed.get(plain)
            inner = state.axes[name] if thing is None else thing.axes
            dims = inner if name != plain else (time, *inner)
            attributes = {} if thing is None else state.notes(thing)
            found.append(Variable(name, dims, value.shape, "float64", np.nan, attributes))
    return found


def _variable(
    name: str,
    dims: tuple[str, ...],
    shape: Any,
    dtype: str,
    fill: float,
    more: dict[str, Any] | None = None,
) -> Variable:
    units, says = SAYS[name]
    attributes = {"units": units, "long_name": says, **(more or {})}
    return Variable(name, dims, tuple(shape), dtype, fill, attributes)


def _angles(found: dict[str, Variable]) -> list[Variable]:
    """An array for every linking angle that a rule finds anew in each cell."""
    says = {"units": "rad", "long_name": "the linking angle of the cell"}
    return [
        Variable(angle_name(name), (), (), "float64", np.nan, says)
        for name, variable in found.items()
        if "link" in variable.attributes
        and "angle" not in variable.attributes
        # The last value of an observable is linked as the others are.
        and (name == "final_time" or not name.startswith("final_"))
    ]


def _larger(one: Variable, other: Variable) -> Variable:
    require(
        one.dims == other.dims,
        f"{one.name} has the dimensions {one.dims} in one cell and {other.dims} in another; leave it out, "
        "or make two sweeps",
    )
    shape = tuple(max(sizes) for sizes in zip(one.shape, other.shape, strict=True))
    return Variable(one.name, one.dims, shape, one.dtype, one.fill, _shared(one, other))


def _shared(one: Variable, other: Variable) -> dict[str, Any]:
    """What is said of both; a linking angle that changes with n has an array of its own."""
    first, second = one.attributes, other.attributes
    kept = {key: value for key, value in first.items() if second.get(key) == value}
    if not (first.get("meaningful", True) and second.get("meaningful", True)):
        note = first.get("note") or second.get("note")
        kept |= {"meaningful": False, "note": f"in some cells {note}"}
    return kept


def _coordinates(probes: list[Cell], found: dict[str, Variable]) -> dict[str, np.ndarray]:
    """Values along the inner dimensions: the observables' own, or positions."""
    sizes = {
        dim: size
        for variable in found.values()
        for dim, size in zip(variable.dims, variable.shape, strict=True)
        if dim not in ("time", "save")
    }
    named: dict[str, np.ndarray] = {}
    for cell in probes:
        for thing in cell.frame.plan.observe:
            for dim, values in thing.coords.items():
                named[dim] = max(named.get(dim, values), values, key=len)
    return {
        dim: named[dim] if len(named.get(dim, ())) == size else np.arange(size)
        for dim, size in sizes.items()
    }


def _check_names(sweep: Sweep, found: dict[str, Variable], inner: dict[str, np.ndarray]) -> None:
    taken = {*found, *inner, "save", "time"}
    for axis in sweep.axes:
        clash = sorted(taken & {axis.name, *axis.beside})
        require(
            not clash,
            f"the axis {axis.name} has the name of an array of the store ({', '.join(clash)}); rename "
            f"it, for example swept_{axis.name} = {{ ..., set = ... }}",
        )
