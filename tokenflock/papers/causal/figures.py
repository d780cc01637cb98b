"""2411.04990v2: Clustering in causal attention masking."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from ...integrate import Save, solve
from ...ledger.figure import FigureJob
from ...measure import Measure
from ...models import CausalSA
from ...observables import (
    Observable,
    Snapshot,
    cluster_labels,
    renyi_centre_mask,
    renyi_centres,
    strong_centre_mask,
    strong_centres,
)
from ...plot.key import mark
from ...plot.style import INK, PALETTE, REST
from ...plot.views import CircleView, cluster_colours
from ...random_weights import Ginibre, RandomWeights
from ...reduce import Dense
from ...space import Sphere
from ...starts import uniform
from ...theory import expected_renyi_centres, expected_strong_centres
from ...trajectory import Trajectory
from . import PAPER

# Angle that links tokens into the clusters which colour them.
LINK = 0.05
KINDS = {"strong": strong_centres, "Rényi": renyi_centres}


@PAPER.figure(
    "renyi-centres",
    title="Tokens gather at the centres",
    shows="strong centres (farther than 4 beta^{-1/2} from every earlier token) stand still and at the end "
    "every token lies within beta^{-1/2} of one; Rényi centres that are not strong join them. The "
    "mean numbers of centres follow pi/delta (strong) and 0.7476 * 2 pi/delta (Rényi)",
    quick={
        "n": 200,
        "beta": 64.0,
        "c": 4.0,
        "snapshots": (0.0, 3.0, 30.0, 300.0),
        "times": 200,
        "deltas": (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8),
        "tokens": 2000,
        "samples": 16,
    },
    paper={"tokens": 6000, "samples": 200},
)
def centres(job: FigureJob) -> xr.Dataset:
    """One causal run on the circle with its centres at t = 0, and centre counts of random tokens."""
    run = _gather(job)
    job.report(0.4)
    delta = job.c * job.beta**-0.5
    start = np.asarray(run.states)[0]
    masks = {name: np.asarray(run.array(f"{name}_centre_mask"))[0] for name in ("renyi", "strong")}
    moved = np.asarray(run.states)[:, masks["strong"]] - start[masks["strong"]]
    shown = [int(np.argmin(np.abs(np.asarray(run.time) - t))) for t in job.snapshots]
    counts = np.zeros((len(KINDS), len(job.deltas), job.samples))
    tokens = uniform(Sphere(2), job.tokens, job.seed + 1, samples=job.samples)
    for column, distance in enumerate(job.deltas):
        for row, kind in enumerate(KINDS.values()):
            counts[row, column] = np.asarray(count_centres(kind(distance), tokens))
        job.report(0.4 + 0.6 * (column + 1) / len(job.deltas))
    return xr.Dataset(
        {
            "tokens": (("snapshot", "token", "coordinate"), np.asarray(run.states)[shown]),
            "cluster": (("token",), np.asarray(run.array("cluster_labels"))[-1]),
            "renyi": (("token",), masks["renyi"]),
            "strong": (("token",), masks["strong"]),
            "near": (("time",), _share_near(run, start[masks["strong"]], job.beta**-0.5)),
            "moved": (("time",), np.linalg.norm(moved, axis=-1).max(axis=-1)),
            "count": (("kind", "delta", "sample"), counts),
        },
        coords={
            "snapshot": np.asarray(run.time)[shown],
            "time": np.asarray(run.time),
            "kind": list(KINDS),
            "delta": list(job.deltas),
        },
        attrs={"beta": job.beta, "radius": delta, "count_tokens": job.tokens},
    )


def _gather(job: FigureJob) -> Trajectory:
    delta = job.c * job.beta**-0.5
    end = max(job.snapshots)
    times = np.union1d(np.geomspace(end / 3000, end, job.times), job.snapshots)
    return solve(
        CausalSA(job.beta),
        uniform(Sphere(2), job.n, job.seed),
        end,
        rtol=1e-7,
        atol=1e-9,
        save=Save(
            at=times,
            states=True,
            observe=[renyi_centre_mask(delta), strong_centre_mask(delta), cluster_labels(LINK)],
        ),
    )


def _share_near(run: Trajectory, places: np.ndarray, radius: float) -> np.ndarray:
    """Fraction of tokens within `radius` of one of the places, by time."""
    cosine = np.max(np.asarray(run.states) @ places.T, axis=-1)
    return np.mean(cosine >= np.cos(radius), axis=-1)


@eqx.filter_jit
def count_centres(kind: Observable, tokens: Measure) -> Array:
    """The observable for every sample of the tokens, which need not move."""

    def one(points: Array) -> Array:
        return kind(Snapshot(jnp.zeros(()), tokens.at(points), CausalSA(1.0), Dense()))

    return jax.vmap(one)(tokens.points)


@centres.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.0, 4.8), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.25))
    panels = upper.subplots(1, data.sizes["snapshot"])
    colours = cluster_colours(data.cluster.values)
    for axes, (time, tokens) in zip(
        panels, zip(data.snapshot.values, data.tokens.values, strict=True), strict=True
    ):
        CircleView(axes, data.tokens.values, colours).show(tokens)
        _mark_centres(axes, data)
        axes.set_title(f"$t={time:g}$")
    counts, near = lower.subplots(1, 2)
    _draw_counts(counts, data)
    near.plot(data.time[1:], data.near[1:], color=INK, lw=1.5)
    near.set(xscale="log", xlabel="$t$", ylim=(0, 1.03))
    near.set_ylabel("tokens within $\\beta^{-1/2}$\nof a strong centre")
    key = [
        mark("*", "strong centre at $t=0$", ms=6),
        mark("o", "other Rényi centre", mfc="none"),
        mark("o", "token, a colour for each final cluster", REST),
    ]
    upper.legend(handles=key, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _mark_centres(axes: Any, data: xr.Dataset) -> None:
    """Marks inside the circle at the places the centres have at t = 0."""
    start = 0.84 * data.tokens.values[0]
    strong, other = data.strong.values, data.renyi.values & ~data.strong.values
    axes.scatter(*start[other].T, s=22, marker="o", facecolors="none", edgecolors=INK, lw=0.9)
    axes.scatter(*start[strong].T, s=30, marker="*", color=INK, lw=0)


def _draw_counts(axes: Any, data: xr.Dataset) -> None:
    delta = data.delta.values
    fine = np.geomspace(delta[0], delta[-1], 100)
    theory = {
        "strong": expected_strong_centres(fine, 2, data.attrs["count_tokens"]),
        "Rényi": expected_renyi_centres(fine),
    }
    marks = {"strong": ("*", PALETTE[0]), "Rényi": ("o", PALETTE[1])}
    for name in data.kind.values:
        sample = data["count"].sel(kind=name)
        error = 2 * sample.std("sample") / np.sqrt(sample.sizes["sample"])
        mark, colour = marks[str(name)]
        axes.plot(fine, theory[str(name)], color=colour, lw=1.0, label="expected number")
        axes.errorbar(
            delta,
            sample.mean("sample"),
            yerr=error,
            fmt=mark,
            ms=5.5,
            mfc="none" if mark == "o" else colour,
            color=colour,
            capsize=2,
            label=f"{name} centres",
        )
    axes.axvline(data.attrs["radius"], color=REST, lw=0.9, ls=":", label=r"$\delta$ above")
    axes.set(xscale="log", yscale="log", xlabel=r"$\delta$", ylabel="number of centres")
    for axis, ticks in ((axes.xaxis, (0.1, 0.2, 0.4, 0.8)), (axes.yaxis, (5, 10, 20, 40))):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.legend(loc="lower left", fontsize=8)


@PAPER.figure(
    "collapse",
    title="Every token goes to the first",
    shows="with V = I and random Q, K all tokens of a causal sequence converge to the place x_1(0) of the "
    "first one, each along its own transient; the time to come within 1e-2 varies from draw to draw, "
    "10 to 30 for most with entries N(0, 1/d)",
    quick={"n": 8, "d": 3, "beta": 2.0, "samples": 20, "end": 40.0, "times": 161, "level": 1e-2},
    paper={"samples": 100},
)
def collapse(job: FigureJob) -> xr.Dataset:
    """|x_k(t) - x_1(0)| for every token and every draw of Q and K (theorem 4.1)."""
    law = Ginibre(job.d**-0.5)
    weights = RandomWeights(d=job.d, seed=job.seed, Q=law, K=law, per="sample")
    times = np.linspace(0.0, job.end, job.times)
    run = solve(
        CausalSA(job.beta, weights),
        uniform(Sphere(job.d), job.n, job.seed, samples=job.samples),
        job.end,
        rtol=1e-9,
        atol=1e-12,
        save=Save(at=times, states=True),
    )
    states = np.asarray(run.array("states"))
    distance = np.linalg.norm(states - states[:, :1, :1], axis=-1)
    return xr.Dataset(
        {"distance": (("sample", "time", "token"), distance)},
        coords={"time": times, "token": np.arange(1, job.n + 1)},
        attrs={"level": job.level},
    )


def times_to(data: xr.Dataset) -> np.ndarray:
    """First saved time from which all tokens of a sample stay within the level (inf if none)."""
    worst = data.distance.max("token").values
    last = [np.flatnonzero(row >= data.attrs["level"])[-1] + 1 for row in worst]
    return np.append(data.time.values, np.inf)[last]


@collapse.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (one, many) = plt.subplots(1, 2, figsize=(6.8, 2.8), sharey=True, layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, data.sizes["token"] - 1))
    for token, colour in zip(data.token.values[1:], colours, strict=True):
        line = data.distance[0].sel(token=token)
        one.plot(data.time, line, color=colour, lw=1.2, label=f"{token}")
    one.set(xlabel="$t$", ylabel="$|x_k(t)-x_1(0)|$", yscale="log", title="one draw of $Q$, $K$")
    one.legend(title="$k$", ncols=2, loc="upper right", fontsize=7, handlelength=1.2)
    many.plot(data.time, data.distance.max("token").T, color=PALETTE[0], lw=0.7, alpha=0.6)
    level = data.attrs["level"]
    many.axhline(level, color=INK, lw=0.8, ls=":", label=f"{level:g}")
    arrival = times_to(data)
    many.plot(arrival, np.full(arrival.shape, level), "|", color=INK, ms=7, label="first below it")
    many.legend(fontsize=7, loc="lower left")
    many.set(xlabel="$t$", ylabel=r"$\max_k|x_k(t)-x_1(0)|$")
    many.set_title(f"{data.sizes['sample']} draws")
    many.set_ylim(1e-8, 3)
    many.tick_params(labelleft=True)
    return figure
