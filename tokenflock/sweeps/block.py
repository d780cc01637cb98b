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

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import TokenflockError
from ..integrate.adjoint import VALUE
from ..integrate.core import COUNTERS, Plan, integrate_one
from ..integrate.stops import said_of_stops
from ..outcomes import OUTCOMES, advise, name_outcomes, succeeded
from ..states import as_state
from .cells import Cell, Cells, Frame, Varying
from .grid import Index
from .layout import BlockResult, Layout, angle_name
from .plan import Sweep, parse_sweep
from .spec import seed_name

# Codes of `outcome` for cells without a solve; the others are positions in OUTCOMES.
ERROR, MISSING = -1, -2
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
        from .probe import layout_of

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


def arguments(frame: Frame, varying: list[Varying], capacity: int) -> tuple[Any, ...]:
    """Arguments of `run_cells`: the numbers of the cells stacked, padded to one size for all blocks."""
    padded = varying + [varying[-1]] * (capacity - len(varying))

    def stack(first: Any, *others: Any) -> Any:
        if not eqx.is_array_like(first):
            return first
        if jnp.issubdtype(jnp.result_type(first), jax.dtypes.prng_key):
            return jnp.stack([first, *others])
        return jnp.asarray(np.stack([np.asarray(leaf) for leaf in (first, *others)]))

    stacked = jax.tree.map(stack, *padded)
    side_by_side = jax.default_backend() != "cpu"
    return (
        frame.plan,
        stacked,
        jnp.asarray(frame.times),
        jnp.asarray(len(varying)),
        side_by_side,
    )


@eqx.filter_jit
def run_cells(
    plan: Plan, cells: Varying, times: Any, count: Any, side_by_side: bool
) -> dict[str, Any]:
    """The first `count` of the stacked cells, each as `solve` would do it alone."""
    arrays, static = eqx.partition(cells, eqx.is_array)

    def one(numbers: Any) -> dict[str, Any]:
        return run_cell(plan, eqx.combine(numbers, static), times)

    if side_by_side:
        return jax.vmap(one)(arrays)

    def compute(position: Any, found: dict[str, Any]) -> dict[str, Any]:
        values = one(jax.tree.map(lambda leaf: leaf[position], arrays))
        return jax.tree.map(lambda all_, value: all_.at[position].set(value), found, values)

    capacity = cells.seed.shape[0]
    shapes = jax.eval_shape(one, jax.tree.map(lambda leaf: leaf[0], arrays))
    found = {name: jnp.zeros((capacity, *s.shape), s.dtype) for name, s in shapes.items()}
    # A loop of unknown length: the program is the same for a full block and for a single cell.
    return jax.lax.fori_loop(0, count, compute, found)


def run_cell(plan: Plan, cell: Varying, times: Any) -> dict[str, Any]:
    """Everything kept of one cell, with NaN in the rows after an early end."""
    start = plan.state.holding(cell.x0)
    whole = eqx.tree_at(
        lambda p: (p.model, p.state, p.jumps, p.key),
        plan,
        (cell.model, start.blank(), cell.jumps, jax.random.key(cell.seed)),
    )
    segment = integrate_one(VALUE, whole, cell.model, whole.start(start), times, whole.key)
    missing = jnp.isinf(segment.times)
    kept = {
        name: jnp.where(missing.reshape(-1, *(1,) * (value.ndim - 1)), jnp.nan, value)
        for name, value in segment.saved.items()
        if plan.keep_states or name not in plan.state.axes
    }
    asked = {thing.name for thing in plan.observe} if plan.stops else set()
    # What the health of a run needs is judged and left out.
    ends = {n: v for n, v in segment.final_saved.items() if n in asked or _is_health(plan, n)}
    kept |= {f"final_{name}": value for name, value in ends.items()}
    last = plan.state.ends(segment.final.moving)[plan.state.main]
    return {
        **kept,
        "final_time": segment.final_time,
        "outcome": segment.outcome,
        "finite": jnp.all(jnp.isfinite(last)),
        **{name.removeprefix("num_"): segment.stats[name] for name in COUNTERS},
    }


def _is_health(plan: Plan, name: str) -> bool:
    """Whether a row is kept for the health of a run alone."""
    observed = {thing.name for thing in plan.observe}
    return name not in observed and name not in plan.state.axes


def waited_for(found: dict[str, Any]) -> dict[str, np.ndarray]:
    """The numbers on the host; Ctrl-C is heard while the program computes."""
    pause = 1e-4
    while not found["outcome"].is_ready():
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return jax.device_get(found)


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
