"""2605.09213v1: Kinetic theory for Transformers and the lost-in-the-middle phenomenon."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...ensembles import mean_and_error
from ...integrate import Save, solve
from ...kinetic import sample_recall
from ...ledger.figure import FigureJob
from ...measure import from_angles
from ...models import KineticFlow
from ...plot.key import mark
from ...plot.style import FAINT, INK, PALETTE, REST
from ...theory import kinetic as theory
from . import PAPER

S0_LABEL = "position $s_0$ of the token to recall"


def _grid(points: int) -> np.ndarray:
    return np.linspace(0.02, 0.98, points)


@PAPER.figure(
    "profiles",
    title="Lost in the middle: recall by position",
    shows="S_t(s0) minus its minimum is U-shaped: the first and the last tokens of a prompt are recalled "
    "best. The minimum (dot) moves to the right as depth t grows and reaches the end beyond t_crit = "
    "2.457, where the last tokens lose their advantage. Right: the times from 1 to 2",
    quick={
        "beta": 1.0,
        "slope": 1.0,
        "words": 8,
        "points": 400,
        "shown": (0.25, 0.5, 1.0, 2.0, 5.0),
        "overlay": tuple(1 + tenth / 10 for tenth in range(11)),
    },
    paper={"points": 800},
)
def profiles(job: FigureJob) -> xr.Dataset:
    """S_t on [0.02, 0.98] for two sets of times, and where it is least on (0, 1]."""
    s0, times = _grid(job.points), np.array(sorted({*job.shown, *job.overlay}))
    heights = theory.retrieval_profile(s0, job.beta, times[:, None], job.slope, job.words)
    lowest = [theory.profile_minimum(job.beta, float(t), job.slope, job.words) for t in times]
    return xr.Dataset(
        {"profile": (("time", "s0"), heights), "minimum": (("time",), lowest)},
        coords={"time": times, "s0": s0},
        attrs={
            "shown": job.shown,
            "overlay": job.overlay,
            "critical": float(theory.recency_threshold(job.beta, job.slope, job.words)),
        },
    )


@profiles.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.9), layout="constrained")
    shown, overlay = data.attrs["shown"], data.attrs["overlay"]
    for index, t in enumerate(shown):
        _one_profile(left, data.sel(time=t), PALETTE[index], f"$t={t:g}$")
    colours = plt.get_cmap("winter_r")(np.linspace(0.05, 1.0, len(overlay)))
    for t, colour in zip(overlay, colours, strict=True):
        ends = t in (overlay[0], overlay[-1])
        _one_profile(right, data.sel(time=t), colour, f"$t={t:g}$" if ends else None)
    left.set(ylabel=r"$S_t(s_0)-\min S_t$", ylim=(-0.04, 1.05), title="five depths")
    right.set(title=rf"colour: from $t=1$ to $t=2$ ($t_{{\rm crit}}={data.attrs['critical']:.3f}$)")
    right.set(ylabel=r"$S_t(s_0)-\min S_t$", ylim=(-0.02, 0.55))
    for axes in (left, right):
        axes.set(xlabel=S0_LABEL, xlim=(0, 1))
        handles, _ = axes.get_legend_handles_labels()
        least = mark("o", "least recalled", REST)
        axes.legend(handles=[*handles, least], fontsize=8, loc="upper center")
    return figure


def _one_profile(axes: Any, data: xr.Dataset, colour: Any, label: str | None) -> None:
    """A curve moved to minimum 0, with a dot where it is least among the positions shown."""
    heights = data.profile.values - data.profile.values.min()
    axes.plot(data.s0, heights, color=colour, lw=1.3, label=label)
    axes.plot(
        data.s0[int(np.argmin(heights))], 0.0, "o", ms=4, color=colour, clip_on=False, zorder=4
    )


@PAPER.figure(
    "thresholds",
    title="How deep recency lasts",
    shows="the exact recency threshold t_crit(beta) lies above the time t_small of the theorem, by less "
    "than a half; both fall like the inverse of the fastest mode, 1/sup a_n. Points: t_crit at beta ="
    " 1, 2, 3",
    quick={
        "slope": 1.0,
        "words": 8,
        "betas": tuple(tenth / 10 for tenth in range(1, 49)),
        "marked": (1.0, 2.0, 3.0),
    },
)
def thresholds(job: FigureJob) -> xr.Dataset:
    """t_crit and t_small by beta."""
    betas = np.array(job.betas)
    return xr.Dataset(
        {
            "critical": (("beta",), theory.recency_threshold(betas, job.slope, job.words)),
            "small": (("beta",), theory.smallness_time(betas, job.slope)),
        },
        coords={"beta": betas},
        attrs={"marked": job.marked, "slope": job.slope},
    )


@thresholds.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    axes.fill_between(
        data.beta, data.small, 1e-3, color=PALETTE[2], alpha=0.12, lw=0, label="U-shape proved"
    )
    axes.plot(data.beta, data.critical, color=PALETTE[0], label=r"$t_{\rm crit}$: $S_t'(1^-)=0$")
    axes.plot(
        data.beta,
        data.small,
        color=PALETTE[2],
        ls="--",
        label=r"$t_{\rm small}$: upper end of the proof",
    )
    for beta in data.attrs["marked"]:
        value = float(data.critical.sel(beta=beta))
        axes.plot(beta, value, "o", ms=4, color=PALETTE[0])
        axes.annotate(f"{value:.3f}", (beta, value), (6, 4), textcoords="offset points", fontsize=8)
    axes.set(yscale="log", xlabel=r"$\beta$", ylabel="depth $t$", xlim=(0, 4.8), ylim=(5e-3, 200))
    axes.text(2.2, 150, r"above $t_{\rm crit}$: no recency", color=INK, fontsize=8, va="top")
    axes.legend(fontsize=8, loc="lower left")
    return figure


@PAPER.figure(
    "without-bias",
    title="No recency without a bias towards the near",
    shows="at slope 0 the profile decreases to the very end, at every depth: the first tokens are recalled "
    "best, the last ones worst. A larger ALiBi slope raises the end and sinks the beginning",
    quick={
        "beta": 1.0,
        "t": 1.0,
        "words": 8,
        "slopes": (-1.0, 0.0, 0.5, 1.0, 2.0, 4.0),
        "points": 400,
    },
    paper={"points": 800},
)
def without_bias(job: FigureJob) -> xr.Dataset:
    """S_t by slope, and its slope at the end."""
    s0, slopes = _grid(job.points), np.array(job.slopes)
    heights = theory.retrieval_profile(s0, job.beta, job.t, slopes[:, None], job.words)
    return xr.Dataset(
        {
            "profile": (("slope", "s0"), heights),
            "end": (("slope",), theory.recency_slope(job.beta, job.t, slopes, job.words)),
        },
        coords={"slope": slopes, "s0": s0},
        attrs={"t": job.t},
    )


@without_bias.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, data.sizes["slope"]))
    for slope, colour in zip(data.slope.values, colours, strict=True):
        bold = 2.2 if slope == 0 else 1.2
        axes.plot(data.s0, data.profile.sel(slope=slope), color=colour, lw=bold, label=f"{slope:g}")
    axes.set(
        xlabel=S0_LABEL, ylabel=f"$S_t(s_0)$, $t={data.attrs['t']:g}$", xlim=(0, 1), ylim=(0, 4)
    )
    axes.legend(title=r"slope $\lambda$", fontsize=8, ncols=2, loc="upper center")
    return figure


@PAPER.figure(
    "double-well",
    title="Signed heads lose two places",
    shows="four heads, two of them with negative weights, add up to a profile with two wells of equal depth"
    " at s0 = 0.130 and 0.795, and a hill of height 0.0458 at 0.364 between them",
    quick={"points": 1921},
)
def double_well(job: FigureJob) -> xr.Dataset:
    """The signed profile and the share of every head."""
    s0, heads = _grid(job.points), theory.DOUBLE_WELL
    t = theory.DOUBLE_WELL_TIME
    shares = [theory.signed_profile(s0, t, [head]) for head in heads]
    return xr.Dataset(
        {"total": (("s0",), np.sum(shares, axis=0)), "share": (("head", "s0"), np.array(shares))},
        coords={
            "s0": s0,
            "weight": ("head", [head.weight for head in heads]),
            "beta": ("head", [head.beta for head in heads]),
            "slope": ("head", [head.slope for head in heads]),
        },
        attrs={"t": t},
    )


def turning_points(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the wells and hills inside, and their heights above the lowest."""
    heights = data.total.values
    turns = np.flatnonzero(np.diff(np.sign(np.diff(heights)))) + 1
    return data.s0.values[turns], heights[turns] - heights.min()


