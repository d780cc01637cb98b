"""Figures 3 and 4: the (t, beta) phase diagrams, and the circle seen at two temperatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from .... import theory
from ....integrate import Save, solve
from ....ledger.figure import FigureJob
from ....measure import Measure
from ....models import SA
from ....observables import clusters, pair_fraction
from ....plot.style import INK, PALETTE
from ....plot.views import CircleView
from ....space import Sphere
from ....starts import uniform
from ....weights import Weights
from .. import PAPER

DELTA = 1e-3
# At the angle of <x, y> = 1 - DELTA a pair counts as one point, in the diagram and in the circles.
SAME_ANGLE = float(np.arccos(1 - DELTA))
# Samples are integrated together while beta x samples x n x d stays below this (256 MB a copy).
MOST_NUMBERS = 2**25


def phase_diagram(job: FigureJob, x0: Measure, weights: Weights | None = None) -> np.ndarray:
    """P(<x_i, x_j>(t) >= 1 - delta) over pairs and samples, (beta, time)."""
    betas = np.linspace(job.beta_low, job.beta_high, job.betas)
    save = Save(at=np.linspace(0.0, job.end, job.times), observe=[pair_fraction(DELTA)])
    samples = x0.batch_shape[0]
    together = max(1, MOST_NUMBERS // (job.betas * x0.n * x0.d))
    total = np.zeros((job.betas, job.times))
    for first in range(0, samples, together):
        part = Measure(x0.space, x0.points[first : first + together])
        run = solve(SA(betas, weights), part, job.end, rtol=1e-6, atol=1e-8, save=save)
        total += run["pair_fraction"].sum("sample").transpose("beta", "time").values
    return total / samples


def in_own_span(x0: Measure) -> Measure:
    """The same tokens in n coordinates where n < d: an orthonormal basis of what they span.

    SA with Q = K = V = I commutes with rotations and never leaves that span, so all inner products, and
    with them the diagram, are those of the full space, at the cost of dimension n.
    """
    if x0.d <= x0.n:
        return x0
    triangular = np.linalg.qr(np.swapaxes(np.asarray(x0.points), -1, -2), mode="r")
    return Measure(Sphere(x0.n), np.swapaxes(triangular, -1, -2))


def collapse_curve(job: FigureJob, betas: np.ndarray) -> np.ndarray:
    """The time at which gamma_beta(t) = 1 - delta from the orthogonal start, for the same n."""
    return np.asarray(theory.equiangular_time(1 - DELTA, job.n, betas))


@PAPER.figure(
    "fig-3",
    title="Phase diagrams in time and inverse temperature",
    shows="as d grows the boundary of the clustered phase (bright) settles on the curve "
    "gamma_beta(t) = 1 - delta (dashed, same n); for d = 2 it lies far to the right of it: at "
    "t = 30 only small beta has brought all pairs together, larger beta rests in several clusters",
    quick={
        "n": 32,
        "dims": (2, 8, 32, 128, 512, 1024),
        "samples": (16, 6, 2, 2, 2, 2),
        "betas": 45,
        "beta_low": 0.1,
        "beta_high": 9.0,
        "times": 121,
        "end": 30.0,
    },
    paper={"samples": (1024,) * 6, "betas": 90, "times": 200},
)
def phase_diagrams(job: FigureJob) -> xr.Dataset:
    """The fraction of pairs closer than delta, by dimension, beta and time."""
    betas = np.linspace(job.beta_low, job.beta_high, job.betas)
    panels = []
    for index, (d, samples) in enumerate(zip(job.dims, job.samples, strict=True)):
        x0 = uniform(Sphere(d), job.n, job.seed, samples=samples)
        panels.append(phase_diagram(job, in_own_span(x0)))
        job.report((index + 1) / len(job.dims))
    return xr.Dataset(
        {
            "probability": (("d", "beta", "time"), np.stack(panels)),
            "collapse_time": ("beta", collapse_curve(job, betas)),
        },
        coords={
            "d": list(job.dims),
            "starts": ("d", list(job.samples)),
            "beta": betas,
            "time": np.linspace(0.0, job.end, job.times),
        },
        attrs={"n": job.n, "delta": DELTA},
    )


@phase_diagrams.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    columns = min(3, len(data.d))
    rows = -(-len(data.d) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(7.0, 2.3 * rows + 0.3), sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    image = None
    for axes, d in zip(panels.flat, data.d.values, strict=False):
        image = paint(axes, data, data.probability.sel(d=d))
        axes.set_title(f"$d={d}$, {int(data.starts.sel(d=d))} starts", fontsize=8)
    label_edges(panels)
    name_the_curve(figure, axes, f"SA, $n={data.attrs['n']}$")
    figure.colorbar(image, ax=panels, label=share_label(data), shrink=0.8)
    return figure


def label_edges(panels: Any) -> None:
    """t below the lowest panels and beta beside the leftmost."""
    for axes in panels[-1]:
        axes.set_xlabel("$t$")
    for axes in panels[:, 0]:
        axes.set_ylabel(r"$\beta$")


def share_label(data: xr.Dataset) -> str:
    """What the colours of a phase diagram mean."""
    return rf"$\mathbb{{P}}(\langle x_i,x_j\rangle \geq 1-{data.attrs['delta']:g})$"


def name_the_curve(figure: Any, axes: Any, setting: str) -> None:
    """A legend above the panels for the dashed curve in them, and what all panels have in common."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", title=setting)


