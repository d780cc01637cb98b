"""2407.01602: Clustering in pure-attention hardmax transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....integrate import Layers, Save, solve
from ....ledger.figure import FigureJob
from ....measure import from_array
from ....models import HardmaxFlow
from ....observables import leader_mask
from ....plot.key import stroke
from ....plot.style import FAINT, INK, PALETTE
from ....space import Euclidean
from .. import PAPER

EMERGING = (
    (1.0, 1 / 3),
    (-1 / 12, 1 / 12),
    (-1.0, -1.0),
    (0.0, 0.25),
    (-0.3, -0.7),
    (-0.6, -0.9),
    (0.8, 0.1),
    (0.6, 0.15),
)
TRIANGLE = ((1.0, 1.0), (0.5, -0.5), (-1.0, -1.0), (0.3, -0.2), (0.1, -0.2))
SQUARE = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
CASES = ("emerging leader", "triangle", "square", "non-leader clusters")
# Closer than this at the last layer, two tokens are in one cluster.
SAME_PLACE = 1e-3


def starts(seed: int) -> list[np.ndarray]:
    """The four sets of tokens of Figure 2, with their random tokens drawn afresh."""
    rng = np.random.default_rng(seed)

    def inside(low: float, high: float, count: int) -> list[list[float]]:
        return rng.uniform(low, high, (count, 2)).tolist()

    return [
        np.array(EMERGING),
        np.array([*TRIANGLE, *inside(0.0, 1.0, 2), *inside(-1.0, 0.0, 2)]),
        np.array([*SQUARE, *inside(-0.5, 0.5, 6)]),
        np.array([*SQUARE, (-0.5, 0.0), (0.5, 0.0), *inside(-0.5, 0.5, 4)]),
    ]


@PAPER.figure(
    "figure-2",
    title="Leaders and followers of hardmax attention",
    shows="tokens run to leaders, which never move: a new leader emerges after one layer (first row), the "
    "corners of a triangle or a square lead (second and third), and two tokens held by exact ties "
    "settle at (1, 0) and (-1, 0) without being leaders (last row)",
    quick={"alpha": 0.5, "layers": 30, "shown": (0, 1, 2, 5, 30)},
)
def figure_2(job: FigureJob) -> xr.Dataset:
    """Tokens and leaders after every layer, for the four starts; absent tokens are NaN.

    A token `rests` if it ends at a place where no leader is: on a face of the limit polytope.
    """
    clouds = starts(job.seed)
    most = max(len(cloud) for cloud in clouds)
    z = np.full((len(clouds), job.layers + 1, most, 2), np.nan)
    leads = np.zeros(z.shape[:-1], bool)
    for index, cloud in enumerate(clouds):
        z[index, :, : len(cloud)], leads[index, :, : len(cloud)] = _layers(job, cloud)
        job.report((index + 1) / len(clouds))
    rests = np.array([_rests(z[k, -1], leads[k, -1]) for k in range(len(clouds))])
    return xr.Dataset(
        {
            "z": (("case", "layer", "token", "axis"), z),
            "leader": (("case", "layer", "token"), leads),
            "rests": (("case", "token"), rests),
            "shown": ("panel", list(job.shown)),
        },
        coords={"case": list(CASES), "layer": np.arange(job.layers + 1)},
    )


def _layers(job: FigureJob, cloud: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z <- (z + alpha mean of the attended)/(1 + alpha), layer by layer."""
    step = job.alpha / (1 + job.alpha)
    run = solve(
        HardmaxFlow(),
        from_array(Euclidean(2), cloud),
        step * job.layers,
        method=Layers(step),
        save=Save(every=step, states=True, observe=[leader_mask]),
    )
    return np.asarray(run.states), np.asarray(run.array("leader_mask"))


def _rests(points: np.ndarray, leads: np.ndarray) -> np.ndarray:
    """Which tokens ended away from every leader."""
    apart = np.linalg.norm(points[:, None] - points[leads], axis=-1)
    return np.min(apart, axis=1) > SAME_PLACE


@figure_2.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    rows, columns = data.sizes["case"], data.sizes["panel"]
    figure, grid = plt.subplots(
        rows, columns, figsize=(7.4, 6.3), sharex=True, sharey=True, layout="constrained"
    )
    for panels, case in zip(grid, data.case.values, strict=True):
        for axes, layer in zip(panels, data.shown.values, strict=True):
            _snapshot(axes, data.sel(case=case), int(layer))
        panels[0].set_ylabel(f"{case}\n$z_2$")
    for axes, layer in zip(grid[0], data.shown.values, strict=True):
        axes.set_title(f"layer {layer}")
    for axes in grid[-1]:
        axes.set_xlabel("$z_1$")
    figure.legend(handles=_key(plt), loc="outside lower center", ncols=5)
    return figure


LEADER = {"s": 75, "marker": "*", "color": PALETTE[1], "zorder": 4}
FOLLOWER = {"s": 20, "marker": "o", "color": PALETTE[0], "zorder": 3}
RESTING = {"s": 24, "marker": "D", "color": PALETTE[2], "zorder": 3}
EDGES = {"linewidths": 0.4, "edgecolors": "white"}


def _snapshot(axes: Any, case: xr.Dataset, layer: int) -> None:
    """Tokens at one layer, the way they came, and their convex hull."""
    from scipy.spatial import ConvexHull

    there = np.isfinite(case.z.values[0, :, 0])
    z, leads, rests = (
        case.z.values[:, there],
        case.leader.values[:, there],
        case.rests.values[there],
    )
    outline = z[layer][ConvexHull(z[layer]).vertices]
    axes.fill(*outline.T, facecolor=FAINT, alpha=0.25, lw=0, zorder=0)
    for path in np.swapaxes(z[: layer + 1], 0, 1):
        axes.plot(*path.T, color=FAINT, lw=0.8, zorder=1)
    here, now = z[layer], leads[layer]
    for chosen, style in ((~now & ~rests, FOLLOWER), (~now & rests, RESTING), (now, LEADER)):
        axes.scatter(*here[chosen].T, **style, **EDGES)
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes.set_aspect("equal")


def _key(plt: Any) -> list[Any]:
    named = (
        ("leader", LEADER, 9),
        ("follower", FOLLOWER, 4.5),
        ("rests, not a leader", RESTING, 4.5),
    )
    marks = [
        plt.Line2D([], [], ls="", ms=size, marker=style["marker"], color=style["color"], label=word)
        for word, style, size in named
    ]
    way = stroke("-", "way of a token", FAINT, lw=0.8)
    return [*marks, way, plt.Line2D([], [], color=INK, alpha=0.25, lw=6, label="hull")]
