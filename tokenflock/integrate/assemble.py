"""From the arrays of compiled segments to one labelled Trajectory."""

from __future__ import annotations

import functools
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..batches import batch_axis
from ..outcomes import advise, count_outcomes, name_outcomes
from ..provenance import provenance
from ..runtime import is_traced
from ..serialise import describe
from ..states import State, value_shape
from ..trajectory import Trajectory
from .core import COUNTERS, Plan, Segment, widened
from .stops import said_of_stops

# Entries along every axis looked at to see that an array holds no counts.
GLANCE = 4
COUNTS = {"outcome_code": "outcome", **{name.removeprefix("num_"): name for name in COUNTERS}}


def from_segment(plan: Plan, state: State, segment: Segment) -> Trajectory:
    """Label the arrays of a segment; `state` has the start and the sample axes the caller knows."""
    lead, shape = lead_axes(plan, state), _lead_shape(plan, state)
    rows = {name: _restore(rows, shape, state) for name, rows in segment.saved.items()}
    ends = {name: _restore(end, shape, state) for name, end in _ends(state, segment).items()}
    times = segment.times
    if is_traced(segment):
        times = times.reshape(-1, times.shape[-1])[0]
    elif not lead:
        rows, times = _trim(rows, segment)
    else:
        rows, times = _closed(rows, segment, shape, state)
    arrays = {**rows, **ends}
    if not is_traced(segment, plan.model, state):
        arrays = _restore_counts(plan, state, arrays)
    axes = _axes(plan, state, lead, rows, ends)
    for name, value in state.at_start().items():
        arrays[f"initial_{name}"] = value
        axes[f"initial_{name}"] = (*_sample_axes(state), *state.axes[name])
    return Trajectory(
        arrays,
        axes,
        _coords(plan, state, times),
        attributes_of(plan, state, arrays),
        _details(plan, state),
        plan.model,
        state.blank(),
    )


def lead_axes(plan: Plan, state: State) -> tuple[str, ...]:
    """Names of the batch axes: that of the models, then samples."""
    models = batch_axis(plan.model)
    return (() if models is None else (models.name,)) + _sample_axes(state)


def _sample_axes(state: State) -> tuple[str, ...]:
    count = len(state.sample_shape)
    return ("sample",) if count == 1 else tuple(f"sample_{index}" for index in range(count))


def _lead_shape(plan: Plan, state: State) -> tuple[int, ...]:
    models = batch_axis(plan.model)
    return (() if models is None else (models.size,)) + state.sample_shape


def _ends(state: State, segment: Segment) -> dict[str, Any]:
    """How the run ended: its time, outcome and steps, the last values, and the state to continue from."""
    last = {f"final_{name}": value for name, value in segment.final_saved.items()}
    last.pop("final_states", None)
    held = {f"final_{name}": value for name, value in state.ends(segment.final.moving).items()}
    counts = {"outcome_code": segment.outcome}
    counts |= {name.removeprefix("num_"): count for name, count in segment.stats.items()}
    sums = {f"final_{name}": value for name, value in segment.final.integrals.items()}
    return {"final_time": segment.final_time, **counts, **last, **sums, **held}


def _restore(value: Any, shape: tuple[int, ...], state: State) -> Any:
    """Undo the flattening of several sample axes."""
    samples = len(state.sample_shape)
    flat = len(shape) - samples + min(samples, 1)
    restored = (*shape, *value.shape[flat:])
    return value if value.shape == restored else value.reshape(restored)


def _trim(rows: dict[str, Any], segment: Segment) -> tuple[dict[str, Any], np.ndarray]:
    """Drop rows after an early end and close with the state where the run ended."""
    times = np.asarray(segment.times)
    done = np.isfinite(times) & (times <= float(segment.final_time))
    count = int(np.sum(done))
    if count == len(times):
        return rows, times
    trimmed = {
        name: np.concatenate([values[:count], np.asarray(segment.final_saved[name])[None]])
        for name, values in rows.items()
    }
    return trimmed, np.append(times[:count], float(segment.final_time))


