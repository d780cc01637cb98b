"""Runs, traces and sweeps made without computing: the arrays are drawn, the labels are real ones."""

import copy
import json

import numpy as np

from tokenflock import store
from tokenflock.results.names import RUN_FORMAT
from tokenflock.sweeps.layout import BlockResult, Layout, Variable
from tokenflock.sweeps.plan import parse_sweep
from tokenflock.sweeps.store import SweepStore
from tokenflock.trajectory import Trajectory

SPEC = {
    "title": "made",
    "says": "A run that nobody ran.",
    "model": {"name": "SA", "beta": 4.0},
    "tokens": {"law": "uniform", "d": 2, "n": 8, "seed": 1},
    "solve": {"t1": 4.0, "rtol": 1e-8, "atol": 1e-10, "seed": 0},
    "save": {"every": 1.0, "observe": ["energy"]},
}
SWEEP = """
title = "phase"
says = "A sweep that nobody ran."
[model]
name = "SA"
[tokens]
law = "uniform"
d = 2
n = 8
[solve]
t1 = 4.0
rtol = 1e-6
atol = 1e-8
[save]
every = 1.0
observe = ["energy"]
[sweep]
batch = 4
[sweep.axes]
beta = { from = 1.0, to = 5.0, count = 5 }
pair = { zip = { "tokens.n" = [8, 16], "tokens.law" = ["uniform", "hemisphere"] } }
seed = { seeds = 3 }
"""
FLAGS = {"flag_values": [-2, -1, 0, 1], "flag_meanings": "missing error finished step-limit"}
TIMES = np.linspace(0.0, 4.0, 5)


def made_spec(**changes):
    """The spec with leaves changed by path, `.` written as `__`."""
    spec = copy.deepcopy(SPEC)
    for name, value in changes.items():
        table, _, leaf = name.rpartition("__")
        (spec[table] if table else spec)[leaf] = value
    return spec


def made_attributes(spec, **more):
    return {
        "label": spec["model"]["name"],
        "created": "2026-11-16T01:38:32Z",
        "versions": {"tokenflock": "0.1.0"},
        "device": "cpu:cpu",
        "outcome": "finished",
        "advice": "reached t1",
        "health": {"finite": True, "steps": 12, "norm_drift": 1e-16},
        "id": "0123456789ab",
        "spec": spec,
        **more,
    }


def made_trajectory(draw=0, times=TIMES, attributes=None, **changes):
    """Numbers at a time depend on the draw and the time alone, not on which other times there are."""
    rows = [np.random.default_rng([draw, round(100 * t)]).normal(size=18) for t in times]
    rows = np.asarray(rows)
    return Trajectory(
        {
            "energy": rows[:, 0],
            "states": rows[:, 2:].reshape(-1, 8, 2),
            "steps": np.asarray(12),
            "final_energy": rows[-1, 0],
        },
        {
            "energy": ("time",),
            "states": ("time", "token", "coordinate"),
            "steps": (),
            "final_energy": (),
        },
        {"time": np.asarray(times), "token": np.arange(8), "coordinate": np.arange(2)},
        attributes or made_attributes(made_spec(**changes)),
        {"energy": {"long_name": "Interaction energy"}},
    )


def made_run(folder, seconds=1.5, **options):
    """A finished run folder."""
    store.write(made_trajectory(**options), folder / "trajectory.zarr")
    (folder / "summary.json").write_text(json.dumps({"seconds": seconds, "ok": True}))
    return folder


def made_trace(folder):
    labels = made_attributes(SPEC, trace={"model": {"name": "tiny"}, "tokens": [], "seconds": 2.0})
    del labels["spec"]
    return made_run(folder, attributes={**labels, "label": "tiny"}, seconds=None)


def made_label(folder, **changes):
    """Only what a catalogue reads of a run: cheap enough for a thousand."""
    content = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"format": RUN_FORMAT, **made_attributes(made_spec(**changes))},
    }
    (folder / "trajectory.zarr").mkdir(parents=True)
    (folder / "trajectory.zarr" / "zarr.json").write_text(json.dumps(content))
    return folder


def made_layout():
    return Layout(
        (
            Variable("energy", ("time",), (5,), "float64", np.nan, {"units": "1"}),
            Variable("steps", (), (), "int64", -1),
            Variable("outcome", (), (), "int8", -2, FLAGS),
        ),
        {"time": TIMES},
    )


def made_sweep(folder, text=SWEEP, blocks=None, failures=None, summary=True, shift=0.0):
    """A sweep whose energy is 1000 beta + 100 n + 10 seed + time, so that every number tells its place."""
    sweep = parse_sweep(text)
    SweepStore.create(folder, sweep, made_layout())
    chosen = range(sweep.grid.block_count) if blocks is None else blocks
    stored = write_blocks(folder, chosen, failures, shift)
    if summary:
        content = {"cells": sweep.grid.size, "failed": stored.journal.failed, "seconds": 3.0}
        (folder / "summary.json").write_text(json.dumps(content))
    return folder


def write_blocks(folder, blocks, failures=None, shift=0.0):
    """Commit some blocks of a sweep; failures are sentences by block and place in it."""
    stored = SweepStore(folder, parse_sweep((folder / "sweep.toml").read_text()), made_layout())
    with stored.lock():
        for block in map(stored.sweep.grid.block, blocks):
            stored.write(
                block, _result(stored.sweep, block, (failures or {}).get(block.index, {}), shift)
            )
    return stored


def _result(sweep, block, failures, shift):
    cells = list(block.cells())
    energy = np.asarray([energy_of(sweep, cell) + TIMES + shift for cell in cells])
    steps = np.asarray([sum(cell) for cell in cells])
    return BlockResult(
        {"energy": energy, "steps": steps, "outcome": np.zeros(len(cells), "int8")}, failures
    )


def energy_of(sweep, cell):
    settings = sweep.settings(cell)
    n = settings.get("tokens.n", 8)
    return 1000 * settings.get("model.beta", 0.0) + 100 * n + 10 * cell[-1]
