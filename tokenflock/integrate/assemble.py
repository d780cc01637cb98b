"""From the arrays of compiled segments to one labelled Trajectory."""

from __future__ import annotations

import functools
import time
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..describe import describe
from ..dynamics import Clusters, State, first_beta, has_beta_batch
from ..health import health_report
from ..measure import Measure
from ..observables.base import Observable, Snapshot
from ..provenance import provenance
from ..runtime import is_traced
from ..trajectory import Trajectory
from .core import Plan, Segment, widened
from .outcome import advise, count_outcomes, name_outcomes

STATE_AXES = {"states": ("token", "coordinate"), "radii": ("token",), "owners": ("token",)}
# What a saved array ends with, where that is not final_NAME.
ENDS_OF = {"states": "final_points"}
ENDS = {"final_masses": ("token",)}
COUNTS = ("owners", "outcome_code", "steps", "accepted_steps", "rejected_steps")


def from_segment(plan: Plan, x0: Measure, segment: Segment) -> Trajectory:
    """Label the arrays of a segment; `x0` has the sample axes the caller knows."""
    lead = lead_axes(plan, x0)
    arrays = {**segment.saved, **_ends(x0, segment)}
    shape = _lead_shape(plan, x0)
    arrays = {name: _restore(value, shape, len(lead), x0) for name, value in arrays.items()}
    times = segment.times
    if not lead and not is_traced(segment):
        arrays, times = _trim(arrays, segment)
    else:
        times = times.reshape(-1, times.shape[-1])[0] if is_traced(times) else _all_times(times)
        arrays.update(_without_rows_not_reached(arrays, segment, shape))
        if not is_traced(segment):
            rows = {name: arrays[name] for name in segment.saved}
            ends = {name: arrays[ENDS_OF.get(name, f"final_{name}")] for name in rows}
            rows, times = close_batch(rows, ends, arrays["final_time"], times)
            arrays.update(rows)
    if not is_traced(segment, plan.model, x0):
        arrays = _restore_counts(plan, x0, arrays)
    axes = _axes(plan, lead, arrays)
    arrays["initial_points"] = x0.points
    axes["initial_points"] = (*_sample_axes(x0), "token", "coordinate")
    if x0.radii is not None:
        arrays["initial_radii"] = x0.radii
        axes["initial_radii"] = (*_sample_axes(x0), "token")
    return Trajectory(
        arrays,
        axes,
        _coords(plan, x0, times),
        attributes_of(plan, x0, arrays, lead),
        {thing.name: thing.attributes_on(x0) for thing in plan.observe},
        plan.model,
        _blank(x0),
    )


def _blank(x0: Measure) -> Measure:
    """The measure without its points: space, weights, order."""
    return x0.at(jnp.zeros((x0.n, x0.d)))


def lead_axes(plan: Plan, x0: Measure) -> tuple[str, ...]:
    """Names of the batch axes: beta, then samples."""
    return (("beta",) if has_beta_batch(plan.model) else ()) + _sample_axes(x0)


def _sample_axes(x0: Measure) -> tuple[str, ...]:
    count = len(x0.batch_shape)
    return ("sample",) if count == 1 else tuple(f"sample_{index}" for index in range(count))


def _lead_shape(plan: Plan, x0: Measure) -> tuple[int, ...]:
    betas = next((p.beta.shape for p in plan.model.attentions() if p.beta.ndim == 1), ())
    return (*betas, *x0.batch_shape)


def _ends(x0: Measure, segment: Segment) -> dict[str, Any]:
    final: State = segment.final
    ends = {
        "final_points": final.points,
        "final_time": segment.final_time,
        "outcome_code": segment.outcome,
        "steps": segment.stats["num_steps"],
        "accepted_steps": segment.stats["num_accepted_steps"],
        "rejected_steps": segment.stats["num_rejected_steps"],
        **{f"final_{name}": value for name, value in segment.final_saved.items()},
    }
    ends.pop("final_states", None)
    if final.radii is not None:
        ends["final_radii"] = final.radii
    if final.clusters is not None:
        ends["final_masses"] = final.clusters.masses
    return ends


def _restore(value: Any, shape: tuple[int, ...], lead: int, x0: Measure) -> Any:
    """Undo the flattening of several sample axes."""
    flat = lead - len(x0.batch_shape) + min(len(x0.batch_shape), 1)
    restored = (*shape, *value.shape[flat:])
    return value if value.shape == restored else value.reshape(restored)


def _trim(arrays: dict[str, Any], segment: Segment) -> tuple[dict[str, Any], np.ndarray]:
    """Drop rows after an early end and close with the state where the run ended."""
    times = np.asarray(segment.times)
    done = np.isfinite(times) & (times <= float(segment.final_time))
    rows = int(np.sum(done))
    if rows == len(times):
        return arrays, times
    trimmed = dict(arrays)
    for name in segment.saved:
        last = arrays[ENDS_OF.get(name, f"final_{name}")]
        trimmed[name] = np.concatenate([arrays[name][:rows], np.asarray(last)[None]])
    return trimmed, np.append(times[:rows], float(segment.final_time))


def _without_rows_not_reached(
    arrays: dict[str, Any], segment: Segment, shape: tuple[int, ...]
) -> dict[str, Any]:
    """NaN in the rows after a sample's own end, which diffrax marks by an infinite time."""
    if is_traced(segment):
        return {}
    missing = np.isinf(segment.times).reshape(*shape, -1)
    return {
        name: np.where(widened(missing, arrays[name]), np.nan, arrays[name])
        for name in segment.saved
    }


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


