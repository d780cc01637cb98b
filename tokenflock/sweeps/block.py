"""What a worker does: the cells of one block, through one compiled call for all cells of a shape.

On a CPU the call goes through the cells one after the other (a loop inside the program): the numbers of
a cell depend on nothing but the cell, whatever else is in the block and however many threads there are,
and no cell waits for a slower neighbour's steps. On an accelerator the cells run side by side.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

from ..errors import TokenflockError
from ..integrate.stops import said_of_stops
from ..outcomes import OUTCOMES, advise, name_outcomes, succeeded
from ..states import as_state
from .cells import Cell, Cells
from .grid import Index
from .layout import ERROR, MISSING, BlockResult, Layout, angle_name
from .plan import Sweep, parse_sweep
from .probe import layout_of
from .program import arguments, run_cells, waited_for
from .spec import seed_name

SWEEPS_AT_HAND = 4


def compute_block(
    text: str, index: int, only: tuple[int, ...] | None = None, layout: Layout | None = None
) -> BlockResult:
    """The arrays of one block of a sweep; `only` names the positions to compute (default: all).

    Whoever knows the layout of the sweep passes it, which saves a worker the time to trace its cells.
    A cell that raises, or does not reach its end with finite tokens, is told in `failures`.
    """
    start = time.perf_counter()
    bench = _bench(text)
    block = bench.sweep.grid.block(index)
    wanted = range(block.size) if only is None else only
    places = list(block.cells())
    layout = layout or bench.layout
    arrays = _empty(layout, block.size)
    for path in bench.sweep.own_seeds:
        for position in wanted:
            arrays[seed_name(path)][position] = bench.sweep.settings(places[position])[path]
    failures: dict[int, str] = {}
    for group in _groups(bench.cells, places, wanted, failures):
        times = layout.coordinates.get("time")
        _fill(arrays, failures, group, _computed(group, bench.capacity), times)
    for position in failures:
        if arrays["outcome"][position] == MISSING:
            arrays["outcome"][position] = ERROR
    return BlockResult(arrays, dict(sorted(failures.items())), time.perf_counter() - start)


class _Bench:
    """What a worker keeps of a sweep between blocks."""

    def __init__(self, text: str):
        self.sweep: Sweep = parse_sweep(text)
        self.cells = Cells(self.sweep)
        self.capacity = self.sweep.grid.block(0).size

    @functools.cached_property
    def layout(self) -> Layout:
        """Traced only where nobody knows it."""
        return layout_of(self.sweep, self.cells)


@functools.lru_cache(maxsize=SWEEPS_AT_HAND)
def _bench(text: str) -> _Bench:
    return _Bench(text)


def _empty(layout: Layout, cells: int) -> dict[str, np.ndarray]:
    return {
        variable.name: np.full((cells, *variable.shape), variable.fill, variable.dtype)
        for variable in layout.variables
    }


Group = list[tuple[int, Cell]]


def _groups(
    cells: Cells, places: list[Index], wanted: Any, failures: dict[int, str]
) -> list[Group]:
    """The wanted cells by what one program can compute; a cell that is no run is told and left out."""
    groups: dict[Hashable, Group] = {}
    for position in wanted:
        try:
            cell = cells.cell(places[position])
        except TokenflockError as error:
            failures[position] = str(error)
            continue
        groups.setdefault(cell.shape, []).append((position, cell))
    return list(groups.values())


def _computed(group: Group, capacity: int) -> dict[str, np.ndarray] | str:
    """Arrays (cells of the group, *inner), or a sentence why the program cannot be made or run."""
    frame = group[0][1].frame
    try:
        return waited_for(run_cells(*arguments(frame, [c.varying for _, c in group], capacity)))
    except TokenflockError as error:
        return str(error)
    except (jax.errors.JaxRuntimeError, ValueError, TypeError, OverflowError) as error:
        reason = str(error).strip().split("\n")[0][:300]
        return f"this cell does not make a program: {reason} ({type(error).__name__})"


def _fill(
    arrays: dict[str, np.ndarray],
    failures: dict[int, str],
    group: Group,
    found: Any,
    shared_times: np.ndarray | None,
) -> None:
    """Put the arrays of a group in their places; arrays shorter than the store's leave its fill behind.

    What a cell gives is never put under times that are not its own.
    """
    if isinstance(found, str):
        failures.update({position: found for position, _ in group})
        return
    for row, (position, cell) in enumerate(group):
        values = {name: found[name][row] for name in arrays.keys() & found.keys() - {"outcome"}}
        values |= _angles(cell, arrays)
        if "time" in arrays:
            values["time"] = cell.frame.times
        elif shared_times is None or not np.array_equal(cell.frame.times, shared_times):
            failures[position] = "this cell is looked at at other times than the store has room for"
            continue
        if not _fits(arrays, values):
            failures[position] = "the arrays of this cell are larger than the store has room for"
            continue
        for name, value in values.items():
            arrays[name][(position, *(slice(0, size) for size in np.shape(value)))] = value
        outcome, advice = _judged(cell, {name: value[row] for name, value in found.items()})
        arrays["outcome"][position] = OUTCOMES.index(outcome)
        if not succeeded(outcome):
            failures[position] = f"{outcome} at t = {found['final_time'][row]:g}: {advice}"


def _angles(cell: Cell, arrays: dict[str, np.ndarray]) -> dict[str, float]:
    """The linking angles of a cell, of those that differ from cell to cell."""
    plan, state = cell.frame.plan, as_state(cell.varying.x0)
    told = {thing.name: state.notes(thing) for thing in plan.observe if thing.notes is not None}
    told["final_time"] = said_of_stops(plan.stops, state)
    named = {angle_name(name): said.get("angle") for name, said in told.items()}
    return {name: angle for name, angle in named.items() if name in arrays and angle is not None}


def _judged(cell: Cell, found: dict[str, Any]) -> tuple[str, str]:
    """How a cell ended, and what to do about it."""
    ended = name_outcomes(found["outcome"], found["finite"])
    plan = cell.frame.plan
    judged = plan.state.judged(cell.varying.model, ended, found, plan.numerics.tolerance)
    outcome = str(judged.names)
    return outcome, advise(outcome, judged.advice)


def _fits(arrays: dict[str, np.ndarray], values: dict[str, Any]) -> bool:
    return all(
        size <= room
        for name, value in values.items()
        for size, room in zip(np.shape(value), arrays[name].shape[1:], strict=True)
    )
