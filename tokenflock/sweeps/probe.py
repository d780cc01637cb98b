"""Which arrays a sweep stores, found by tracing its cells without computing them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..errors import InputError, require
from ..integrate.assemble import STATE_AXES
from ..integrate.outcome import OUTCOMES
from .cells import Cell, Cells
from .grid import Axis, Index
from .layout import Layout, Variable
from .plan import Sweep
from .spec import seed_name

# Positions of a long axis that are traced.
PROBED = 16
# Settings that change when a cell is looked at.
CLOCK = ("solve.t1", "solve.step", "solve.dt", "save.")
COUNTS = ("steps", "accepted_steps", "rejected_steps")
SAYS = {
    "final_time": ("time", "the time the cell reached"),
    "steps": ("1", "steps of the solver"),
    "accepted_steps": ("1", "steps it kept"),
    "rejected_steps": ("1", "steps it refused"),
}


def layout_of(sweep: Sweep, cells: Cells | None = None) -> Layout:
    """The arrays of every cell: the largest of each kind, where cells differ in shape."""
    from .block import ERROR, MISSING

    probes = _probes(sweep, Cells(sweep) if cells is None else cells)
    clocks = [cell.frame.times for cell in probes]
    shared = all(np.array_equal(clock, clocks[0]) for clock in clocks)
    time = "time" if shared else "save"
    found: dict[str, Variable] = {}
    # Cells of one program have the same arrays; tracing them takes a second.
    for cell in {cell.shape: cell for cell in probes}.values():
        for variable in _variables(cell, time):
            found[variable.name] = _larger(found.get(variable.name, variable), variable)
    coordinates = _coordinates(probes, found)
    if shared:
        coordinates["time"] = clocks[0]
    else:
        longest = max(len(clock) for clock in clocks)
        says = {"units": "time", "long_name": "when the cell was looked at"}
        found["time"] = Variable("time", ("save",), (longest,), "float64", np.nan, says)
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
    return Layout(tuple(found.values()), coordinates)


def _probes(sweep: Sweep, cells: Cells) -> list[Cell]:
    """The first cell, and along each axis that can change shapes some others; cells that are no run say
    so when they are computed."""
    first = (0,) * len(sweep.axes)
    probes = [cells.cell(first)]
    for position, axis in enumerate(sweep.axes):
        for value in _shaping(axis):
            index = (*first[:position], value, *first[position + 1 :])
            probes += _made(cells, index)
    # Axes that shape arrays together are largest together.
    last = tuple(max([0, *_largest(axis)]) for axis in sweep.axes)
    return probes + (_made(cells, last) if any(last) else [])


def _made(cells: Cells, index: Index) -> list[Cell]:
    try:
        return [cells.cell(index)]
    except InputError:
        return []


def _shaping(axis: Axis) -> list[int]:
    """Positions to trace: none if the axis only changes numbers."""
    if axis.is_seed:
        return []
    shaping = any(
        path.startswith(CLOCK) or not all(isinstance(value, float) for value in values)
        for path, values in axis.settings.items()
    )
    if not shaping:
        return []
    spread = np.linspace(0, len(axis) - 1, PROBED).astype(int).tolist()
    return sorted({*spread, *_largest(axis)} - {0})


def _largest(axis: Axis) -> list[int]:
    """Where the settings of an axis are largest."""
    if axis.is_seed:
        return []
    return [
        int(np.argmax(values))
        for values in axis.settings.values()
        if all(isinstance(value, (int, float)) for value in values)
    ]


def _variables(cell: Cell, time: str) -> list[Variable]:
    """The arrays of one cell, by tracing its program."""
    from .block import run_cell

    frame = cell.frame
    shapes = eqx.filter_eval_shape(
        run_cell, frame.plan, cell.varying, jax.numpy.asarray(frame.times), frame.merges
    )
    observed = {thing.name: thing for thing in frame.plan.observe}
    found = []
    for name, value in shapes.items():
        plain = name.removeprefix("final_")
        if name in COUNTS:
            found.append(_variable(name, (), value.shape, "int64", -1))
        elif name == "final_time":
            found.append(_variable(name, (), value.shape, "float64", np.nan))
        elif plain in observed or name in STATE_AXES:
            thing = observed.get(plain)
            inner = STATE_AXES[name] if thing is None else thing.axes
            dims = inner if name != plain else (time, *inner)
            attributes = {} if thing is None else thing.attributes
            found.append(Variable(name, dims, value.shape, "float64", np.nan, attributes))
    return found


def _variable(name: str, dims: tuple[str, ...], shape: Any, dtype: str, fill: float) -> Variable:
    units, says = SAYS[name]
    return Variable(name, dims, tuple(shape), dtype, fill, {"units": units, "long_name": says})


def _larger(one: Variable, other: Variable) -> Variable:
    require(
        one.dims == other.dims,
        f"{one.name} has the dimensions {one.dims} in one cell and {other.dims} in another; leave it out, "
        "or make two sweeps",
    )
    shape = tuple(max(sizes) for sizes in zip(one.shape, other.shape, strict=True))
    return Variable(one.name, one.dims, shape, one.dtype, one.fill, one.attributes)


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
