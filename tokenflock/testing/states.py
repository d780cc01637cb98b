"""Conformance of a state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics
from ..integrate import Save, solve
from ..states import State, as_state
from .suite import Findings, Suite, close

T1 = 0.25


def check_state(start: Any, model: Dynamics, dt: float | None = None) -> Findings:
    """A state, or whatever `solve` takes for one, under a model: how it starts, moves, is cut and is read.

    dt -- a step, for states that need fixed ones; adaptive steps are taken otherwise.
    """
    state = as_state(start)
    steps: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11} if dt is None else {"dt": dt}
    suite = Suite(state)
    suite.run("it takes this model", lambda: state.check(model, T1))
    suite.run("velocity has the shape of the numbers", lambda: _shapes(state, model))
    suite.run("retracting twice is retracting once", lambda: _retracted(state, model))
    suite.run("a run starts where it begins", lambda: _starts(start, model, steps))
    suite.run("half a run goes on as the whole", lambda: _goes_on(start, model, steps))
    suite.run("integrals of one are the time", lambda: _clock(start, model, steps))
    suite.run("compiled alike", lambda: _compiled(start, model, steps))
    return suite.findings


def _shapes(state: State, model: Dynamics) -> None:
    ready = state.settled(model, None, 2, True).prepared(model)
    y = ready.begin(model)
    rate = jax.eval_shape(lambda: ready.velocity(model, 0.0, y))
    same = jax.tree.map(lambda one, other: one.shape == other.shape, rate, y)
    assert all(jax.tree.leaves(same)), f"a velocity of {rate} for numbers of other shapes"


def _retracted(state: State, model: Dynamics) -> None:
    once = state.retracted(state.begin(model))
    for ours, theirs in zip(
        jax.tree.leaves(state.retracted(once)), jax.tree.leaves(once), strict=True
    ):
        close(ours, theirs, 1e-12, "retracted twice")


def _starts(start: Any, model: Dynamics, steps: dict[str, Any]) -> None:
    run = solve(model, start, T1, save=Save(every=T1, states=True), **steps)
    assert run.outcome == "finished", f"{run.outcome}: {run.advice}"
    first = run.array("states", time=0)
    kept = as_state(start).rows(as_state(start).begin(model), keep=True)["states"]
    close(first, kept, 1e-12, "the first row")
    for name, dims in run.axes.items():
        shape = np.shape(run.arrays[name])
        assert len(dims) == len(shape), f"{name} has the axes {dims} and the shape {shape}"


def _goes_on(start: Any, model: Dynamics, steps: dict[str, Any]) -> None:
    """Save times cut a run into segments, and change where adaptive steps end by rounding alone."""
    whole = solve(model, start, T1, save=Save(every=T1, states=True), **steps)
    cut = solve(model, start, T1, save=Save(every=T1 / 2, states=True), **steps)
    close(cut.array("states", time=-1), whole.array("states", time=-1), 1e-6, "the end")


def _clock(start: Any, model: Dynamics, steps: dict[str, Any]) -> None:
    run = solve(model, start, T1, integrate={"elapsed": lambda s: jnp.ones(())}, **steps)
    close(run.array("elapsed", time=-1), T1, 1e-10, "int 1 dt")


def _compiled(start: Any, model: Dynamics, steps: dict[str, Any]) -> None:
    plain = solve(model, start, T1, save=Save(every=T1, states=True), **steps)
    inside = jax.jit(
        lambda: solve(model, start, T1, save=Save(every=T1, states=True), **steps).array("states")
    )()
    close(inside[-1], plain.array("states", time=-1), 1e-8, "jit")
