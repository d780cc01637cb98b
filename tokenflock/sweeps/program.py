"""The compiled program of a sweep: cells of one shape, one after the other or side by side."""

from __future__ import annotations

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..integrate.adjoint import VALUE
from ..integrate.core import COUNTERS, Plan, integrate_one
from .cells import Frame, Varying


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
