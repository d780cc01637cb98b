"""Pictures with the layer on one axis: histogram, cosines, clusters, norms, speeds, growth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..plot.style import FAINT, INK, PALETTE
from ..trajectory import Trajectory
from .trace_values import band, by_text, chosen_layers, depth, facts, labels, lengths, mean, texts
from .wording import drawn, shown

WIDTH = 6.4
PANELS = 8
BAND_ALPHA = 0.18
# Lines of single tokens that are drawn, evenly chosen of more.
MOST_LINES = 400
# A token whose norm exceeds the median this many times is drawn apart.
OUTLIER = 5.0


def histogram(plt: Any, run: Trajectory) -> Any:
    """Small multiples of the cosine histogram; each has its own height, since heaps grow tall."""
    shares = 100.0 * mean(run, "cosine_histogram")
    centres = np.asarray(run.coords["cosine"])
    layers = chosen_layers(len(shares), PANELS)
    rows = (len(layers) + 3) // 4
    figure, grid = plt.subplots(
        rows, 4, figsize=(WIDTH, 0.5 + 1.45 * rows), sharex=True, squeeze=False
    )
    cosine = mean(run, "sphere_cosine")
    for axes, layer in zip(grid.flat, layers, strict=False):
        axes.bar(centres, shares[layer], width=centres[1] - centres[0], color=PALETTE[0])
        axes.axvline(cosine[layer], color=PALETTE[1], lw=1.0)
        axes.set_title(f"layer {layer}", pad=3)
        axes.set_xlim(-1, 1)
        axes.set_xticks([-1, 0, 1])
        axes.tick_params(labelsize=7)
        axes.locator_params(axis="y", nbins=3)
    for axes in list(grid.flat)[len(layers) :]:
        axes.set_visible(False)
    figure.supxlabel("cosine of a pair (line: mean)", fontsize=9)
    figure.supylabel("pairs, %", fontsize=9)
    figure.tight_layout(pad=0.5)
    return figure


def cosines(plt: Any, run: Trajectory) -> Any:
    """Mean cosine by layer with its band and the equiangular curve."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.3))
    layers = np.asarray(run.time)
    many = texts(run) > 1
    _cosine_band(axes, run, layers, many)
    axes.plot(layers, mean(run, "sphere_cosine"), color=PALETTE[0], lw=1.6, label="sphere tokens")
    hidden = mean(run, "mean_cosine")
    axes.plot(layers, hidden, color=PALETTE[1], lw=1.2, label="hidden states")
    if "mean_cosine_rest" in run:
        rest = mean(run, "mean_cosine_rest")
        if np.nanmax(np.abs(rest - hidden), initial=0.0) > 0.02:
            axes.plot(layers, rest, color=PALETTE[2], lw=1.2, label="hidden, first token left out")
    if "equiangular_cosine" in run:
        beta = facts(run)["reference_beta"]
        theory = mean(run, "equiangular_cosine")
        axes.plot(layers, theory, color=INK, lw=1.0, ls="--", label=f"equiangular, beta {beta:.3g}")
    low = min(0.0, axes.get_ylim()[0])
    axes.set(xlabel="layer", ylabel="mean cosine", ylim=(max(-1.0, low), 1.02))
    whole_layers(axes)
    below(figure, axes)
    return figure


def _cosine_band(axes: Any, run: Trajectory, layers: np.ndarray, many: bool) -> None:
    if many:
        low, high = band(run, "sphere_cosine")
        axes.fill_between(
            layers, low, high, color=PALETTE[0], alpha=BAND_ALPHA, lw=0, label="5-95 % of texts"
        )
    elif "cosine_quantiles" in run:
        levels = mean(run, "cosine_quantiles").T
        for low, high, label, alpha in ((0, 4, "5-95 % of pairs", 0.15), (1, 3, "25-75 %", 0.3)):
            axes.fill_between(
                layers,
                levels[low],
                levels[high],
                color=PALETTE[0],
                alpha=alpha,
                lw=0,
                label=label,
            )