def _closed(
    rows: dict[str, Any], segment: Segment, shape: tuple[int, ...], state: State
) -> tuple[dict[str, Any], np.ndarray]:
    """Rows of a batch: NaN after a member's own end, which diffrax marks by an infinite time.

    Times may be given once for all members, where nobody ended early.
    """
    table = np.asarray(segment.times)
    if np.all(np.isfinite(table)):
        # Nobody ended early: the rows stay as they are, and where they are.
        return rows, table.reshape(-1, table.shape[-1])[0]
    missing: Any = np.isinf(table).reshape(*shape, -1)
    rows = {
        name: np.where(widened(missing, values), np.nan, values) for name, values in rows.items()
    }
    ends = {name: _restore(segment.final_saved[name], shape, state) for name in rows}
    times = np.min(table, axis=tuple(range(table.ndim - 1)))
    return close_batch(rows, ends, _restore(segment.final_time, shape, state), times)


def close_batch(
    rows: dict[str, Any], ends: dict[str, Any], final_time: Any, times: np.ndarray
) -> tuple[dict[str, Any], np.ndarray]:
    """Leave out the rows that no member reached, and close with the end of the one that ended last.

    The rows left out have infinite times. In the closing row, as in all others, members that had ended
    before are NaN: a single run closes with its end, too.
    """
    keep = np.isfinite(times)
    if np.all(keep):
        return rows, times
    ended = np.asarray(final_time)
    latest = np.max(ended)

    def closed(name: str) -> np.ndarray:
        end = np.where(widened(ended == latest, ends[name]), ends[name], np.nan)
        reached = np.compress(keep, np.asarray(rows[name]), axis=ended.ndim)
        return np.concatenate([reached, np.expand_dims(end, ended.ndim)], axis=ended.ndim)

    return {name: closed(name) for name in rows}, np.append(times[keep], latest)


def _restore_counts(plan: Plan, state: State, arrays: dict[str, Any]) -> dict[str, Any]:
    """Whole numbers and truth values as such again, unless an early end left holes."""
    observed = {thing.name: thing for thing in plan.observe}
    whole = {*COUNTS, *state.whole}

    @functools.cache
    def kind(name: str) -> Any:
        return int if name in whole else value_shape(state, observed[name], plan.model).dtype

    def restore(name: str, value: Any) -> Any:
        quantity = name.removeprefix("final_")
        if quantity not in whole and quantity not in observed:
            return value
        # Tracing an observable for its type takes milliseconds, as does a look at millions of entries;
        # most show at a glance that they are no counts.
        if not _whole(np.asarray(_some(value))) or jnp.issubdtype(kind(quantity), jnp.floating):
            return value
        return value.astype(kind(quantity)) if _whole(value) else value

    return {name: restore(name, value) for name, value in arrays.items()}


def _whole(value: Any) -> bool:
    """Whether every entry is a finite whole number."""
    near = _near(value)
    return bool(near.all(near.isfinite(value)) and near.all(value == near.rint(value)))


