"""2601.21942: when random value matrices make tokens antipodal, and for how long."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ... import theory
from ...ledger.figure import FigureJob
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from . import PAPER, closed_forms
from .claims.chain import ETA, last, limit_overlaps, measured_exponent, overlaps, pairs, walk
from .claims.chain import uniform as uniform_tokens
from .claims.formations import formations
from .claims.hybrid import READINGS, THRESHOLD, measured_exponents, overlaps_at
from .claims.two_tokens import undecided


@PAPER.figure(
    "phase-diagram",
    title="Two tokens: where antipodes attract",
    shows="the Lyapunov exponent of 1 + R at R = -1, measured from single layers with random signs as value "
    "matrices: red where antipodal tokens leave one another, blue where they attract; its zero level is the "
    "curve cosh(2 beta) = d - 2, and for d <= 3 there is no red. Right: the same numbers (dots, bars of two "
    "standard errors) on their formula ((d-1)/cosh^2(beta) - 2)/d",
    quick={
        "dimensions": tuple(range(2, 17)),
        "betas": tuple(np.round(np.linspace(0.1, 2.5, 17), 4).tolist()),
        "lines": (3, 4, 8, 16),
        "entries": 200_000,
    },
    paper={"dimensions": tuple(range(2, 33)), "entries": 10_000_000},
)
def phase_diagram(job: FigureJob) -> xr.Dataset:
    """Measured exponents and their standard errors over (d, beta); `entries` random signs for each."""
    found = np.empty((len(job.dimensions), len(job.betas), 2))
    for row, d in enumerate(job.dimensions):
        runs = min(job.entries // d**2, job.entries // 25)
        for column, beta in enumerate(job.betas):
            found[row, column] = measured_exponent(d, beta, -1, runs, job.seed)
        job.report((row + 1) / len(job.dimensions))
    return xr.Dataset(
        {
            "exponent": (("d", "beta"), found[..., 0]),
            "error": (("d", "beta"), found[..., 1]),
            "threshold": (
                ("d",),
                np.asarray(closed_forms.antipodal_threshold(list(job.dimensions))),
            ),
            "shown": (("line",), list(job.lines)),
        },
        coords={"d": list(job.dimensions), "beta": list(job.betas)},
    )


@phase_diagram.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.1), layout="constrained")
    top = 0.6
    mesh = left.pcolormesh(
        data.beta, data.d, data.exponent, cmap="RdBu_r", vmin=-top, vmax=top, shading="nearest"
    )
    fine = np.linspace(0.0, float(data.beta.max()), 200)
    left.plot(fine, 2 + np.cosh(2 * fine), color=INK, lw=1.6)
    left.set(
        xlabel=r"$\beta$", ylabel="$d$", title=r"curve: $\cosh 2\beta=d-2$",
        xlim=(float(data.beta.min()), float(data.beta.max())),
        ylim=(float(data.d.min()) - 0.5, float(data.d.max()) + 0.5),
    )  # fmt: skip
    bar = figure.colorbar(mesh, ax=left, extend="both")
    bar.set_label("exponent of $1+R$ at $R=-1$")
    for x, y, words in ((0.06, 0.9, "antipodes repel"), (0.5, 0.3, "antipodes attract")):
        label = left.text(x, y, words, transform=left.transAxes, fontsize=8)
        label.set_bbox({"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 1.5})
    for colour, d in zip(PALETTE, data.shown.values, strict=False):
        one = data.sel(d=d)
        right.plot(fine, closed_forms.antipodal_exponent(int(d), fine), color=colour, lw=1)
        right.errorbar(
            one.beta,
            one.exponent,
            2 * one.error,
            fmt="o",
            ms=3,
            lw=0.8,
            color=colour,
            label=f"$d={d}$",
        )
    right.axhline(0.0, color=REST, lw=0.8)
    right.set(xlabel=r"$\beta$", ylabel="exponent", title="dots: measured; lines: formula")
    right.legend(fontsize=7)
    return figure


@PAPER.figure(
    "absorption",
    title="The chance of ending antipodal",
    shows="the probability that two tokens end at opposite points, against their overlap at the start: the "
    "scale function (lines), the layers of the network at eta = 0.15 (dots; bars of two standard errors, and "
    "the doubt about runs that are still under way) and the limit equation of R (crosses) agree; at d = 8, "
    "beta = 0.5, below the transition, the probability is 0",
    quick={
        "models": ((2, 1.0), (3, 1.0), (8, 2.0), (8, 0.5)),
        "starts": (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9),
        "runs": 150,
        "layers": 3000,
        "dt": 0.1,
    },
    paper={
        "starts": tuple(np.round(np.linspace(-0.9, 0.9, 13), 2).tolist()),
        "runs": 4000,
        "layers": 6000,
    },
)
def absorption(job: FigureJob) -> xr.Dataset:
    """Shares of R < 0 after the layers and after the same time of the limit, beside the probability."""
    starts = np.array(job.starts)
    each = np.repeat(starts, job.runs)
    chains, limits, doubts = [], [], []
    for index, (d, beta) in enumerate(job.models):
        rng = np.random.default_rng([job.seed, index])
        end = last(walk(pairs(each, d), beta, job.layers, rng))
        found = np.sum(end[0] * end[1], axis=0)
        chains.append(_share_below(found, job.runs))
        doubts.append([undecided(part, d, beta) for part in found.reshape(-1, job.runs)])
        time = job.layers * ETA**2
        limits.append(_share_below(limit_overlaps(each, d, beta, time, job.dt, job.seed), job.runs))
        job.report((index + 1) / len(job.models))
    fine = np.linspace(-0.99, 0.99, 199)
    exact = [closed_forms.antipodal_probability(fine, d, beta) for d, beta in job.models]
    return xr.Dataset(
        {
            "chain": (("model", "start"), np.array(chains)),
            "doubt": (("model", "start"), np.array(doubts)),
            "limit": (("model", "start"), np.array(limits)),
            "exact": (("model", "overlap"), np.array(exact)),
            "d": (("model",), [d for d, _ in job.models]),
            "beta": (("model",), [beta for _, beta in job.models]),
        },
        coords={"start": starts, "overlap": fine},
    )


def _share_below(values: np.ndarray, runs: int) -> np.ndarray:
    return np.mean(values.reshape(-1, runs) < 0, axis=1)


@absorption.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    runs = data.attrs["settings"]["runs"]
    for colour, model in zip(PALETTE, range(data.sizes["model"]), strict=False):
        one = data.isel(model=model)
        name = rf"$d={int(one.d)}$, $\beta={float(one.beta):g}$"
        axes.plot(one.overlap, one.exact, color=colour, lw=1.3, label=name)
        bars = 2 * np.sqrt(one.chain * (1 - one.chain) / runs) + one.doubt
        axes.errorbar(one.start, one.chain, bars, fmt="o", ms=4, lw=0.9, color=colour)
        axes.plot(one.start, one.limit, "x", ms=5, color=colour)
    axes.plot([], [], color=INK, lw=1.3, label="exact")
    axes.plot([], [], "o", color=INK, ms=4, label="layers")
    axes.plot([], [], "x", color=INK, ms=5, label="limit equation")
    axes.set(xlabel="$R_0$", ylabel=r"$P(R\to -1)$", xlim=(-1, 1), ylim=(-0.02, 1))
    axes.legend(fontsize=7.5)
    return figure


@PAPER.figure(
    "hybrid",
    title="Noise that turns collapse into antipodality, if it is read in the sense of Ito",
    shows="two tokens under unnormalised attention and one scalar noise. Left: the exponents of the angle "
    "near 0 and near pi change sign together at eps^2 e^beta = 2 (filled: Ito, on its formula); read in the "
    "sense of Stratonovich (open) they do not depend on the noise. Right: shares of runs that end on the "
    "side of R = -1; near the threshold runs are still under way at the time shown",
    quick={
        "beta": 1.0,
        "ratios": (0.5, 1.0, 1.4, 1.7, 2.0, 2.3, 2.6, 3.0, 3.5),
        "runs": 60,
        "t": 30.0,
        "dt": 0.01,
        "draws": 4000,
        "small": 1e-4,
    },
    paper={"runs": 500, "t": 120.0, "dt": 0.002, "draws": 100_000},
)
def hybrid(job: FigureJob) -> xr.Dataset:
    """Exponents (reading, ratio, end), their formula, and shares with R < 0 at the end."""
    ratios = np.array(job.ratios)
    exponents, shares = [], []
    for index, reading in enumerate(READINGS):
        exponents.append(
            measured_exponents(ratios, job.beta, job.draws, job.small, job.seed, reading)
        )
        each = np.repeat(ratios, job.runs)
        ends = overlaps_at(job.t, each, job.beta, job.dt, job.seed, reading)
        shares.append(_share_below(ends, job.runs))
        job.report((index + 1) / len(READINGS))
    fine = np.linspace(0.0, ratios[-1], 50)
    formula = theory.hybrid_exponents(fine * np.exp(-job.beta), job.beta)
    return xr.Dataset(
        {
            "exponent": (("reading", "ratio", "end"), np.array(exponents)),
            "share": (("reading", "ratio"), np.array(shares)),
            "formula": (("fine", "end"), np.stack(formula, axis=1)),
        },
        coords={"reading": list(READINGS), "ratio": ratios, "fine": fine, "end": ["0", "pi"]},
    )


@hybrid.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.3), layout="constrained")
    for colour, end, name in zip(PALETTE, ("0", "pi"), ("$0$", r"$\pi$"), strict=False):
        left.plot(data.fine, data.formula.sel(end=end), color=colour, lw=1.2)
        for reading, fill in zip(READINGS, (colour, "none"), strict=True):
            points = data.exponent.sel(reading=reading, end=end)
            label = f"angle near {name}" if reading == "ito" else None
            left.plot(data.ratio, points, "o", ms=4.5, color=colour, mfc=fill, label=label)
    left.axhline(0.0, color=REST, lw=0.8)
    left.set(ylabel="Lyapunov exponent", title="at the two ends")
    left.legend(fontsize=7.5)
    key = [
        stroke("-", "left: formula (Ito)", REST),
        mark("o", "left: Ito", REST),
        mark("o", "left: Stratonovich", REST, mfc="none"),
        stroke("--", "threshold", FAINT, lw=1.0),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=4, fontsize=7.5)
    runs = data.attrs["settings"]["runs"]
    for colour, reading in zip(PALETTE[2:], READINGS, strict=False):
        share = data.share.sel(reading=reading)
        bars = 2 * np.sqrt(share * (1 - share) / runs)
        right.errorbar(
            data.ratio, share, bars, fmt="o-", ms=4, lw=1, color=colour, label=reading.capitalize()
        )
    right.set(ylabel="share of runs with $R<0$", title=f"at $t={data.attrs['settings']['t']:g}$")
    right.legend(fontsize=7.5)
    for axes in (left, right):
        axes.axvline(THRESHOLD, color=FAINT, lw=1, ls="--", zorder=0)
        axes.set_xlabel(r"$\varepsilon^2 e^{\beta}$")
    return figure


@PAPER.figure(
    "formations",
    title="Many tokens: antipodal formations, and which of them last",
    shows="top: overlaps of eight tokens of one run, sorted at the end, which gather at two opposite points. "
    "Bottom: shares of runs over depth by the size of the smaller side; unequal sides lose their "
    "two-sidedness one by one, four against four is exactly invariant and never leaves; grey: not "
    "gathered yet",
    quick={
        "n": 8,
        "d": 3,
        "beta": 2.0,
        "runs": 100,
        "depths": (100, 300, 600, 1000, 1500, 2000, 3000, 4000),
        "shown": (0, 100, 400, 4000),
    },
    paper={
        "runs": 2000,
        "depths": (100, 300, 600, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12_000),
        "shown": (0, 100, 400, 12_000),
    },
)
def formations_figure(job: FigureJob) -> xr.Dataset:
    """Shares (depth, smaller side) of gathered runs, and the Gram matrices of one two-sided run."""
    found = formations(job.n, job.d, job.beta, job.runs, tuple(job.depths), job.seed)
    sizes = np.arange(job.n // 2 + 1)
    shares = [np.mean(found.gathered & (found.smaller == size), axis=1) for size in sizes]
    job.report(0.8)
    return xr.Dataset(
        {
            "share": (("side", "depth"), np.array(shares)),
            "gram": (("shown", "token", "other"), _one_run(job)),
        },
        coords={"side": sizes, "depth": list(job.depths), "shown": list(job.shown)},
    )


def _one_run(job: FigureJob) -> np.ndarray:
    """Overlaps at the shown depths of the first of sixteen runs that ends two-sided, sorted at the end."""
    rng = np.random.default_rng([job.seed, 1])
    x = uniform_tokens(rng, job.n, job.d, 16)
    states = [overlaps(x)]
    for before, after in zip(job.shown[:-1], job.shown[1:], strict=True):
        x = last(walk(x, job.beta, after - before, rng))
        states.append(overlaps(x))
    grams = np.array(states)
    lowest = np.min(grams[-1], axis=(0, 1))
    run = int(np.argmax(lowest < -0.99))
    order = np.argsort(grams[-1, 0, :, run] < 0, kind="stable")
    return grams[:, order][:, :, order, run]


@formations_figure.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure = plt.figure(figsize=(6.4, 4.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.35))
    panels = upper.subplots(1, data.sizes["shown"])
    for axes, depth in zip(panels, data.shown.values, strict=True):
        image = axes.imshow(data.gram.sel(shown=depth), vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set(title=f"layer {depth}", xticks=[], yticks=[], xlabel="token $j$")
    panels[0].set_ylabel("token $i$")
    upper.colorbar(image, ax=panels, label="$R_{ij}$", shrink=0.8)
    axes = lower.subplots()
    n = data.attrs["settings"]["n"]
    colours = (FAINT, *PALETTE)
    rest = 1 - data.share.sum("side")
    names = ["not gathered", "one point"] + [f"{k} against {n - k}" for k in data.side.values[1:]]
    order = [rest, *(data.share.sel(side=k) for k in data.side.values)]
    axes.stackplot(
        data.depth, *(part.values for part in order[::-1]), labels=names[::-1],
        colors=[colours[k] for k in range(len(order))][::-1], lw=0,
    )  # fmt: skip
    axes.set(
        xlabel="layers", ylabel="share of runs", ylim=(0, 1),
        xlim=(float(data.depth.min()), float(data.depth.max())),
    )  # fmt: skip
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5, reverse=True)
    return figure
