"""From the arrays of a density solve to one labelled Trajectory."""

from __future__ import annotations

import time
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..density import Density
from ..describe import describe
from ..dynamics import has_beta_batch
from ..errors import require
from ..integrate.assemble import close_batch, coords_of, describe_numerics
from ..integrate.core import Segment, widened
from ..integrate.outcome import GOOD, advise, count_outcomes, name_outcomes
from ..observables import Observable, free_energy
from ..observables.naming import check_names
from ..provenance import provenance
from ..runtime import is_traced
from ..trajectory import Trajectory, attributes_on
from .solving import DensityPlan

# Kept at every save for the health of a run.
WATCHED = {
    "mass": ("1", "Total mass"),
    "lowest": ("1", "Smallest density, relative to the uniform law"),
    "tail": ("1", "Size of the finest scales of the discretisation"),
    "free_energy": ("1", "Energy minus temperature times int rho log rho"),
    "work": ("1", "Integral of the dissipation so far"),
}
# Beyond this the dissipation identity is broken: a first-order method with large steps stays below it.
LARGEST_DEFECT = 0.05
# Changes of the free energy below this many tolerances are not compared.
SILENCE = 1e3
COUNTS = {
    "steps": "num_steps",
    "accepted_steps": "num_accepted_steps",
    "rejected_steps": "num_rejected_steps",
}


def check_density_names(x0: Density, observe: tuple[Observable, ...]) -> None:
    """Refuse observables under the names of what a density keeps for its health, or of its axes."""
    # The free energy is kept in any case, and may be asked for.
    others = [thing for thing in observe if thing.name != free_energy.name]
    check_names(others, taken=(*WATCHED, *x0.on.axes))
    for thing in others:
        shared = [axis for axis in thing.coords if axis in x0.on.axes]
        require(
            not shared,
            f"{thing.name} has the axis {', '.join(shared)}, and so have the states of {x0.on}, with other "
            "values; read it off the states, or observe tokens drawn from the density",
        )


def from_density_segment(plan: DensityPlan, x0: Density, segment: Segment, t1: float) -> Trajectory:
    """Label the arrays of a segment."""
    lead = ("beta",) if has_beta_batch(plan.model) else ()
    arrays, times = _rows(segment, lead)
    ends = {f"final_{name}": value for name, value in segment.final_saved.items()}
    arrays |= {**ends, "final_state": segment.final.state, "final_work": segment.final.work}
    arrays.pop("final_states", None)
    arrays |= {"final_time": segment.final_time}
    arrays |= {"outcome_code": segment.outcome}
    arrays |= {name: segment.stats[counter] for name, counter in COUNTS.items()}
    inner = _inner_axes(plan, x0)
    axes = {name: (*lead, "time", *inner.get(name, ())) for name in segment.saved}
    axes |= {
        name: (*lead, *inner.get(name.removeprefix("final_"), ()))
        for name in arrays
        if name not in axes
    }
    axes["final_state"] = (*lead, *x0.on.axes)
    arrays["initial_state"], axes["initial_state"] = x0.state, x0.on.axes
    return Trajectory(
        arrays,
        axes,
        coords_of(plan, times, dict(zip(x0.on.axes, x0.on.shape, strict=True))),
        density_attributes(plan, x0, arrays, t1),
        _details(plan, x0),
        plan.model,
        density=x0.at(jnp.zeros_like(x0.state)),
    )


def _rows(segment: Segment, lead: tuple[str, ...]) -> tuple[dict[str, Any], Any]:
    """The saved rows that were reached, closed by the state where an early end came."""
    if is_traced(segment):
        return dict(segment.saved), segment.times.reshape(-1, segment.times.shape[-1])[0]
    times = np.asarray(segment.times)
    if not lead:
        done = np.isfinite(times) & (times <= float(segment.final_time))
        if np.all(done):
            return dict(segment.saved), times
        ends = {**segment.final_saved}
        rows = {
            name: np.concatenate([np.asarray(value)[done], np.asarray(ends[name])[None]])
            for name, value in segment.saved.items()
        }
        return rows, np.append(times[done], float(segment.final_time))
    reached: Any = np.isfinite(times)
    rows = {
        name: np.where(widened(reached, value), np.asarray(value), np.nan)
        for name, value in segment.saved.items()
    }
    return close_batch(rows, segment.final_saved, segment.final_time, np.min(times, axis=0))


def _inner_axes(plan: DensityPlan, x0: Density) -> dict[str, tuple[str, ...]]:
    return {"states": x0.on.axes, **{thing.name: thing.axes for thing in plan.observe}}


def _details(plan: DensityPlan, x0: Density) -> dict[str, dict[str, Any]]:
    known = {name: {"units": units, "long_name": says} for name, (units, says) in WATCHED.items()}
    return {**known, **{thing.name: attributes_on(thing, x0) for thing in plan.observe}}