def _some(value: Any) -> Any:
    """A few entries from all over an array."""
    return value[tuple(slice(None, None, max(1, size // GLANCE)) for size in np.shape(value))]


def _near(value: Any) -> Any:
    """NumPy, or JAX for what lies on a device: an ensemble has more there than the host should fetch."""
    return jnp if isinstance(value, jax.Array) else np


def _axes(
    plan: Plan,
    state: State,
    lead: tuple[str, ...],
    rows: dict[str, Any],
    ends: dict[str, Any],
) -> dict[str, tuple[str, ...]]:
    seen = (*plan.observe, *plan.integrals)
    inner = {**state.axes, **{thing.name: thing.axes for thing in seen}}
    axes = {name: (*lead, "time", *inner.get(name, ())) for name in rows}
    return axes | {name: (*lead, *inner.get(name.removeprefix("final_"), ())) for name in ends}


def _coords(plan: Plan, state: State, times: Any) -> dict[str, Any]:
    """Labels of the axes: times, models, indices, and what observables bring."""
    coords: dict[str, Any] = {"time": times}
    models = batch_axis(plan.model)
    if models is not None:
        coords[models.name] = models.values
    sizes = {**dict(zip(_sample_axes(state), state.sample_shape, strict=True)), **state.sizes}
    coords |= {name: np.arange(size) for name, size in sizes.items()} | state.labels
    for thing in (*plan.observe, *plan.integrals):
        coords.update(thing.coords)
    return coords


def _details(plan: Plan, state: State) -> dict[str, dict[str, Any]]:
    seen = {thing.name: state.notes(thing) for thing in plan.observe}
    sums = {
        thing.name: {"units": "", "long_name": f"integral over time of {thing.says or thing.name}"}
        for thing in plan.integrals
    }
    ends = said_of_stops(plan.stops, state)
    return {**state.details, **seen, **sums, **({"final_time": ends} if ends else {})}


def attributes_of(plan: Plan, state: State, arrays: dict[str, Any]) -> dict[str, Any]:
    """Model, state, numerics, versions, outcome and health, as plain data."""
    attributes: dict[str, Any] = {"label": plan.model.label}
    if is_traced(arrays, plan.model, state):
        return {**attributes, "outcome": "traced", "advice": "inside a JAX transformation"}
    lead = len(lead_axes(plan, state))
    finite = finite_members(state, arrays, lead)
    names = name_outcomes(arrays["outcome_code"], finite)
    health = {"finite": bool(np.all(finite)), **state.health(plan.model, arrays, lead)}
    counted = [name for name in COUNTS if name != "outcome_code" and name in arrays]
    health |= {name: int(np.sum(np.asarray(arrays[name]))) for name in counted}
    judged = state.judged(plan.model, names, arrays, plan.numerics.tolerance)
    outcome = count_outcomes(judged.names)
    return {
        **attributes,
        "model": describe(plan.model),
        **state.described(),
        "numerics": {
            **describe_numerics(plan),
            "adjoint": plan.adjoint.cost(plan.numerics.max_steps, moving_bytes(plan, state)),
            **state.described_numerics(),
        },
        "seed_data": describe(plan.key),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance(),
        "outcome": outcome,
        "advice": advise(outcome, judged.advice),
        **judged.facts,
        "health": health,
    }


def finite_members(state: State, arrays: dict[str, Any], lead: int) -> np.ndarray:
    """Which members of a batch ended with finite numbers."""
    last = arrays[f"final_{state.main}"]
    near = _near(last)
    return np.asarray(near.all(near.isfinite(last), axis=tuple(range(lead, np.ndim(last)))))


def describe_numerics(plan: Plan) -> dict[str, Any]:
    """Method, tolerances, clock and stops of a plan."""
    controller = plan.numerics.controller
    return {
        "method": plan.numerics.name,
        "rtol": _number(getattr(controller, "rtol", None)),
        "atol": _number(getattr(controller, "atol", None)),
        "dt": _number(plan.numerics.dt0),
        "max_steps": plan.numerics.max_steps,
        "clock": describe(plan.clock),
        "stops": [stop.says for stop in plan.stops],
        "t1": float(plan.horizon),
    }


def moving_bytes(plan: Plan, state: State) -> int:
    """The size of what moves, with its integrals, of all models and samples."""
    moving = jax.tree.leaves(eqx.filter_eval_shape(plan.start, state))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in moving)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def join(plan: Plan, state: State, pieces: list[Trajectory]) -> Trajectory:
    """One trajectory from consecutive segments, with the health of the whole."""
    whole = join_stored(pieces)
    whole.attributes = attributes_of(plan, state, whole.arrays)
    return whole


def join_stored(pieces: list[Trajectory]) -> Trajectory:
    """Arrays of consecutive segments put together; each holds the rows after the one before.

    Attributes are those of the last segment: its outcome is the outcome so far.
    """
    first, last = pieces[0], pieces[-1]
    arrays = dict(last.arrays)
    for name, dims in last.axes.items():
        if "time" in dims:
            parts = [np.asarray(piece.arrays[name]) for piece in pieces]
            arrays[name] = np.concatenate(parts, axis=dims.index("time"))
    for name in ("steps", "accepted_steps", "rejected_steps"):
        arrays[name] = np.sum([np.asarray(piece.arrays[name]) for piece in pieces], axis=0)
    arrays |= {name: v for name, v in first.arrays.items() if name.startswith("initial_")}
    times = [np.asarray(piece.coords["time"]) for piece in pieces]
    coords = {**last.coords, "time": np.concatenate(times)}
    return Trajectory(arrays, last.axes, coords, last.attributes, last.details)
