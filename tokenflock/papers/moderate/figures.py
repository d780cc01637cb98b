"""2509.25040: A multiscale analysis of mean-field transformers in the moderate interaction regime."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...density import Density
from ...integrate import LogTime, Merge, Save, solve
from ...ledger.figure import FigureJob
from ...meanfield.laws import uniform as uniform_law
from ...meanfield.zonal import Zonal
from ...models import SA
from ...observables import cluster_centres, clusters
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE
from ...reduce import Dense
from ...space import Sphere
from ...starts import uniform
from ...trajectory import Trajectory
from ...weights import Weights
from . import PAPER

# The first two phases are over when no token is farther from the plane than this.
FALLEN = 1e-4
# Tokens closer than this become one: so late that the fall has been seen, so early that rests are cheap.
MERGED = 1e-8


@PAPER.figure(
    "three-phases",
    title="Collapse, clusters, merging: three phases in one run",
    shows="One run of SA on S^2 from independent uniform tokens, in log time. V = diag(1, 1, 1 - gap) first "
    "presses all tokens on the plane of its top eigenvalue: the steepest one at the rate of the gap as long "
    "as a token attends to itself (dashed, beta to infinity), at the rate min(1, gap) once it averages over "
    "its cluster (dotted), since heights within a cluster then only lose what projection takes. The limit "
    "of infinitely many tokens falls with them (circles: its root mean square height, until its spectrum "
    "reaches the cut-off) but to an even ring, a rest that only the unevenness of finitely many leaves. "
    "Along that ring tokens gather in a few clusters, which rest; at last clusters merge pair by pair after "
    "times of the order of e^{beta(1 - c)}/(2 beta sin^2), c the cosine of the angle of the closest pair "
    "(dotted). Clusters are connected components at the angle beta^{-1/2}. Tokens closer than 1e-8 become "
    "one, first at the grey line in all panels: the fall is read before it",
    quick={"n": 64, "beta": 5.0, "gap": 2.0, "end": 1e4, "times": 161, "degree": 128},
    paper={"n": 256, "beta": 7.0, "end": 1e5, "times": 401, "degree": 384},
)
def three_phases(job: FigureJob) -> xr.Dataset:
    """Heights, angles and clusters along the run, and the height of the limit while it is resolved."""
    times = np.concatenate([[0.0], np.geomspace(1e-2, job.end, job.times - 1)])
    run = _tokens(job, times)
    job.report(0.8)
    limit_times, limit_heights = _limit(job, times)
    x = np.asarray(run.states)
    whole = np.asarray(run["owners"]) == np.arange(job.n)
    centres = np.asarray(run.array("cluster_centres"))
    return xr.Dataset(
        {
            "angle": (("time", "token"), np.arctan2(x[..., 1], x[..., 0])),
            "height": (("time", "token"), x[..., 2]),
            "unmerged": (("time",), np.all(whole, axis=-1)),
            "clusters": (("time",), np.asarray(run.array("clusters"))),
            "closest": (("time",), np.array([_closest(row) for row in centres])),
            "limit_height": (("limit_time",), limit_heights),
            "beta": job.beta,
            "gap": job.gap,
        },
        coords={"time": times, "limit_time": limit_times},
    )


def _tokens(job: FigureJob, times: np.ndarray) -> Trajectory:
    """The run; atol lies below the heights shown, which fall to 1e-7 before the first merge."""
    width = job.beta**-0.5
    watched = [clusters(angle=width), cluster_centres(angle=width)]
    return solve(
        SA(job.beta, Weights(V=np.diag([1.0, 1.0, 1.0 - job.gap]))),
        uniform(Sphere(3), job.n, job.seed),
        times[-1],
        rtol=1e-8,
        atol=1e-13,
        save=Save(at=times, states=True, observe=watched),
        clock=LogTime(0.1),
        merge=Merge(MERGED),
        reduction=Dense(),
    )


def _limit(job: FigureJob, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times up to the cut-off, and the root mean square height of the limit of the same flow.

    It stays symmetric about the axis of the fall, which for Zonal is the first: the mean of u^2 is
    (1 + 2 c_2/sqrt 5)/3, since p_2 = sqrt 5 (3u^2 - 1)/2.
    """
    asked = times[times <= 10.0]
    run = solve(
        SA(job.beta, Weights(V=np.diag([1.0 - job.gap, 1.0, 1.0]))),
        Density.from_law(Zonal(3, job.degree), uniform_law()),
        asked[-1],
        rtol=1e-7,
        atol=1e-10,
        save=Save(at=asked, states=True),
        throw=False,
    )
    seen = asked[asked <= run.reached]
    second = np.asarray(run.states)[: len(seen), 2]
    return seen, np.sqrt((1 + 2 * second / 5**0.5) / 3)


