"""Theorems 3.1 and 5.1: limit polytopes, for V = I and for V = diag(1, ..., 1, -1/2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....ledger.figure import FigureJob
from ....plot.style import INK, PALETTE
from .. import PAPER
from .flow import rescaled_run, states_of
from .picture import GAP, distinct, flat, frame_of, hull, paths, solid, token_key

SIZES = {"n": 20, "half_width": 5.0, "end": 5.0}


@PAPER.figure(
    "polytope",
    title="Clustering to the corners of a polytope, V = I",
    shows="the tokens z = e^{-t} x run to a few corners of a limit polytope in two and in three "
    "dimensions; their convex hull never grows, and the distance to the limit falls like e^{-t}",
    quick={**SIZES, "limit": 16.0, "times": 161},
)
def polytope(job: FigureJob) -> xr.Dataset:
    """z(t) in d = 2, 3 up to a time taken for the limit, and the volume of the hull."""
    times = np.linspace(0.0, job.limit, job.times)
    data = xr.Dataset(coords={"time": times}, attrs={"end": job.end})
    for d in (2, 3):
        z = states_of(rescaled_run(np.eye(d), job.n, job.seed, job.half_width, times))
        data[f"z{d}"] = (("time", "token", f"axis{d}"), z)
        data[f"volume{d}"] = ("time", [_volume(cloud) for cloud in z])
        data[f"distance{d}"] = ("time", np.linalg.norm(z - z[-1], axis=-1).max(axis=-1))
        job.report((d - 1) / 2)
    return data


def _volume(cloud: np.ndarray) -> float:
    """Area or volume of the convex hull."""
    from scipy.spatial import ConvexHull

    return float(ConvexHull(cloud).volume)


@polytope.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 3.5), layout="constrained")
    grid = figure.add_gridspec(2, 4, width_ratios=[1.2, 1.4, GAP, 1.0])
    seen = data.time.values <= data.attrs["end"]
    panels = [flat(figure.add_subplot(grid[:, 0])), solid(figure, grid[:, 1])]
    for axes, d in zip(panels, (2, 3), strict=True):
        z = data[f"z{d}"].values
        paths(axes, z[seen], [PALETTE[1]] * data.sizes["token"])
        hull(axes, z[-1])
        axes.set_title(f"$d={d}$")
    key = [*token_key(plt, "$z_i(0)$", f"$z_i({data.attrs['end']:g})$", PALETTE[1])]
    key.append(plt.Line2D([], [], color=PALETTE[0], lw=1.2, label="limit polytope"))
    figure.legend(handles=key, loc="outside lower left", ncols=3)
    _approach(figure.add_subplot(grid[0, 3]), figure.add_subplot(grid[1, 3]), data)
    return figure


def _approach(volume: Any, distance: Any, data: xr.Dataset) -> None:
    """How the hull shrinks and how fast the tokens reach their limits."""
    early = data.sel(time=slice(0.0, 2 * data.attrs["end"]))
    for d, colour, style in ((2, PALETTE[2], "-"), (3, PALETTE[3], "--")):
        line = {"color": colour, "ls": style, "label": f"$d={d}$"}
        volume.plot(early.time, early[f"volume{d}"] / early[f"volume{d}"][0], **line)
        distance.semilogy(early.time, early[f"distance{d}"], **line)
    distance.semilogy(
        early.time, 3 * np.exp(-early.time), color=INK, lw=0.9, ls=":", label="$3e^{-t}$"
    )
    volume.set(ylabel=r"$|\mathrm{hull}(t)|\,/\,|\mathrm{hull}(0)|$", ylim=(None, 1.01))
    volume.tick_params(labelbottom=False)
    distance.set(xlabel="$t$", ylabel=r"$\max_i|z_i(t)-z_i(\infty)|$")
    distance.set_ylim(1e-7, 20)
    distance.legend(loc="lower left")


@PAPER.figure(
    "mixed",
    title="A polytope times a line, V = diag(1, ..., 1, -1/2)",
    shows="over the directions where V = 1 the tokens reach the corners of a polytope K, and slide off "
    "along the direction where V = -1/2: they end on the lines over the corners of K",
    quick={**SIZES, "limit": 12.0, "times": 121},
)
def mixed(job: FigureJob) -> xr.Dataset:
    """z(t) in d = 2, 3 with the last eigenvalue of V equal to -1/2."""
    times = np.linspace(0.0, job.limit, job.times)
    data = xr.Dataset(coords={"time": times}, attrs={"end": job.end})
    for d in (2, 3):
        value = np.diag([1.0] * (d - 1) + [-0.5])
        run = rescaled_run(value, job.n, job.seed, job.half_width, times)
        data[f"z{d}"] = (("time", "token", f"axis{d}"), states_of(run))
        job.report((d - 1) / 2)
    return data


@mixed.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 3.1), layout="constrained")
    grid = figure.add_gridspec(1, 4, width_ratios=[1.0, 1.4, GAP, 1.0])
    seen = data.time.values <= data.attrs["end"]
    plane, space, shadow = data.z2.values[seen], data.z3.values[seen], data.z3.values[:, :, :2]
    colours = [PALETTE[1]] * data.sizes["token"]

    first = figure.add_subplot(grid[0])
    paths(first, plane, colours)
    for level in distinct(data.z2.values[-1, :, :1])[:, 0]:
        first.axvline(level, color=PALETTE[0], lw=1.2, zorder=0)
    first.set(xlabel="$z_1$", ylabel="$z_2$", title="$V=$ diag$(1,-1/2)$")

    second = solid(figure, grid[1], view=(14.0, -62.0))
    paths(second, space, colours)
    _prism(second, shadow[-1], frame_of(space)[:, 2])
    second.set_title("$V=$ diag$(1,1,-1/2)$")

    third = flat(figure.add_subplot(grid[3]))
    paths(third, shadow[seen], colours)
    hull(third, shadow[-1])
    third.set_title("the same, seen from above")

    end = f"{data.attrs['end']:g}"
    key = [*token_key(plt, "$z_i(0)$", f"$z_i({end})$", PALETTE[1])]
    key.append(
        plt.Line2D([], [], color=PALETTE[0], lw=1.2, label=r"$K$ and corners of $K\times G$")
    )
    figure.legend(handles=key, loc="outside lower center", ncols=3)
    return figure


def _prism(axes: Any, base: np.ndarray, heights: np.ndarray) -> None:
    """The edges of conv(base) x [heights] and the lines over every limit point."""
    from scipy.spatial import ConvexHull

    corners = distinct(base)
    ring = corners[[*(order := ConvexHull(corners).vertices), order[0]]]
    for height in heights:
        axes.plot(*ring.T, np.full(len(ring), height), color=PALETTE[0], lw=1.0, zorder=1)
    for corner in corners:
        axes.plot([corner[0]] * 2, [corner[1]] * 2, heights, color=PALETTE[0], lw=0.7, zorder=1)