def density_attributes(
    plan: DensityPlan, x0: Density, arrays: dict[str, Any], t1: float
) -> dict[str, Any]:
    """Model, discretisation, numerics, versions, outcome and health, as plain data."""
    attributes: dict[str, Any] = {"label": plan.model.label}
    if is_traced(arrays, plan.model, x0):
        return {**attributes, "outcome": "traced", "advice": "inside a JAX transformation"}
    inner = tuple(range(-len(x0.on.shape), 0))
    finite = np.all(np.isfinite(np.asarray(arrays["final_state"])), axis=inner)
    names = name_outcomes(arrays["outcome_code"], finite)
    health = _health(plan, x0, arrays)
    broken = _breaks_identity(plan, arrays) & np.isin(names, GOOD)
    own = {x0.on.lost_outcome: x0.on.advice()}
    if np.any(broken):
        own["unresolved"] = _identity_advice(health)
    outcome = count_outcomes(np.where(broken, "unresolved", names))
    return {
        **attributes,
        "model": describe(plan.model),
        "density": describe(x0.at(jnp.zeros_like(x0.state))),
        "numerics": describe_numerics(plan, t1),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance(),
        "outcome": outcome,
        "advice": advise(outcome, own),
        **({"identity_broken": broken.tolist()} if np.any(broken) else {}),
        "health": health,
    }


def _breaks_identity(plan: DensityPlan, arrays: dict[str, Any]) -> np.ndarray:
    """Of each beta by itself."""
    if "mass" not in arrays:
        return np.zeros(np.shape(arrays["outcome_code"]), dtype=bool)
    atol = getattr(plan.numerics.controller, "atol", None)
    pair = _identity(arrays, int(has_beta_batch(plan.model)))
    return identity_is_broken(*pair, 0.0 if atol is None else float(atol))


def _identity_advice(health: dict[str, Any]) -> str:
    return (
        "the free energy changed otherwise than its dissipation says, by "
        f"{health['dissipation_defect']:.0%} of the change: space or time is too coarse; use a larger "
        "discretisation, lower rtol and atol (or dt)"
    )


def _health(plan: DensityPlan, x0: Density, arrays: dict[str, Any]) -> dict[str, Any]:
    """Nothing yet, for a run that is killed before its first part is done."""
    if "mass" not in arrays:
        return {"finite": True, **dict.fromkeys(COUNTS, 0)}
    return {
        **density_health(arrays, int(has_beta_batch(plan.model))),
        **x0.on.last_words(arrays["final_time"], arrays["final_tail"]),
    }


def density_health(arrays: dict[str, Any], time_axis: int) -> dict[str, Any]:
    """Mass, positivity, resolution, and how well the dissipation identity was kept.

    At every save and at the end: of a batch of betas each has its own.
    """
    report: dict[str, Any] = {
        "finite": bool(np.all(np.isfinite(np.asarray(arrays["final_state"])))),
        "mass_drift": float(np.nanmax(np.abs(_to_the_end(arrays, "mass", time_axis) - 1.0))),
        "lowest_density": float(np.nanmin(_to_the_end(arrays, "lowest", time_axis))),
        "largest_tail": float(np.nanmax(_to_the_end(arrays, "tail", time_axis))),
        "dissipation_defect": _defect(*_identity(arrays, time_axis)),
    }
    for name in COUNTS:
        report[name] = int(np.sum(np.asarray(arrays[name])))
    return report


def _to_the_end(arrays: dict[str, Any], name: str, time_axis: int) -> np.ndarray:
    """What was saved, (batch, time), closed by what each member ended with."""
    rows = np.moveaxis(np.asarray(arrays[name], dtype=float), time_axis, -1)
    last = np.asarray(arrays[f"final_{name}"], dtype=float)
    return np.concatenate([rows, last[..., None]], axis=-1)


def _identity(arrays: dict[str, Any], time_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The free energy and the work, (batch, time)."""
    return (
        _to_the_end(arrays, "free_energy", time_axis),
        _to_the_end(arrays, "work", time_axis),
    )


def _is_known(energy: np.ndarray) -> bool:
    """Whether there is something to compare: some term has an energy, within the range of doubles."""
    rows = np.isfinite(energy)
    return bool(np.any(energy[rows])) and not np.any(np.isinf(energy))


def _defect(energy: np.ndarray, work: np.ndarray) -> float | None:
    """Largest difference between the change of the free energy and the work, over that change.

    Each beta by itself. None where there is nothing to compare.
    """
    if not _is_known(energy):
        return None
    change = energy - energy[..., :1]
    rounding = np.finfo(float).eps * np.nanmax(np.abs(energy), axis=-1)
    span = np.nanmax(np.abs(change), axis=-1) + rounding
    return float(np.nanmax(np.nanmax(np.abs(change - work), axis=-1) / span))


def identity_is_broken(energy: np.ndarray, work: np.ndarray, atol: float) -> np.ndarray:
    """Whether the free energy moved otherwise than its dissipation says, by more than steps explain.

    Of each member of a batch. A change below the solver's atol, or near the rounding of the energy
    itself, says nothing.
    """
    if not _is_known(energy):
        return np.zeros(energy.shape[:-1], dtype=bool)
    change = energy - energy[..., :1]
    quiet = SILENCE * (atol + np.finfo(float).eps * np.nanmax(np.abs(energy), axis=-1))
    allowed = LARGEST_DEFECT * np.nanmax(np.abs(change), axis=-1) + quiet
    return np.nanmax(np.abs(change - work), axis=-1) > allowed
