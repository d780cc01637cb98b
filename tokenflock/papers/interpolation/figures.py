"""2502.02270: sequences carried to points by hardmax blocks, in this project's simple version."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...construct import Attend, Push, error_table, interpolate_sequences, random_sequences
from ...ledger.figure import FigureJob
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from . import PAPER

STAGES = ("sequences", "collapsed", "across $p$", "along $p$")
# The error that the claim of exact interpolation asks for.
ASKED = 1e-8


@PAPER.figure(
    "carried",
    title="Sequences collapse to their extreme tokens, which single neurons carry to targets",
    shows="this project's simple version of exact interpolation, not the construction of the paper. Five "
    "sequences in the plane (dots, one colour each); one hardmax layer moves every token to the "
    "extreme one of its sequence (large dots); five neurons that push across the direction p and "
    "five that push along it bring each point to its target (crosses), in steps drawn as lines",
    quick={"sequences": 5, "shortest": 6, "longest": 24},
)
def carried(job: FigureJob) -> xr.Dataset:
    """Tokens as given and as the shift leaves them, and every sequence's point after each later block."""
    lengths = (job.shortest, job.longest)
    sequences, targets = random_sequences(job.sequences, 2, job.seed, lengths)
    network = interpolate_sequences(sequences, targets, job.seed)
    _, attend, *pushes = network.blocks
    first = pushes[0]
    assert isinstance(attend, Attend)
    assert isinstance(first, Push)
    most = max(len(tokens) for tokens in sequences)
    given, moved = np.full((2, job.sequences, most, 2), np.nan)
    paths = np.empty((job.sequences, 1 + len(pushes), 2))
    for index, tokens in enumerate(sequences):
        given[index, : len(tokens)] = tokens
        states = np.asarray(network.run(tokens).states)
        moved[index, : len(tokens)] = attend.value * states[1]
        paths[index] = states[2:, 0]
        job.report((index + 1) / job.sequences)
    return xr.Dataset(
        {
            "tokens": (("sequence", "token", "axis"), given),
            "moved": (("sequence", "token", "axis"), moved),
            "path": (("sequence", "block", "axis"), paths),
            "target": (("sequence", "axis"), targets),
            "p": (("axis",), first.inner),
            "error": network.error(sequences, targets),
        }
    )


@carried.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    count = data.sizes["sequence"]
    figure, panels = plt.subplots(1, 4, figsize=(9.2, 3.0), layout="constrained")
    spans = ((0, 1), (0, 1 + count), (count, 1 + 2 * count))
    for index in range(count):
        one, colour = data.isel(sequence=index), PALETTE[index % len(PALETTE)]
        panels[0].plot(*one.tokens.values.T, "o", color=colour, ms=3)
        for token in one.moved.values:
            panels[1].plot(
                *np.array([token, one.path.values[0]]).T, color=colour, lw=0.5, alpha=0.5
            )
        for axes, (first, after) in zip(panels[1:], spans, strict=True):
            way = one.path.values[first:after]
            axes.plot(*way.T, ".-", color=colour, lw=0.8, ms=2, alpha=0.6)
            axes.plot(*way[-1], "o", color=colour, ms=6)
            axes.plot(*one.target.values, "x", color=INK, ms=6, mew=1.2)
    for axes, name in zip(panels, STAGES, strict=True):
        axes.set(title=name, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
        axes.set_adjustable("datalim")
    for axes in panels[2:]:
        _show_direction(axes, data.p.values)
    panels[3].set_title(f"{STAGES[3]}: error {float(data.error):.0e}")
    key = [
        mark("o", "token (a colour for each sequence)", REST, ms=3),
        stroke("-", "way of a token, then of its point", REST, lw=0.8),
        mark("o", "the point of a sequence", REST, ms=6),
        mark("x", "its target", ms=6),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=4)
    return figure


def _show_direction(axes: Any, p: np.ndarray) -> None:
    """An arrow for p in the lower right corner."""
    style = {"arrowstyle": "->", "color": INK, "lw": 1}
    start = np.array([0.85, 0.15])
    tips = {"xycoords": "axes fraction", "fontsize": 8, "ha": "center", "va": "center"}
    axes.annotate("", xy=start + 0.1 * p, xytext=start - 0.1 * p, arrowprops=style, **tips)
    axes.annotate("$p$", xy=start + 0.08 * np.array([-p[1], p[0]]), **tips)


@PAPER.figure(
    "error-table",
    title="How exact exact interpolation is in double precision",
    shows="the largest error over all tokens of N Gaussian sequences of 2 to 60 tokens, by a forward pass "
    "of 2N + 2 blocks, for several seeds (dots; line: median). Right: the error follows the amplification, "
    "a Lipschitz constant of all neurons together, times the rounding unit: conditioning, not theory, "
    "sets the digits",
    quick={"counts": (2, 5, 10, 20), "dimensions": (2, 8), "seeds": 5},
    paper={"counts": (2, 5, 10, 20, 40, 80), "dimensions": (2, 3, 8, 16), "seeds": 60},
)
def error_figure(job: FigureJob) -> xr.Dataset:
    """The table of errors and conditioning over (N, d, seed)."""
    return error_table(
        tuple(job.counts),
        tuple(job.dimensions),
        range(job.seed, job.seed + job.seeds),
        report=job.report,
    )


@error_figure.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.0), layout="constrained")
    for colour, d in zip(PALETTE, data.d.values, strict=False):
        one = data.sel(d=d)
        flat = np.broadcast_to(one.N.values[:, None], one.error.shape)
        left.plot(flat.ravel(), one.error.values.ravel(), "o", color=colour, ms=2.5, alpha=0.5)
        left.plot(one.N, one.error.median("seed"), color=colour, lw=1.3, label=f"$d={d}$, median")
        right.plot(
            one.amplification.values.ravel(),
            one.error.values.ravel(),
            "o",
            color=colour,
            ms=2.5,
            label=f"$d={d}$, one seed",
        )
    left.axhline(ASKED, color=REST, lw=0.8, ls="--", label="asked for: $10^{-8}$")
    left.set(xlabel="sequences $N$", ylabel="largest error", xscale="log", yscale="log")
    left.set_xticks(data.N.values, [str(N) for N in data.N.values])
    left.minorticks_off()
    left.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0.0, 0.93))
    steep = np.array([float(data.amplification.min()), float(data.amplification.max())])
    right.plot(
        steep, 2.2e-16 * steep, color=FAINT, lw=1, label="rounding unit $\\times$ amplification"
    )
    right.set(xlabel="amplification", ylabel="largest error", xscale="log", yscale="log")
    right.legend(fontsize=7.5)
    return figure