def paint(axes: Any, data: xr.Dataset, probability: xr.DataArray) -> Any:
    """One phase diagram, straight between the betas and times computed, with the theoretical curve."""
    image = axes.pcolormesh(
        data.time, data.beta, probability, vmin=0, vmax=1, cmap="cividis", rasterized=True,
        shading="gouraud",
    )  # fmt: skip
    axes.plot(data.collapse_time, data.beta, color="white", lw=2.2)
    label = r"$\gamma_\beta(t)=1-\delta$: the limit of large $d$"
    axes.plot(data.collapse_time, data.beta, color=INK, lw=1.2, ls="--", label=label)
    axes.set_xlim(0, float(data.time[-1]))
    return image


@PAPER.figure(
    "fig-4",
    title="The circle at two temperatures",
    shows="long before they form one cluster, tokens on the circle rest in a few: two or three at "
    "beta = 4, three or four at beta = 9, and they still do at t = 30",
    quick={
        "n": 32,
        "samples": 16,
        "betas": 37,
        "beta_low": 0.1,
        "beta_high": 9.0,
        "times": 121,
        "end": 30.0,
        "shown": (4.0, 9.0),
        "moments": (2.5, 18.0, 30.0),
    },
    paper={"samples": 1024, "betas": 90, "times": 200},
)
def circle_zoom(job: FigureJob) -> xr.Dataset:
    """The d = 2 diagram, and the tokens of one start at the shown betas and moments."""
    betas = np.linspace(job.beta_low, job.beta_high, job.betas)
    x0 = uniform(Sphere(2), job.n, job.seed, samples=job.samples)
    probability = phase_diagram(job, x0)
    job.report(0.7)
    run = solve(
        SA(np.asarray(job.shown)),
        uniform(Sphere(2), job.n, job.seed),
        max(job.moments),
        rtol=1e-8,
        atol=1e-11,
        save=Save(at=np.asarray(job.moments), states=True, observe=[clusters(angle=SAME_ANGLE)]),
    )
    # The run also looked at t = 0.
    states, counts = np.asarray(run.array("states"))[:, 1:], run["clusters"].values[:, 1:]
    return xr.Dataset(
        {
            "probability": (("beta", "time"), probability),
            "collapse_time": ("beta", collapse_curve(job, betas)),
            "tokens": (("shown", "moment", "token", "coordinate"), states),
            "clusters": (("shown", "moment"), counts),
        },
        coords={
            "beta": betas,
            "time": np.linspace(0.0, job.end, job.times),
            "shown": list(job.shown),
            "moment": list(job.moments),
        },
        attrs={"n": job.n, "delta": DELTA},
    )


@circle_zoom.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.0, 3.3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.15))
    axes = left.subplots()
    image = paint(axes, data, data.probability)
    title = rf"SA, $d=2$, $n={data.attrs['n']}$; dashed: $\gamma_\beta(t)=1-\delta$"
    axes.set(xlabel="$t$", ylabel=r"$\beta$", title=title)
    left.colorbar(image, ax=axes, label=share_label(data), location="bottom", shrink=0.9)
    for beta in data.shown.values:
        axes.axhline(beta, color="white", lw=0.8, ls=":")
    circles = right.subplots(len(data.shown), len(data.moment))
    for row, beta in zip(circles, data.shown.values, strict=True):
        for panel, moment in zip(row, data.moment.values, strict=True):
            tokens = data.tokens.sel(shown=beta, moment=moment).values
            colours = np.full(len(tokens), PALETTE[0])
            CircleView(panel, tokens[None], colours).show(tokens)
            axes.plot(moment, beta, "o", ms=4, mfc="white", mec=INK, clip_on=False, zorder=4)
            count = int(data.clusters.sel(shown=beta, moment=moment))
            panel.set_title(f"$t={moment:g}$: {count} clusters", fontsize=8)
        row[0].set_ylabel(rf"$\beta={beta:g}$")
    return figure