def clusters(plt: Any, run: Trajectory) -> Any:
    """Clusters by layer at every angle; logarithmic where they fall below a tenth of the tokens."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.9))
    layers, many = np.asarray(run.time), texts(run) > 1
    values = np.asarray(by_text(run, "clusters_at"), dtype=float)
    if many:
        values = values / lengths(run)[:, None, None]
    for index, angle in enumerate(run.coords["angle"]):
        each = values[..., index]
        colour = PALETTE[index % len(PALETTE)]
        axes.plot(layers, each.mean(axis=0), color=colour, lw=1.5, label=f"within {angle:g} rad")
        if many:
            low, high = np.percentile(each, (5, 95), axis=0)
            axes.fill_between(layers, low, high, color=colour, alpha=BAND_ALPHA, lw=0)
    most = 1.0 if many else float(lengths(run)[0])
    axes.axhline(most, color=FAINT, lw=0.8, zorder=0)
    axes.set(
        xlabel="layer", ylabel="clusters / tokens" if many else f"clusters of {most:.0f} tokens"
    )
    if values.mean(axis=0).min() < most / 10:
        axes.set_yscale("log")
        plain_decades(axes.yaxis)
    else:
        axes.set_ylim(0, 1.05 * most)
    whole_layers(axes)
    below(figure, axes)
    return figure


def norms(plt: Any, run: Trajectory) -> Any:
    """Norms by layer with outlier tokens apart, over the share of the strongest coordinate."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(WIDTH, 4.4), sharex=True, height_ratios=(1.7, 1.0)
    )
    layers = np.asarray(run.time)
    if "norms" in run:
        _token_norms(top, run, layers)
    else:
        low, high = band(run, "norm_median")
        top.fill_between(layers, low, high, color=PALETTE[0], alpha=BAND_ALPHA, lw=0)
        top.plot(layers, mean(run, "norm_max"), color=PALETTE[1], lw=1.3, label="largest")
    top.plot(layers, mean(run, "norm_median"), color=PALETTE[0], lw=1.7, label="median")
    _log_if_wide(top)
    top.set_ylabel("norm of a hidden state")
    above(top)
    _outlier_coordinate(bottom, run, layers)
    whole_layers(bottom)
    figure.align_ylabels()
    figure.tight_layout(pad=0.5)
    return figure


