"""Leaders and the collapse of the attention matrix, run with attention itself (not x' = Vx)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....integrate import Save, solve
from ....ledger.figure import FigureJob
from ....measure import from_array
from ....models import RescaledSA
from ....observables import attention_matrix, attention_rank
from ....plot.style import FAINT, INK, PALETTE, REST
from ....space import Euclidean
from .. import PAPER
from .flow import ATOL, RTOL, eigen_run, rescaled_run, states_of

# The paper's graphs join i to j when P_ij exceeds this.
EDGE = 1e-4
LEADER_SHARE = 0.5


def _positive(rng: np.random.Generator, d: int) -> np.ndarray:
    """M M^T with M uniform in [-1, 1]^(d x d)."""
    factor = rng.uniform(-1.0, 1.0, (d, d))
    return factor @ factor.T


@PAPER.figure(
    "leaders",
    title="The graph of attention thins out to a few leaders",
    shows="edges join i to j where P_ij > 1e-4: at the start everyone attends to everyone, at the end each "
    "token attends to one of one or two leaders, the only columns of P that survive",
    # `weights` is the seed of V and Q^T K: some draws keep one leader, this one keeps two.
    quick={
        "n": 20,
        "half_width": 1.0,
        "weights": 11,
        "end": 8.0,
        "times": 81,
        "at": (0.0, 1.0, 2.0, 4.0),
    },
)
def leaders(job: FigureJob) -> xr.Dataset:
    """z(t) and P(t) with V and Q^T K drawn as M M^T; times are in units of 1/lambda_1(V)."""
    rng = np.random.default_rng(job.weights)
    value, scores = _positive(rng, 2), _positive(rng, 2)
    fastest = np.linalg.eigvalsh(value)[-1]
    times = np.linspace(0.0, job.end, job.times)
    run = rescaled_run(
        value, job.n, job.seed, job.half_width, times / fastest, scores, [attention_matrix]
    )
    matrix = np.asarray(run.array("attention_matrix"))[:, 0]
    job.report(1.0)
    return xr.Dataset(
        {
            "z": (("time", "token", "axis"), states_of(run)),
            "attention": (("time", "token", "other_token"), matrix),
            "leader": ("other_token", matrix[-1].max(axis=0) > LEADER_SHARE),
            "shown": ("panel", [int(np.argmin(np.abs(times - t))) for t in job.at]),
        },
        coords={"time": times},
    )


@leaders.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 4.0), layout="constrained")
    count = data.sizes["panel"]
    grid = figure.add_gridspec(2, count, height_ratios=[1.35, 1.0])
    panels = [figure.add_subplot(grid[0, k]) for k in range(count)]
    for axes, row in zip(panels, data.shown.values, strict=True):
        _graph(axes, data, row)
    for axes in panels:
        axes.set_ylabel("$z_2$", labelpad=0)
    half = count // 2
    _columns(figure.add_subplot(grid[1, :half]), data)
    _edges(figure.add_subplot(grid[1, half:]), data)
    dot = {"ls": "", "marker": "o", "color": PALETTE[0]}
    key = [
        plt.Line2D([], [], ms=5, label="token, area: attention received", **dot),
        plt.Line2D([], [], ls="", marker="*", ms=9, color=PALETTE[1], label="leader"),
        plt.Line2D([], [], color=REST, lw=1.0, label="$P_{ij}>10^{-4}$"),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3)
    return figure


def _graph(axes: Any, data: xr.Dataset, row: int) -> None:
    """Tokens, with an edge for every weight above the threshold, thick where it is large."""
    z, matrix, leader = data.z.values[row], data.attention.values[row], data.leader.values
    for i, j in zip(*np.nonzero(matrix > EDGE), strict=True):
        width = 0.25 + 0.9 * matrix[i, j]
        axes.plot(*z[[i, j]].T, color=REST, lw=width, alpha=0.45, zorder=1)
    area = 6 + 8 * matrix.sum(axis=0)
    style = {"edgecolors": "white", "linewidths": 0.4}
    axes.scatter(*z[~leader].T, s=area[~leader], color=PALETTE[0], zorder=2, **style)
    axes.scatter(*z[leader].T, s=110, marker="*", color=PALETTE[1], zorder=3, **style)
    axes.set(xlabel="$z_1$", title=rf"$\lambda_1t={float(data.time[row]):g}$")
    axes.margins(0.1)
    axes.locator_params(nbins=4)


def _columns(axes: Any, data: xr.Dataset) -> None:
    """The largest weight that anyone gives to each token."""
    largest = data.attention.max("token").values
    for j in np.argsort(data.leader.values):
        leads = bool(data.leader[j])
        axes.plot(data.time, largest[:, j], color=PALETTE[1] if leads else FAINT, lw=0.9 + leads)
    axes.set(xlabel=r"$\lambda_1t$", ylabel=r"$\max_i P_{ij}$", ylim=(-0.03, 1.05))


def _edges(axes: Any, data: xr.Dataset) -> None:
    """The number of weights above the threshold, from n^2 to one per token."""
    n = data.sizes["token"]
    axes.plot(data.time, (data.attention > EDGE).sum(("token", "other_token")), color=PALETTE[0])
    axes.axhline(n, color=INK, lw=0.9, ls=":", label="$n$: one per token")
    axes.set(xlabel=r"$\lambda_1t$", ylabel="edges", ylim=(0, 1.05 * n**2))
    axes.legend(loc="upper right")


# The six tokens on the line whose limit is worked out in the paper's one-dimensional theorem.
LINE = (-1.3, -0.4, 0.1, 0.25, 0.9, 1.6)


@PAPER.figure(
    "low-rank",
    title="The attention matrix collapses to low rank",
    shows="the attention matrix starts near the identity, with full rank, and loses its columns one after "
    "the other until two leaders are left; on the line the limit is Boolean, with rows e_1 and e_n",
    quick={
        "n": 40,
        "d": 40,
        "half_width": 1.0,
        "end": 25.0,
        "times": 126,
        "at": (0.0, 4.0, 8.0, 25.0),
    },
    paper={"d": 80},
)
def low_rank(job: FigureJob) -> xr.Dataset:
    """P(t), its rank and effective rank for V = M M^T, Q^T K = I; times in units of 1/lambda_1.

    P is the same for x and z = e^{-tV} x. Beside it six tokens on the line, to t = 8.
    """
    values, vectors = np.linalg.eigh(_positive(np.random.default_rng(job.seed), job.d))
    times = np.linspace(0.0, job.end, job.times)
    run = eigen_run(
        values,
        vectors,
        job.n,
        job.seed,
        job.half_width,
        times / values[-1],
        [attention_matrix, attention_rank],
    )
    matrix = np.asarray(run.array("attention_matrix"))[:, 0]
    job.report(0.9)
    shown = [int(np.argmin(np.abs(times - t))) for t in job.at]
    return xr.Dataset(
        {
            "attention": (("panel", "token", "other_token"), _leaders_first(matrix)[shown]),
            "rank": ("time", np.linalg.matrix_rank(matrix)),
            "effective_rank": ("time", np.asarray(run.array("attention_rank"))[:, 0]),
            "boolean": (("row", "column"), _boolean()),
        },
        coords={"time": times, "shown": ("panel", times[shown])},
    )


def _boolean() -> np.ndarray:
    """P(8) of six tokens on the line, V = Q = K = 1."""
    run = solve(
        RescaledSA(1.0),
        from_array(Euclidean(1), np.array(LINE)[:, None]),
        8.0,
        rtol=RTOL,
        atol=ATOL,
        save=Save(observe=[attention_matrix]),
    )
    return np.asarray(run.array("attention_matrix"))[-1, 0]


def _leaders_first(matrix: np.ndarray) -> np.ndarray:
    """The same matrices with tokens sorted by the leader they follow at the end."""
    follows = np.argmax(matrix[-1], axis=1)
    order = np.lexsort((np.arange(len(follows)) != follows, follows))
    return matrix[:, order][:, :, order]


@low_rank.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(7.4, 4.2), layout="constrained")
    count = data.sizes["panel"]
    above, below = figure.add_gridspec(2, 1)
    below = below.subgridspec(1, 2, width_ratios=[2.6, 1.0])
    panels = [figure.add_subplot(place) for place in above.subgridspec(1, count)]
    ranks = np.interp(data.shown, data.time, data["rank"])
    for k, axes in enumerate(panels):
        picture = _matrix(axes, data.attention.values[k])
        axes.set_title(rf"$\lambda_1t={float(data.shown[k]):g}$, rank {ranks[k]:.0f}")
    panels[0].set_ylabel("token $i$")
    figure.colorbar(picture, ax=panels, shrink=0.8, label="$P_{ij}$")

    curve = figure.add_subplot(below[0])
    curve.step(data.time, data["rank"], where="post", color=PALETTE[0], label="of $P(t)$")
    curve.plot(data.time, data.effective_rank, color=PALETTE[1], ls="--", label="effective rank")
    curve.axhline(2, color=INK, lw=0.9, ls=":", label="2")
    curve.set(
        xlabel=r"$\lambda_1t$",
        ylabel="rank",
        yscale="log",
        yticks=[1, 2, 5, 10, 20, 40],
        ylim=(0.9, 50),
    )
    curve.set_yticklabels(["1", "2", "5", "10", "20", "40"])
    curve.minorticks_off()
    curve.legend(loc="upper right")

    line = figure.add_subplot(below[1])
    _matrix(line, data.boolean.values)
    line.set(title="$d=1$, $t=8$", ylabel="token $i$")
    line.set_xticks(range(len(LINE)), [f"{k + 1}" for k in range(len(LINE))])
    line.set_yticks(range(len(LINE)), [f"{k + 1}" for k in range(len(LINE))])
    return figure


def _matrix(axes: Any, matrix: np.ndarray) -> Any:
    axes.set(xlabel="attended $j$", xticks=[], yticks=[])
    return axes.imshow(matrix, cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
