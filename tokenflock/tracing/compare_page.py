"""The picture and the page of a comparison: a column of histograms and a curve for every run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..plot.style import FAINT, INK, PALETTE, styled
from ..trajectory import Trajectory
from .compare import alignment, compare, names
from .html_page import (
    folded,
    heading,
    listing,
    page,
    paragraph,
    picture,
    table,
    to_png,
    write_files,
)
from .pictures_series import WIDTH
from .report import verdict_box, warning_box
from .trace_values import depth, facts, lengths, mean
from .verdict import verdict
from .wording import drawn

PAGE, PICTURE = "compare.html", "compare.png"
ROWS = 4
# Inches that a column of histograms needs.
COLUMN = 2.4
# Line styles, used in turn once all colours have been used.
DASHES = ("-", "--", ":", "-.")


def draw_compare(*runs: Trajectory) -> Any:
    """Histograms of each run at four depths, a column each; cosines and clusters of all below."""
    how, titles = alignment(runs)[0], names(*runs)
    width = max(WIDTH, COLUMN * len(runs))
    letters = int(96 * width / WIDTH / len(runs)) - 8
    with styled() as plt:
        figure = plt.figure(figsize=(width, 7.4), layout="constrained")
        grid = figure.add_gridspec(ROWS + 2, len(runs), height_ratios=[1.0] * ROWS + [2.0, 1.7])
        for side, run in enumerate(runs):
            axes = [figure.add_subplot(grid[row, side]) for row in range(ROWS)]
            _histograms(axes, run, _colour(side), _short(titles[side], letters))
            if side == 0:
                axes[1].set_ylabel("pairs, %", fontsize=8)
        cosine, clusters = (figure.add_subplot(grid[ROWS + row, :]) for row in range(2))
        for side, run in enumerate(runs):
            look = {"color": _colour(side), "ls": DASHES[side // len(PALETTE) % len(DASHES)]}
            _curves(cosine, clusters, run, how, look, titles[side])
        cosine.axhline(0, color=FAINT, lw=0.8, zorder=0)
        cosine.set(ylabel="mean cosine,\nsphere tokens", ylim=(min(0, cosine.get_ylim()[0]), 1.02))
        cosine.tick_params(labelbottom=False)
        cosine.legend(fontsize=7.5, loc="best")
        angle = facts(runs[0])["cluster_angle"]
        clusters.set(ylabel=f"clusters / tokens\n({angle:g} rad)", ylim=(0, 1.05), xlabel=how)
        figure.align_ylabels([cosine, clusters])
        return figure


def _colour(side: int) -> str:
    return PALETTE[side % len(PALETTE)]


def _histograms(axes: list[Any], run: Trajectory, colour: str, title: str) -> None:
    shares = 100.0 * mean(run, "cosine_histogram")
    centres = np.asarray(run.coords["cosine"])
    layers = [round(depth(run) * row / (ROWS - 1)) for row in range(ROWS)]
    for here, layer in zip(axes, layers, strict=True):
        here.bar(centres, shares[layer], width=centres[1] - centres[0], color=colour)
        here.text(0.02, 0.72, f"layer {layer}", transform=here.transAxes, fontsize=8, color=INK)
        here.set_xlim(-1, 1)
        here.set_xticks([-1, -0.5, 0, 0.5, 1])
        here.tick_params(labelsize=7, labelbottom=here is axes[-1])
        here.locator_params(axis="y", nbins=3)
    axes[0].set_title(drawn(title), fontsize=8.5)
    axes[-1].set_xlabel("cosine of a pair", fontsize=8)


def _short(title: str, most: int = 40) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"


def _curves(
    cosine: Any, clusters: Any, run: Trajectory, how: str, look: dict[str, Any], label: str
) -> None:
    places = np.asarray(run.time) / (1 if how == "layer" else depth(run))
    cosine.plot(places, mean(run, "sphere_cosine"), lw=1.6, label=drawn(_short(label)), **look)
    clusters.plot(places, mean(run, "clusters") / lengths(run).mean(), lw=1.6, **look)


def write_compare(runs: Sequence[Trajectory], folder: str | Path) -> Path:
    """Write folder/compare.html (self-contained) and folder/compare.png; returns the page's path."""
    folder = Path(folder)
    found = compare(*runs)
    png = to_png(draw_compare(*runs))
    document = _render(runs, found, png)
    write_files(folder, {PICTURE: png, PAGE: document.encode("utf-8")})
    return folder / PAGE


def _render(runs: Sequence[Trajectory], found: dict[str, Any], png: bytes) -> str:
    titles = names(*runs)
    return page(
        " | ".join(titles),
        [
            heading(f"{'Two' if len(runs) == 2 else len(runs)} traces side by side", 1),
            *(part for title, run in zip(titles, runs, strict=True) for part in _about(title, run)),
            heading("What differs"),
            listing(found["words"], ordered=True),
            picture(
                png,
                "Side by side",
                "Share of pairs of sphere tokens by their cosine at four depths, a column for each trace; "
                "below, mean cosine and clusters of all.",
                " ".join(found["words"]),
            ),
            heading("Numbers"),
            folded("Series of all and their differences from A", _table(found)),
        ],
    )


def _about(title: str, run: Trajectory) -> list[str]:
    return [
        heading(title),
        paragraph(facts(run)["model"]["name"], "quiet"),
        warning_box(run),
        verdict_box(verdict(run), f"Verdict on {title[:1]}"),
    ]


def _table(found: dict[str, Any]) -> str:
    places = found["depth"]
    columns: dict[str, Any] = {found["aligned"]: places}
    for name, values in found["layers"].items():
        shown = {letter.upper(): values[letter] for letter in found["runs"]}
        shown |= {f"{each.upper()} - A": gaps for each, gaps in values["difference"].items()}
        for label, numbers in shown.items():
            gap = [None] * (len(places) - len(numbers))
            columns[f"{name.replace('_', ' ')} {label}"] = gap + numbers
    return table(columns, "means over texts and heads")