def _token_norms(axes: Any, run: Trajectory, layers: np.ndarray) -> None:
    values = np.asarray(run.array("norms"))
    ratio = values / np.maximum(np.median(values, axis=1, keepdims=True), 1e-300)
    order = ratio.max(axis=0).argsort()[::-1]
    apart = [int(token) for token in order[:3] if ratio[:, token].max() > OUTLIER]
    rest = [token for token in range(values.shape[1]) if token not in apart]
    rest = rest[:: -(-len(rest) // MOST_LINES)] if rest else rest
    axes.plot(layers, values[:, rest], color=FAINT, lw=0.5, zorder=0)
    for index, token in enumerate(apart):
        colour = PALETTE[1 + index]
        name = drawn(f"token {token}: {shown(labels(run)[0][token])}")
        axes.plot(layers, values[:, token], color=colour, lw=1.5, label=name)


def _log_if_wide(axes: Any) -> None:
    """Logarithmic from a factor of ten on; a narrow range would lose its tick labels."""
    values = np.concatenate([line.get_ydata() for line in axes.lines])
    positive = values[values > 0]
    if len(positive) and positive.max() > 10 * positive.min():
        axes.set_yscale("log")
        plain_decades(axes.yaxis)
    elif len(positive):
        axes.set_ylim(0, 1.08 * positive.max())


def _outlier_coordinate(axes: Any, run: Trajectory, layers: np.ndarray) -> None:
    """Its share, with the number of the coordinate over its longest stretches."""
    share = 100 * mean(run, "outlier_share")
    place = mean(run, "outlier_dimension").astype(int)
    axes.plot(layers, share, color=PALETTE[3], lw=1.4)
    axes.set(xlabel="layer", ylabel="largest share\nof a coordinate, %")
    axes.set_ylim(0, 1.35 * max(np.nanmax(share, initial=0.0), 1.0))
    room, named = len(layers) / 12, []
    for start, stop in sorted(_stretches(place), key=lambda each: each[0] - each[1]):
        middle = (start + stop) // 2
        if all(abs(middle - other) >= room for other in named):
            named.append(middle)
            axes.annotate(
                f"#{place[middle]}",
                (layers[middle], share[middle]),
                xytext=(0, 5),
                textcoords="offset points",
                fontsize=7,
                ha="left" if middle == 0 else "center" if middle < len(layers) - 1 else "right",
            )


def _stretches(place: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of every run of equal numbers."""
    edges = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(place)]
    return [(start, stop - 1) for start, stop in itertools.pairwise(edges)]


def speeds(plt: Any, run: Trajectory) -> Any:
    """Turning per layer and change of the cosine, each beside its prediction."""
    second = "cosine_rate" in run
    figure, grid = plt.subplots(
        1 + second, 1, figsize=(WIDTH, 2.6 + 2.2 * second), sharex=True, squeeze=False
    )
    top = grid[0, 0]
    steps = np.arange(1, depth(run) + 1)
    for index, (name, label) in enumerate(
        (("turning_angle", "whole layer"), ("turning_angle_attention", "attention alone"))
    ):
        if name in run:
            _with_prediction(top, run, steps, name, label, PALETTE[index])
    top.set_ylabel("angle turned, rad/layer")
    _log_if_wide(top)
    above(top)
    if second:
        _with_prediction(grid[1, 0], run, steps, "cosine_rate", "sphere cosine", PALETTE[2])
        grid[1, 0].axhline(0, color=FAINT, lw=0.8, zorder=0)
        grid[1, 0].set_ylabel("change of the cosine")
        above(grid[1, 0])
    grid[-1, 0].set_xlabel("layer")
    whole_layers(grid[-1, 0])
    figure.align_ylabels()
    figure.tight_layout(pad=0.5)
    return figure


def _with_prediction(
    axes: Any, run: Trajectory, steps: np.ndarray, name: str, label: str, colour: str
) -> None:
    axes.plot(steps, mean(run, name), color=colour, lw=1.5, label=label)
    if texts(run) > 1:
        axes.fill_between(steps, *band(run, name), color=colour, alpha=BAND_ALPHA, lw=0)
    if f"{name}_predicted" in run:
        theory = mean(run, f"{name}_predicted")
        axes.plot(steps, theory, color=colour, lw=1.1, ls="--", label=f"{label}, theory")


def growth(plt: Any, run: Trajectory) -> Any:
    """Growth of a perturbation, and from where rounding decides."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    layers = np.asarray(run.time)
    axes.semilogy(layers, mean(run, "perturbation_growth"), color=PALETTE[0], lw=1.5)
    plain_decades(axes.yaxis)
    axes.axhline(1.0, color=FAINT, lw=0.8, zorder=0)
    layer = (facts(run).get("rounding") or {}).get("decides_from_layer")
    if layer is not None:
        axes.axvspan(layer, layers[-1], color=PALETTE[1], alpha=BAND_ALPHA, lw=0)
        axes.axvline(layer, color=PALETTE[1], lw=1.0, label=f"rounding decides from layer {layer}")
        above(axes)
    axes.set(xlabel="layer", ylabel="perturbation,\nrelative to the start")
    whole_layers(axes)
    figure.tight_layout(pad=0.5)
    return figure


def plain_decades(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers at 1, 2, 5 of each decade, few enough to read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    wide = high > 1e3 * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=7))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.6g}"))


def whole_layers(axes: Any) -> None:
    """Ticks at whole layers only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    axes.margins(x=0.01)


def above(axes: Any) -> None:
    """A legend in one line over the axes."""
    axes.legend(fontsize=7, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)


def below(figure: Any, axes: Any) -> None:
    """A legend under the axes, where no curve can run."""
    handles, names = axes.get_legend_handles_labels()
    figure.tight_layout(pad=0.5)
    columns = 3
    rows = -(-len(handles) // columns)
    figure.subplots_adjust(bottom=axes.get_position().y0 + 0.065 * rows)
    figure.legend(handles, names, fontsize=7.5, ncols=columns, loc="lower center")
