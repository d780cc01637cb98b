"""2509.25040: A multiscale analysis of mean-field transformers in the moderate interaction regime."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ..integrate import LogTime, Merge, Save, solve
from ..measure import Measure, uniform
from ..models import SA
from ..plot.style import FAINT, INK, PALETTE
from ..reduce import Dense
from ..space import Sphere
from ..weights import Weights
from .core import Album, Job

ALBUM = Album("2509.25040")
# The first two phases are over when no token is farther from the plane than this.
FALLEN = 1e-4


@ALBUM.figure(
    "three-phases",
    title="Collapse, clusters, merging: three phases from one start",
    shows="SA on S^2 from independent uniform tokens, in log time. V = diag(1, 1, 1 - gap) first presses all "
    "tokens on the plane of its top eigenvalue: at the rate of the gap as long as a token attends to itself "
    "(dashed, beta to infinity), at the rate min(1, gap) once it averages over its cluster (dotted), since "
    "heights within a cluster then only lose what projection takes. Meanwhile, along that circle, tokens "
    "gather in a few clusters, which rest; at last clusters merge pair by pair after times of the order of "
    "e^{beta(1 - c)}/(2 beta sin^2), c the cosine of the angle of the closest pair (dotted). Two "
    "integrations from the same tokens: the collapse (top) keeps all of them, the rest joins tokens "
    "closer than 1e-3",
    quick={"n": 64, "beta": 5.0, "gap": 2.0, "fall": 20.0, "end": 1e4, "times": 161},
    paper={"n": 256, "beta": 7.0, "end": 1e5, "times": 401},
)
def three_phases(job: Job) -> xr.Dataset:
    """Slope off the plane up to `fall` without merging; angles and number of clusters with it."""
    tokens = uniform(Sphere(3), job.n, job.seed)
    times = np.concatenate([[0.0], np.geomspace(1e-2, job.end, job.times - 1)])
    falling = np.concatenate([times[times < job.fall], [job.fall]])
    whole = _flow(job, tokens, falling, None)
    x = _flow(job, tokens, times, Merge(1e-3))
    # A token that attends to itself alone moves like e^{Vt} x: this quotient falls like e^{-gap t}.
    slopes = np.abs(whole[..., 2]) / np.linalg.norm(whole[..., :2], axis=-1)
    counts, closest = zip(*(_clusters(row, job.beta**-0.5) for row in x), strict=True)
    return xr.Dataset(
        {
            "height": (("falling",), np.max(np.abs(whole[..., 2]), axis=-1)),
            "slope": (("falling",), np.max(slopes, axis=-1)),
            "angle": (("time", "token"), np.arctan2(x[..., 1], x[..., 0])),
            "clusters": (("time",), np.array(counts)),
            "closest": (("time",), np.array(closest)),
            "beta": job.beta,
            "gap": job.gap,
        },
        coords={"time": times, "falling": falling},
    )


def _flow(job: Job, tokens: Measure, times: np.ndarray, merge: Merge | None) -> np.ndarray:
    """Tokens at the times; atol lies below the heights shown, which fall to e^{-fall}."""
    run = solve(
        SA(job.beta, Weights(V=np.diag([1.0, 1.0, 1.0 - job.gap]))),
        tokens,
        times[-1],
        rtol=1e-8,
        atol=1e-13,
        save=Save(at=times, states=True),
        clock=LogTime(0.1),
        merge=merge,
        reduction=Dense(),
    )
    return np.asarray(run.states)


def collapse_rate(gap: float) -> float:
    """min(1, gap): the rate at which tokens in tight clusters on the plane lose their heights z.

    There z_i' = (1 - gap) sum_j A_ij z_j - z_i sum_j A_ij <x_i, x_j>, where A averages over the own cluster
    up to e^{-beta(1 - c)}: the mean height of a cluster decays at the gap, differences from it at 1.
    """
    return min(1.0, gap)


def fallen_at(data: xr.Dataset) -> float:
    """The first time at which no token is farther from the plane than FALLEN."""
    return float(data.falling[int(np.argmax(data.height.values < FALLEN))])


def _clusters(x: np.ndarray, width: float) -> tuple[int, float]:
    """Number of groups further than `width` apart, and the inner product of the closest two (or nan).

    On a plane groups are arcs, cut where neighbours are farther apart than the width of the kernel.
    """
    order = np.argsort(np.arctan2(x[:, 1], x[:, 0]))
    gaps = np.linalg.norm(x[order] - x[np.roll(order, -1)], axis=-1)
    cuts = np.flatnonzero(gaps > width)
    if len(cuts) < 2:
        return 1, float("nan")
    groups = np.split(np.roll(order, -cuts[0] - 1), np.diff(cuts).cumsum())
    centres = np.stack([x[group].mean(axis=0) for group in groups if len(group)])
    centres /= np.linalg.norm(centres, axis=-1, keepdims=True)
    overlap = centres @ centres.T - 2 * np.eye(len(centres))
    return len(centres), float(np.max(overlap))


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
        3, 1, figsize=(5.6, 5.4), sharex=True, layout="constrained", height_ratios=(1, 1.5, 1)
    )
    later = data.isel(time=slice(1, None))
    t, slope, gap = data.falling.values[1:], data.slope.values[1:], float(data.gap)
    top.plot(t, slope, color=PALETTE[0])
    top.plot(t, slope[0] * np.exp(-gap * t), "--", color=INK, lw=0.9)
    top.plot(t, slope[-1] * np.exp(collapse_rate(gap) * (t[-1] - t)), ":", color=INK, lw=1.2)
    top.set(yscale="log", ylabel="slope off\nthe plane", ylim=(slope[-1] / 10, 2 * slope[0]))
    middle.plot(later.time, later.angle / np.pi, ".", color=PALETTE[0], ms=1.2, mew=0)
    middle.set(ylabel=r"angle$/\pi$", ylim=(-1, 1))
    low.plot(later.time, later.clusters, color=PALETTE[0], drawstyle="steps-post")
    for moment, foretold in zip(*merge_times(data), strict=True):
        low.axvline(moment, color=FAINT, lw=0.7, zorder=0)
        low.axvline(foretold, color=PALETTE[1], lw=0.9, ls=":", zorder=0)
    low.set(ylabel="clusters", xlabel="$t$", xscale="log", yscale="log")
    low.set_yticks([1, 2, 3, 5, 10, 20, 50], ["1", "2", "3", "5", "10", "20", "50"])
    low.set_yticks([], minor=True)
    return figure