@double_well.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.8), layout="constrained")
    left.plot(data.s0, data.total - data.total.min(), color=INK, lw=1.6)
    places, heights = turning_points(data)
    left.plot(places, heights, "o", ms=4.5, color=PALETTE[1], zorder=4, label="turning points")
    left.legend(fontsize=7, loc="upper right")
    for place, height in zip(places, heights, strict=True):
        above = 6 if height > 0.01 else -13
        axis = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
        left.annotate(f"{place:.3f}", (place, height), (0, above), **axis)
    left.set(ylabel="signed profile minus minimum", ylim=(-0.025, 0.15))
    left.set_title(f"$t={data.attrs['t']:g}$")
    for head in range(data.sizes["head"]):
        one = data.isel(head=head)
        label = (
            rf"{float(one.weight):.3g}, $\beta={float(one.beta):g}$, $\lambda={float(one.slope):g}$"
        )
        right.plot(one.s0, one.share - one.share.mean(), color=PALETTE[head], lw=1.2, label=label)
    right.set(ylabel="share of a head minus its mean", ylim=(-0.5, 1.5))
    right.legend(title="weight and head", fontsize=7, title_fontsize=7)
    for axes in (left, right):
        axes.set(xlabel=S0_LABEL, xlim=(0, 1))
    return figure


