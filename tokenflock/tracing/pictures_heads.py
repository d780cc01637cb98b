"""Pictures of the heads: sinks, sharpness, temperature, spectra of the value maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plot.style import FAINT, INK, PALETTE
from ..trajectory import Trajectory
from .pictures_series import WIDTH, plain_decades
from .trace_values import chosen_layers, facts, mean
from .wording import attended_label, drawn

SHARES = "cividis"
# Brown repels, green attracts; told apart in every common form of colour blindness.
SIGNS = "BrBG"
MOST_PANELS = 12
# Shares of attention below it are drawn alike.
LEAST_MASS = 1e-4


def sinks(plt: Any, run: Trajectory) -> Any:
    """sink_share and first_mass by layer and head, and the mass of each token."""
    panels = [
        (mean(run, "sink_share"), "most attended token: share of attention", "head"),
        (mean(run, "first_mass"), "first token: share of attention", "head"),
    ]
    if "column_mass" in run:
        panels.append(
            (mean(run, "column_mass"), "each token: share of attention, all heads", "token")
        )
    highest = float(np.nanmax(panels[0][0]))
    heights = [_height(values.shape[1], what) for values, _, what in panels]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(WIDTH, sum(heights)), height_ratios=heights, squeeze=False
    )
    for axes, (values, title, what) in zip(grid[:, 0], panels, strict=True):
        if what == "head":
            heat(figure, axes, values, title, what, SHARES, limits=(0.0, highest))
        else:
            # A sink receives hundreds of times more than the rest.
            heat(
                figure, axes, np.maximum(values, LEAST_MASS), title, what, SHARES, logarithmic=True
            )
    if "column_mass" in run:
        _name_rows(grid[-1, 0], run, panels[-1][0])
    grid[-1, 0].set_xlabel("layer")
    figure.tight_layout(pad=0.5)
    return figure


def _height(rows: int, what: str) -> float:
    return float(np.clip(0.16 * rows, 1.3, 3.0 if what == "head" else 4.2)) + 0.45


def _name_rows(axes: Any, run: Trajectory, mass: np.ndarray) -> None:
    """Names of the few tokens that receive most, so that they do not overlap."""
    n = mass.shape[1]
    room = max(1, n // 22)
    chosen: list[int] = []
    for token in np.argsort(-mass.max(axis=0)):
        if all(abs(int(token) - other) >= room for other in chosen):
            chosen.append(int(token))
        if len(chosen) == 14:
            break
    names = [drawn(attended_label(run, token, mark="")) for token in chosen]
    axes.set_yticks(chosen, names)
    axes.tick_params(axis="y", labelsize=6.5)
    axes.set_ylabel("")


def attention(plt: Any, run: Trajectory) -> Any:
    """Entropy share and, where asked for, effective rank."""
    panels = [(mean(run, "attention_entropy_share"), "entropy / largest possible", (0.0, 1.0))]
    if "attention_rank" in run:
        rank = mean(run, "attention_rank")
        panels.append((rank, "effective rank of the attention matrix", (1.0, float(rank.max()))))
    return _stack(plt, panels, SHARES)


def temperatures(plt: Any, run: Trajectory) -> Any:
    """beta of the scores and of the weights, on one logarithmic scale each."""
    panels = [
        (mean(run, name), title, None)
        for name, title in (
            ("beta_logits", "beta from the measured scores"),
            ("beta_weights", "beta from the weights"),
        )
        if name in run
    ]
    return _stack(plt, panels, SHARES, logarithmic=True)


def _stack(plt: Any, panels: list[Any], colours: str, logarithmic: bool = False) -> Any:
    heights = [_height(values.shape[1], "head") for values, _, _ in panels]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(WIDTH, sum(heights)), height_ratios=heights, squeeze=False
    )
    for axes, (values, title, limits) in zip(grid[:, 0], panels, strict=True):
        heat(figure, axes, values, title, "head", colours, limits, logarithmic)
    grid[-1, 0].set_xlabel("layer")
    figure.tight_layout(pad=0.5)
    return figure


def heat(
    figure: Any,
    axes: Any,
    values: np.ndarray,
    title: str,
    what: str,
    colours: str,
    limits: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> None:
    """A (layer, row) array with layers 1..L along x; down go heads 1..H, or tokens from 0."""
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import MaxNLocator

    layers, rows = values.shape
    first = 1 if what == "head" else 0
    if logarithmic:
        positive = values[values > 0]
        low, high = (positive.min(), positive.max()) if len(positive) else (1.0, 1.0)
        scale: Any = LogNorm(low, max(high, 1.001 * low))
    else:
        scale = Normalize(*(limits or (None, None)))
    picture = axes.imshow(
        values.T,
        aspect="auto",
        cmap=colours,
        norm=scale,
        interpolation="nearest",
        extent=(0.5, layers + 0.5, first + rows - 0.5, first - 0.5),
    )
    axes.set_title(title, loc="left", pad=3)
    axes.set_ylabel(what)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.tick_params(labelsize=7)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    bar = figure.colorbar(picture, ax=axes, pad=0.015, aspect=14)
    bar.ax.tick_params(labelsize=7)
    if logarithmic:
        plain_decades(bar.ax.yaxis)


def spectra(plt: Any, run: Trajectory) -> Any:
    """By head for a shared layer; otherwise all heads of a few layers over the sign of every head."""
    real, imaginary = np.asarray(run.array("ov_real")), np.asarray(run.array("ov_imag"))
    share = mean(run, "ov_positive_share")
    if facts(run)["model"].get("distinct_layers") == 1:
        panels = [
            (f"head {head + 1}: {share[0, head]:.0%} positive", real[0, head], imaginary[0, head])
            for head in range(min(real.shape[1], MOST_PANELS))
        ]
        return _planes(plt, panels, None)
    panels = [
        (f"layer {layer + 1}, all heads", real[layer].ravel(), imaginary[layer].ravel())
        for layer in chosen_layers(len(real), 4)
    ]
    return _planes(plt, panels, share)


def _planes(plt: Any, panels: list[Any], share: np.ndarray | None) -> Any:
    """Complex planes; with `share`, a map of signs by layer and head below."""
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    extra = 0.0 if share is None else _height(share.shape[1], "head") + 0.2
    figure = plt.figure(figsize=(WIDTH, 1.6 * rows + 0.3 + extra), layout="constrained")
    parts = figure.subfigures(
        1 if share is None else 2,
        1,
        height_ratios=None if share is None else (1.6 * rows + 0.3, extra),
        squeeze=False,
    )[:, 0]
    grid = parts[0].subplots(rows, columns, squeeze=False)
    common = share is None
    for axes, (title, real, imaginary) in zip(grid.flat, panels, strict=False):
        axes.axvline(0, color=FAINT, lw=0.8, zorder=0)
        axes.axhline(0, color=FAINT, lw=0.8, zorder=0)
        colours = np.where(real > 0, PALETTE[2], PALETTE[1])
        axes.scatter(real, imaginary, s=5, c=colours, lw=0)
        axes.set_title(title, fontsize=7.5, pad=3)
        axes.tick_params(labelsize=6.5)
        axes.locator_params(nbins=4)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    if common:
        _same_limits(grid, panels)
    parts[0].supxlabel("real part", fontsize=8, color=INK)
    parts[0].supylabel("imaginary part", fontsize=8, color=INK)
    if share is not None:
        axes = parts[1].subplots()
        heat(
            parts[1],
            axes,
            share,
            "share of positive real parts (1 attracts, 0 repels)",
            "head",
            SIGNS,
            limits=(0.0, 1.0),
        )
        axes.set_xlabel("layer")
    return figure


def _same_limits(grid: Any, panels: list[Any]) -> None:
    """One scale for the heads of one layer: their sizes are to be compared."""
    real = np.concatenate([panel[1] for panel in panels])
    imaginary = np.concatenate([panel[2] for panel in panels])
    margin = 0.06 * max(np.ptp(real), np.ptp(imaginary), 1e-9)
    for axes in grid.flat:
        axes.set_xlim(real.min() - margin, real.max() + margin)
        axes.set_ylim(imaginary.min() - margin, imaginary.max() + margin)