def _restore_counts(plan: Plan, x0: Measure, arrays: dict[str, Any]) -> dict[str, Any]:
    """Whole numbers and truth values as such again, unless an early end left holes."""
    observed = {thing.name: thing for thing in plan.observe}

    @functools.cache
    def kind(name: str) -> Any:
        return int if name in COUNTS else value_dtype(observed[name], plan, x0)

    def restore(name: str, value: Any) -> Any:
        quantity = name.removeprefix("final_")
        # Tracing an observable for its type takes milliseconds; most show at a glance that they are
        # no counts.
        if (quantity not in COUNTS and quantity not in observed) or not _whole(value):
            return value
        floating = jnp.issubdtype(kind(quantity), jnp.floating)
        return value if floating else value.astype(kind(quantity))

    return {name: restore(name, value) for name, value in arrays.items()}


def _whole(value: Any) -> bool:
    """Whether every entry is a finite whole number."""
    entries = np.asarray(value)
    return bool(np.all(np.isfinite(entries)) and np.all(entries == np.rint(entries)))


def value_dtype(thing: Observable, plan: Plan, x0: Measure) -> Any:
    """Type of an observable's value, without computing it."""
    one = x0.at(jnp.zeros((x0.n, x0.d)), None if x0.radii is None else jnp.ones(x0.n))
    snapshot = Snapshot(jnp.zeros(()), one, first_beta(plan.model), plan.reduction)
    return eqx.filter_eval_shape(thing, snapshot).dtype


def _all_times(times: Any) -> np.ndarray:
    """The save times of a batch: rows that ended early hold infinity after their end."""
    table = np.asarray(times)
    return np.min(table, axis=tuple(range(table.ndim - 1)))


def _axes(plan: Plan, lead: tuple[str, ...], arrays: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    inner = {**STATE_AXES, **{thing.name: thing.axes for thing in plan.observe}}
    axes: dict[str, tuple[str, ...]] = {}
    for name in arrays:
        if name in inner:
            axes[name] = (*lead, "time", *inner[name])
        elif name == "final_points":
            axes[name] = (*lead, "token", "coordinate")
        else:
            axes[name] = (*lead, *inner.get(name.removeprefix("final_"), ENDS.get(name, ())))
    return axes


def _coords(plan: Plan, x0: Measure, times: Any) -> dict[str, Any]:
    sizes = dict(zip(_sample_axes(x0), x0.batch_shape, strict=True))
    return coords_of(plan, times, {**sizes, "token": x0.n, "coordinate": x0.d})


def coords_of(plan: Any, times: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Labels of the axes: times, betas, indices along axes of these sizes, and what observables bring."""
    coords: dict[str, Any] = {"time": times}
    for part in plan.model.attentions():
        if part.beta.ndim == 1:
            coords["beta"] = part.beta if is_traced(part.beta) else np.asarray(part.beta)
    coords |= {name: np.arange(size) for name, size in sizes.items()}
    for thing in plan.observe:
        coords.update(thing.coords)
    return coords


def attributes_of(
    plan: Plan, x0: Measure, arrays: dict[str, Any], lead: tuple[str, ...]
) -> dict[str, Any]:
    """Model, numerics, versions, outcome and health, as plain data."""
    attributes: dict[str, Any] = {"label": plan.model.label}
    if is_traced(arrays, plan.model, x0):
        return {**attributes, "outcome": "traced", "advice": "inside a JAX transformation"}
    finite = np.all(np.isfinite(np.asarray(arrays["final_points"])), axis=(-1, -2))
    outcome = count_outcomes(name_outcomes(arrays["outcome_code"], finite))
    return {
        **attributes,
        "model": describe(plan.model),
        "measure": describe(_blank(x0)),
        "numerics": {
            **describe_numerics(plan, float(plan.horizon)),
            "merge_radius": getattr(getattr(plan.numerics.stepper, "merge", None), "radius", None),
            "reduction": describe(plan.reduction),
        },
        "seed_data": describe(plan.key),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance(),
        "outcome": outcome,
        "advice": advise(outcome),
        "health": health_report(plan.model, x0, plan.reduction, arrays, len(lead)),
    }


def describe_numerics(plan: Any, t1: float) -> dict[str, Any]:
    """Method, tolerances, clock and stops of a plan, for tokens and for densities alike."""
    controller = plan.numerics.controller
    return {
        "method": plan.numerics.name,
        "rtol": _number(getattr(controller, "rtol", None)),
        "atol": _number(getattr(controller, "atol", None)),
        "dt": _number(plan.numerics.dt0),
        "max_steps": plan.numerics.max_steps,
        "clock": describe(plan.clock),
        "stops": [stop.says for stop in plan.stops],
        "t1": float(t1),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def join(plan: Plan, x0: Measure, pieces: list[Trajectory]) -> Trajectory:
    """One trajectory from consecutive segments, with the health of the whole."""
    whole = join_stored(pieces)
    whole.attributes = attributes_of(plan, x0, whole.arrays, lead_axes(plan, x0))
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


def final_state(segment_arrays: dict[str, Any]) -> State:
    """The state a stored segment ended with, to continue from."""

    def pick(name: str) -> Any:
        value = segment_arrays.get(name)
        return None if value is None else jnp.asarray(value)

    masses = pick("final_masses")
    owners = pick("final_owners")
    merged = None if masses is None else Clusters(masses, owners.astype(masses.dtype))
    return State(pick("final_points"), pick("final_radii"), merged)
