"""The engine's own run of a page's settings, streamed part by part. Only workers load this."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import ValidationError

from ..dynamics import Dynamics
from ..errors import InputError
from ..integrate.core import Segment
from ..lab.job import Job
from ..lab.parts import Part
from ..lab.segments import Log
from ..lab.sentences import explain
from ..lab.spec import RunSpec, build_model
from ..lab.tokens import build_tokens
from ..measure import Measure
from ..observables import energy
from ..observables.base import Snapshot
from ..outcomes import succeeded
from ..reduce import Dense
from ..results.strict_json import plain
from ..space import Sphere
from ..trajectory import Trajectory
from .packing import numbers, pack
from .page_limits import Limits
from .projection import CLUSTER_DISTANCE

# From here the engine may choose a reduction with a stated error bound (1e-10) below the tolerance.
MOST_DENSE = 1_024

# Of a field that jumps: with V = -I every follower is driven back to where its leader changes.
SLIDING = (
    "tokens slid along a jump of the hardmax, which no step is short enough to follow; choose layers, "
    "and the engine makes the same steps as the page"
)
STIFF = "the flow is stiff here; choose a shorter run or a smaller beta"

Send = Callable[..., None]


def stream(
    request: dict[str, Any], limits: Limits, send: Send, cancelled: Callable[[], bool]
) -> None:
    """Integrate and send: compiling, frames, and at the end done or cancelled."""
    began = time.perf_counter()
    send("compiling")
    spec, notes = resolve(request, limits)
    job = Job(spec)
    job.compile()
    log = Log(job, None)
    while log.may_go_on():
        if cancelled():
            send("cancelled")
            return
        part = job.parts[log.done]
        log.add(job.advance(log.state, part))
        assert log.last is not None
        send("frames", **frames(job, part, log.last), fraction=log.done / len(job.parts))
    run = log.whole()
    send(
        "done",
        outcome=run.outcome,
        advice=advice(spec, run),
        health=plain(run.health),
        seconds=round(time.perf_counter() - began, 3),
        notes=notes,
    )


def advice(spec: RunSpec, run: Trajectory) -> str:
    """How it ended: where a run broke off, how far it came and what a page can do about it."""
    if succeeded(run.outcome):
        return run.advice
    reached = f"it came {float(run.reached):.4g} of {spec.solve.t1:.4g} time units far"
    if run.outcome != "step-limit":
        return f"{reached}, then {run.advice}"
    if spec.model.name == "HardmaxFlow":
        return f"{reached}, then {SLIDING}"
    return f"{reached} in {spec.solve.max_steps} steps: {STIFF}"


def resolve(request: dict[str, Any], limits: Limits) -> tuple[RunSpec, list[str]]:
    """The engine's spec of a checked request, and notes on what was changed."""
    draft = _validated({**request["spec"], "solve": _solve(request)})
    start = build_tokens(draft.tokens)
    every, notes = _interval(request, draft.solve.fixed_step, start, limits)
    content = draft.model_dump(exclude_none=True)
    content["solve"]["reduction"] = "dense" if start.n <= MOST_DENSE else "auto"
    content["solve"]["max_steps"] = limits.steps
    content["save"] = {"every": every, "observe": _observables(draft, start)}
    return _validated(content), notes


def _validated(table: dict[str, Any]) -> RunSpec:
    try:
        return RunSpec.model_validate(table)
    except ValidationError as error:
        raise InputError(explain(error, table, "these settings")) from error


def _solve(request: dict[str, Any]) -> dict[str, Any]:
    """A flow without noise is solved to a tolerance; layers and noise are their steps."""
    solve = {**request["spec"]["solve"], "t1": request["t1"]}
    if solve["method"] == "layers" or "noise" in request["spec"]["model"]:
        return solve
    del solve["dt"]
    return {**solve, "method": "adaptive", "rtol": request["rtol"], "atol": request["atol"]}


def _interval(
    request: dict[str, Any], step: float | None, start: Measure, limits: Limits
) -> tuple[float, list[str]]:
    """The interval between frames: what was asked, or longer where that is too many numbers."""
    t1, every = request["t1"], request["every"]
    most = max(2, min(limits.frames, limits.numbers // (start.n * start.d)))
    kept = max(every, t1 / (most - 1))
    if step is not None:
        kept = step * math.ceil(kept / step - 1e-9)
    if kept <= every * (1 + 1e-9):
        return kept, []
    whole = "" if step is None else "whole steps and "
    return kept, [f"frames are {kept:.4g} apart, not {every:.4g}: {whole}at most {most} are sent"]


def _observables(draft: RunSpec, start: Measure) -> list[Any]:
    on_sphere = isinstance(start.space, Sphere)
    linked = {"link": "spacing"} if on_sphere else {"distance": CLUSTER_DISTANCE}
    clusters = {"name": "clusters", **linked}
    model = build_model(draft.model, start.d)
    return [*(["energy"] if _has_energy(model, start) else []), clusters, "order_parameter"]


def _has_energy(model: Dynamics, start: Measure) -> bool:
    """Whether this model has an energy: asked of the observable, with nothing computed."""
    try:
        jax.eval_shape(lambda: energy(Snapshot(jnp.zeros(()), start, model, Dense())))
    except InputError:
        return False
    return True


def frames(job: Job, part: Part, segment: Segment) -> dict[str, Any]:
    """The saved rows of a finished part; a run that ended early closes with its last state."""
    times = np.asarray(segment.times)
    rows = part.keep & np.isfinite(times) & (times <= float(segment.final_time))
    shown = {name: np.asarray(value)[rows] for name, value in segment.saved.items()}
    clock = times[rows]
    if segment.outcome != 0 and (len(clock) == 0 or clock[-1] < float(segment.final_time)):
        ends = segment.final_saved
        shown = {
            name: np.concatenate([v, np.asarray(ends[name])[None]]) for name, v in shown.items()
        }
        clock = np.append(clock, float(segment.final_time))
    points, radii = shown.pop("states"), shown.pop("radii", None)
    if isinstance(job.x0.space, Sphere):
        shown["mean_cosine"] = mean_cosine(points)
    content: dict[str, Any] = {"times": numbers(clock), "points": pack(points)}
    if radii is not None:
        content["radii"] = pack(radii)
    return {**content, "series": {name: numbers(values) for name, values in shown.items()}}


def mean_cosine(points: np.ndarray) -> np.ndarray:
    """Mean of <x_i, x_j> over i != j, from |sum x_i|^2 = n + sum_{i != j} <x_i, x_j>. O(n d)."""
    n = points.shape[-2]
    total = np.sum(points.sum(axis=-2) ** 2, axis=-1)
    return (total - n) / (n * (n - 1))