@PAPER.figure(
    "circle",
    title="Tokens drift to the first, earlier ones ahead of later ones",
    shows="four arcs of 16 tokens each: crosses are the start, rings the tokens at depth t, coloured by "
    "their arc (first to last in the text: blue, orange, green, pink). The first token (star) rests "
    "and the first arc closes on it; the second and the fourth reach it by t = 4, the second drawn out on "
    "its way (27 degrees at t = 1). The third starts far from all others and leaves last: at t = 4 its first "
    "token is 58 degrees ahead of the next. At t = 10 all are at one point",
    quick={
        "n": 64,
        "beta": 1.0,
        "slope": 1.0,
        "width": 0.075,
        "draw": 17,
        "end": 10.0,
        "step": 0.2,
        "snapshots": (0.0, 0.4, 1.0, 2.0, 4.0, 10.0),
    },
)
def circle(job: FigureJob) -> xr.Dataset:
    """Angles of all tokens every 0.2, from the paper's four clusters (numpy's generator, seed 17)."""
    arcs = 4
    centres = np.repeat(np.linspace(0.1, 1.9, arcs) * np.pi, job.n // arcs)
    start = centres + np.random.default_rng(job.draw).normal(0, job.width, len(centres))
    run = solve(
        KineticFlow(job.beta, job.slope),
        from_angles(start),
        job.end,
        rtol=1e-9,
        atol=1e-11,
        save=Save(every=job.step, states=True),
    )
    return xr.Dataset(
        {"tokens": (("time", "token", "coordinate"), np.asarray(run.states))},
        coords={
            "time": np.asarray(run.time),
            "arc": ("token", np.repeat(np.arange(arcs), job.n // arcs)),
        },
        attrs={"snapshots": job.snapshots},
    )


@circle.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(2, 3, figsize=(6.0, 4.5), layout="constrained")
    turn = np.linspace(0, 2 * np.pi, 361)
    colours = np.array(PALETTE[:4])[data.arc.values]
    first = data.tokens.values[0]
    for axes, t in zip(panels.ravel(), data.attrs["snapshots"], strict=True):
        now = data.tokens.sel(time=t, method="nearest").values
        axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.7)
        axes.scatter(*(0.86 * first).T, marker="x", s=9, lw=0.6, c=colours, alpha=0.6)
        axes.scatter(*now.T, marker="o", s=22, facecolors="none", edgecolors=colours, lw=0.9)
        axes.plot(*(1.2 * first[0]), marker="*", ms=7, color=INK)
        axes.set(title=f"$t={t:g}$", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), xticks=[], yticks=[])
        axes.set_aspect("equal")
        for side in axes.spines.values():
            side.set_visible(False)
    key = [
        mark("x", "start (a colour for each arc)", REST),
        mark("o", "now", REST, ms=5, mfc="none"),
        mark("*", "the first token", INK, ms=7),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3)
    return figure


@PAPER.figure(
    "recall",
    title="Recall of sampled prompts beside the theory",
    shows="N times the excess of the soft accuracy over chance, from sampled prompts of N uniform tokens "
    "(marks with two standard errors), beside the limit S_t(s0) (line): what N = 30 is off is of the "
    "order of 1/N of the signal",
    quick={
        "beta": 1.0,
        "slope": 1.0,
        "t": 0.6,
        "sizes": (30, 60),
        "prompts": (200, 60),
        "shares": (0.1, 0.2, 0.4, 0.6, 0.8, 0.9),
        "points": 200,
    },
    paper={"prompts": (2000, 2000)},
)
def recall(job: FigureJob) -> xr.Dataset:
    """`sample_recall` at a few places for every N, and the limit profile."""
    found = []
    for row, (n, prompts) in enumerate(zip(job.sizes, job.prompts, strict=True)):
        tokens = [round(share * n) for share in job.shares]
        model = KineticFlow(job.beta, job.slope)
        run = sample_recall(model, n, tokens, job.t, prompts=prompts, seed=job.seed, dt=0.1)
        found.append(mean_and_error(run, "final_profile", over="prompt"))
        job.report((row + 1) / len(job.sizes))
    s0 = np.linspace(0.04, 1.0, job.points)
    places = ("size", "place")
    return xr.Dataset(
        {
            "sampled": (places, np.array([profile.values for profile, _ in found])),
            "error": (places, np.array([error.values for _, error in found])),
            "position": (places, np.array([profile.position.values for profile, _ in found])),
            "limit": (("s0",), theory.retrieval_profile(s0, job.beta, job.t, job.slope)),
        },
        coords={"size": list(job.sizes), "s0": s0},
        attrs={"beta": job.beta, "slope": job.slope, "t": job.t, "prompts": job.prompts},
    )


@recall.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    axes.plot(data.s0, data.limit, color=INK, lw=1.3, label="$S_t(s_0)$, limit of long prompts")
    for index, (n, prompts) in enumerate(
        zip(data["size"].values, data.attrs["prompts"], strict=True)
    ):
        one = data.sel(size=n)
        label = f"$N={n}$, {prompts} prompts"
        style = {"fmt": "os"[index], "ms": 4, "capsize": 2, "lw": 1, "color": PALETTE[index]}
        axes.errorbar(one.position, one.sampled, yerr=2 * one.error, label=label, **style)
    axes.set(xlabel=S0_LABEL, ylabel="$N$ (accuracy $-$ chance) $M/\\sqrt{2\\pi}$", xlim=(0, 1))
    axes.set_title(
        f"$t={data.attrs['t']:g}$, $\\beta={data.attrs['beta']:g}$, $\\lambda={data.attrs['slope']:g}$"
    )
    axes.legend(fontsize=8)
    return figure