def _closest(centres: np.ndarray) -> float:
    """Inner product of the closest two of the heaviest clusters, nan where there is one."""
    overlap = centres @ centres.T
    pairs = overlap[np.triu_indices(len(centres), 1)]
    return float(np.nanmax(pairs)) if np.any(np.isfinite(pairs)) else float("nan")


def before_merges(data: xr.Dataset) -> xr.Dataset:
    """The saved times at which every token still moves for itself."""
    return data.isel(time=slice(int(np.sum(np.cumprod(data.unmerged.values)))))


def steepest(data: xr.Dataset) -> np.ndarray:
    """The largest |x_3|/|(x_1, x_2)|: a token that attends to itself alone moves like e^{Vt} x, so that
    this quotient falls like e^{-gap t}."""
    z = np.abs(data.height.values)
    return np.max(z / np.sqrt((1 - z) * (1 + z)), axis=-1)


def collapse_rate(gap: float) -> float:
    """min(1, gap): the rate at which tokens in tight clusters on the plane lose their heights z.

    There z_i' = (1 - gap) sum_j A_ij z_j - z_i sum_j A_ij <x_i, x_j>, where A averages over the own cluster
    up to e^{-beta(1 - c)}: the mean height of a cluster decays at the gap, differences from it at 1.
    """
    return min(1.0, gap)


def fallen_at(data: xr.Dataset) -> float:
    """The first time at which no token is farther from the plane than FALLEN."""
    return float(data.time[int(np.argmax(np.abs(data.height.values).max(axis=-1) < FALLEN))])


def merge_times(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Times of the merges of the last phase, and e^{beta(1-c)}/(2 beta sin^2) of the pair before each."""
    resting = int(np.searchsorted(data.time.values, fallen_at(data)))
    falls = np.flatnonzero(np.diff(data.clusters.values) < 0)
    falls = falls[falls > resting]
    # The pair has been approaching for long when it is counted as one: it is read halfway in log time.
    before = [max(resting, (resting + fall) // 2) for fall in falls]
    c, beta = data.closest.values[before], float(data.beta)
    return data.time.values[falls + 1], np.exp(beta * (1 - c)) / (2 * beta * (1 - c**2))


@three_phases.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (top, middle, low) = plt.subplots(
        3, 1, figsize=(5.6, 5.6), sharex=True, layout="constrained", height_ratios=(1.3, 1.5, 1)
    )
    later = data.isel(time=slice(1, None))
    falling = before_merges(later)
    _draw_fall(top, falling, later.limit_time[1:], later.limit_height[1:])
    middle.plot(later.time, later.angle / np.pi, ".", color=PALETTE[0], ms=1.2, mew=0)
    middle.set(ylabel=r"angle$/\pi$", ylim=(-1, 1))
    low.plot(later.time, later.clusters, color=PALETTE[0], drawstyle="steps-post")
    for moment, foretold in zip(*merge_times(data), strict=True):
        low.axvline(moment, color=FAINT, lw=0.7, zorder=0)
        low.axvline(foretold, color=PALETTE[1], lw=0.9, ls=":", zorder=0)
    low.set(ylabel="clusters", xlabel="$t$", xscale="log", yscale="log", ylim=(0.8, 15))
    low.set_yticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
    low.set_yticks([], minor=True)
    for axes in (top, middle, low):
        axes.axvline(float(falling.time[-1]), color=FAINT, lw=1.2, zorder=0)
    key = [
        stroke("--", "initial rate", INK, lw=0.9),
        stroke(":", "final rate", INK),
        mark("o", "a token", PALETTE[0], ms=2),
        stroke("-", "clusters merge", FAINT),
        stroke(":", "predicted merge", PALETTE[1], lw=0.9),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=5, fontsize=7, columnspacing=1.0)
    return figure


def _draw_fall(axes: Any, data: xr.Dataset, limit_time: xr.DataArray, limit: xr.DataArray) -> None:
    """Slope and height off the plane up to the first merge, their rates, and the limit."""
    t, slope, gap = data.time.values, steepest(data), float(data.gap)
    axes.plot(t, slope, color=PALETTE[0], label="steepest slope")
    axes.plot(t, slope[0] * np.exp(-gap * t), "--", color=INK, lw=0.9)
    axes.plot(t, slope[-1] * np.exp(collapse_rate(gap) * (t[-1] - t)), ":", color=INK, lw=1.2)
    mean = np.sqrt(np.mean(data.height.values**2, axis=-1))
    axes.plot(t, mean, color=PALETTE[2], label="r.m.s. height")
    every = slice(None, None, 4)
    axes.plot(
        limit_time[every], limit[every], "o", color=INK, ms=3, mfc="none", mew=0.7, label="limit"
    )
    axes.set(yscale="log", ylabel="off the plane", ylim=(slope[-1] / 10, 3 * slope[0]))
    axes.legend(fontsize=7, loc="lower left")
