"""Theorem 4.1: two parallel hyperplanes for a simple leading eigenvalue; and the codimension-k conjecture."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....ledger.figure import FigureJob
from ....plot.key import stroke
from ....plot.style import INK, PALETTE
from .. import PAPER
from .flow import leading_form, rescaled_run, states_of
from .picture import GAP, flat, frame_of, level_set, paths, solid, token_key

# The matrices of the paper's pictures; all eigenvalues but the first may be complex.
PLANE = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
GROWING = np.array(
    [
        [0.2362413, 0.0599536, 0.40506019],
        [0.81321448, 0.49948705, 0.33754772],
        [0.2160645, 0.38505272, 0.14588075],
    ]
)
SHRINKING = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
SYMMETRIC = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)
CASES = {"plane": PLANE, "growing": GROWING, "shrinking": SHRINKING}
HEADINGS = {
    "plane": "$d=2$",
    "growing": r"$d=3$, Re $\lambda_2<0$",
    "shrinking": r"$d=3$, Re $\lambda_2>0$",
}
SIZES = {"n": 20, "half_width": 5.0}


@PAPER.figure(
    "hyperplanes",
    title="Clustering to two parallel hyperplanes",
    shows="when one eigenvalue of V leads, the tokens z = e^{-tV} x end on two level sets of its left "
    "eigenform phi_1^*: two parallel lines in the plane, two parallel planes in space, whether the "
    "other eigenvalues grow or shrink the spread along them",
    quick={**SIZES, "end": 5.0, "limit": 12.0, "times": 121},
)
def hyperplanes(job: FigureJob) -> xr.Dataset:
    """z(t) and phi_1^*(z(t)) for the three published matrices, with the two limit levels."""
    times = np.linspace(0.0, job.limit, job.times)
    data = xr.Dataset(coords={"time": times}, attrs={"end": job.end})
    for index, (name, value) in enumerate(CASES.items()):
        form = leading_form(value)
        z = states_of(rescaled_run(value, job.n, job.seed, job.half_width, times))
        heights = z @ form
        data[f"z_{name}"] = (("time", "token", f"axis_{name}"), z)
        data[f"form_{name}"] = (f"axis_{name}", form)
        data[f"height_{name}"] = (("time", "token"), heights)
        # Low, then high: the largest value can only fall, the smallest only rise; these are the limits.
        data[f"level_{name}"] = ("side", [heights[-1].min(), heights[-1].max()])
        job.report((index + 1) / len(CASES))
    return data


@hyperplanes.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 4.9), layout="constrained")
    grid = figure.add_gridspec(2, 4, width_ratios=[1.0, 1.2, 1.2, GAP], height_ratios=[1.7, 1])
    for column, name in enumerate(CASES):
        form = data[f"form_{name}"].values
        place = grid[0, column]
        axes = flat(figure.add_subplot(place)) if len(form) == 2 else _edge_on(figure, place, form)
        axes.set_title(HEADINGS[name])
        colours = _sides(data, name)
        _planes(axes, data, name, colours)
        _heights(figure.add_subplot(grid[1, column]), data, name, colours)
    key = token_key(plt, "$z_i(0)$", f"$z_i({data.attrs['end']:g})$")
    key += [
        stroke(":", r"predicted level of $\varphi_1^*$"),
        *(
            stroke("-", word, colour)
            for word, colour in zip(("one side", "the other"), PALETTE, strict=False)
        ),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=5)
    return figure


def _edge_on(figure: Any, place: Any, form: np.ndarray) -> Any:
    """A space seen almost along the level sets of a form, so that they are thin and apart."""
    azimuth = np.degrees(np.arctan2(form[1], form[0])) - 78.0
    return solid(figure, place, view=(16.0, float(azimuth)))


def _sides(data: xr.Dataset, name: str) -> list[str]:
    """The colour of each token: that of the level it ends on."""
    low, high = data[f"level_{name}"].values
    return [PALETTE[int(h > (low + high) / 2)] for h in data[f"height_{name}"].values[-1]]


def _planes(axes: Any, data: xr.Dataset, name: str, colours: list[str]) -> None:
    shown = data[f"z_{name}"].values[data.time.values <= data.attrs["end"]]
    paths(axes, shown, colours)
    form, box = data[f"form_{name}"].values, frame_of(shown)
    for level, colour in zip(data[f"level_{name}"].values, PALETTE, strict=False):
        level_set(axes, form, level, box, colour)


def _heights(axes: Any, data: xr.Dataset, name: str, colours: list[str]) -> None:
    seen = data.sel(time=slice(0.0, data.attrs["end"]))
    for height, colour in zip(seen[f"height_{name}"].values.T, colours, strict=True):
        axes.plot(seen.time, height, color=colour, lw=0.7)
    for level in data[f"level_{name}"].values:
        axes.axhline(level, color=INK, lw=0.9, ls=":")
    axes.set(xlabel="$t$", xlim=(0, data.attrs["end"]), ylabel=r"$\varphi_1^*(z_i(t))$")


@PAPER.figure(
    "codimension-k",
    title="The codimension-k conjecture: two positive eigenvalues out of three",
    shows="V has eigenvalues 1.96, 0.25 and -0.22: the tokens gather in the two directions with positive "
    "eigenvalue, each at its own rate e^{-lambda_k t}, and spread along the third, ending on lines",
    # The published run ends at t = 5, when the second direction has shrunk by e^{-1.3} only.
    quick={**SIZES, "end": 12.0, "times": 121},
)
def codimension(job: FigureJob) -> xr.Dataset:
    """Coordinates of z(t) along the eigenvectors of V, and their spread about the two leaders."""
    times = np.linspace(0.0, job.end, job.times)
    values, vectors = np.linalg.eigh(SYMMETRIC)
    values, vectors = values[::-1], vectors[:, ::-1]
    z = states_of(rescaled_run(SYMMETRIC, job.n, job.seed, job.half_width, times)) @ vectors
    group = (z[-1, :, 0] > 0).astype(int)
    leaders = np.array([np.argmin(z[-1, :, 0]), np.argmax(z[-1, :, 0])])
    apart = np.abs(z - z[:, leaders[group]]).max(axis=1)
    job.report(1.0)
    return xr.Dataset(
        {
            "z": (("time", "token", "direction"), z),
            "group": ("token", group),
            "leader": ("side", leaders),
            "spread": (("time", "direction"), apart),
        },
        coords={"time": times, "eigenvalue": ("direction", values)},
    )


@codimension.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 3.4), layout="constrained")
    grid = figure.add_gridspec(1, 4, width_ratios=[1.35, 2 * GAP, 1.0, 1.0])
    names = (r"$\varphi_1(z)$", r"$\varphi_2(z)$", r"$\varphi_3(z)$")
    z, colours = data.z.values, [PALETTE[group] for group in data.group.values]
    ends = z[-1, data.leader.values]

    space = solid(figure, grid[0], names)
    paths(space, z, colours)
    heights = frame_of(z)[:, 2]
    for end, colour in zip(ends, PALETTE, strict=False):
        space.plot([end[0]] * 2, [end[1]] * 2, heights, color=colour, lw=1.2, zorder=1)

    shadow = figure.add_subplot(grid[2])
    paths(shadow, z[:, :, :2], colours)
    shadow.plot(*ends[:, :2].T, ls="", marker="x", color=INK, ms=6, zorder=5)
    shadow.set(xlabel=names[0], ylabel=names[1], title=r"seen along $\varphi_3$")
    _rates(figure.add_subplot(grid[3]), data)
    key = token_key(plt, "$z_i(0)$", f"$z_i({float(data.time[-1]):g})$")
    key.append(plt.Line2D([], [], ls="", marker="x", ms=6, color=INK, label="leader"))
    sides = ("follows one leader", "follows the other")
    key += [stroke("-", side, colour) for side, colour in zip(sides, PALETTE, strict=False)]
    figure.legend(handles=key, loc="outside lower center", ncols=5)
    return figure


def _rates(axes: Any, data: xr.Dataset) -> None:
    """The spread along each eigenvector beside e^{-lambda t}."""
    for k, value in enumerate(data.eigenvalue.values):
        colour = PALETTE[k + 2]
        spread = data.spread[:, k]
        axes.semilogy(data.time, spread, color=colour, label=rf"$\varphi_{k + 1}$")
        guide = float(spread[-1]) * np.exp(-value * (data.time - data.time[-1]))
        axes.semilogy(data.time, guide, color=INK, lw=0.8, ls=":")
    axes.plot([], [], color=INK, lw=0.8, ls=":", label=r"$\propto e^{-\lambda_k t}$")
    axes.set(xlabel="$t$", ylabel="distance to the leader", title="largest over tokens")
    axes.legend(loc="lower left")
