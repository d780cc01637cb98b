"""Two traces side by side: two checkpoints, or one with and without an intervention."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..plain import plain
from ..plot.style import FAINT, INK, PALETTE, styled
from ..trajectory import Trajectory
from .page import folded, heading, listing, page, paragraph, picture, table, to_png, write_files
from .pictures_series import WIDTH
from .reading import changes, depth, drawn, facts, labels, lengths, mean, number, texts
from .report import verdict_box, warning_box
from .verdict import LAYER_SERIES, STATE_SERIES, verdict

PAGE, PICTURE = "compare.html", "compare.png"
# Mean cosines further apart than this are said to differ.
DIFFERS = 0.1
ROWS = 4
HEADS = ("attention_entropy_share", "sink_share", "first_mass", "beta_logits")


def compare(a: Trajectory, b: Trajectory) -> dict[str, Any]:
    """Both verdicts, and b - a of every series that both have, as strict JSON.

    Layers are compared one to one where the two have the same depth or are passes through the same
    checkpoint (then over the layers both have); otherwise at the same relative depth l/L, by linear
    interpolation on the deeper grid. `aligned` says which. Heads are averaged.
    """
    how, grid = _grid(a, b)
    series = {
        name: _pair(a, b, name, how, grid)
        for name in (*STATE_SERIES, *LAYER_SERIES, *HEADS)
        if name in a and name in b and name != "outlier_dimension"
    }
    found = {
        "a": _side(a, b),
        "b": _side(b, a),
        "aligned": how,
        "depth": grid,
        "layers": series,
        "first_difference": _first(series, grid),
    }
    found["words"] = _words(a, b, found)
    return plain(found)


def names(a: Trajectory, b: Trajectory) -> tuple[str, str]:
    """What tells the two apart: the intervention, the model, or both; A and B where nothing does."""
    models = [facts(run)["model"]["name"] for run in (a, b)]
    changed = [changes(run) for run in (a, b)]
    if models[0] == models[1]:
        said = changed
    elif changed[0] == changed[1] == "as trained":
        said = models
    else:
        said = [f"{model}, {change}" for model, change in zip(models, changed, strict=True)]
    return (f"A: {said[0]}", f"B: {said[1]}")


def _side(run: Trajectory, other: Trajectory) -> dict[str, Any]:
    found = facts(run)
    return {
        "model": found["model"],
        "interventions": found["interventions"],
        "texts": texts(run),
        "tokens": float(lengths(run).mean()),
        "layers": depth(run),
        "verdict": asdict(verdict(run)),
        "notes": found["notes"],
        "missing": found["missing"],
        "same_tokens": labels(run) == labels(other),
    }


def _grid(a: Trajectory, b: Trajectory) -> tuple[str, np.ndarray]:
    """How layers are matched, and at which places: layers, or relative depths."""
    sources = [facts(run)["model"].get("source") for run in (a, b)]
    same = bool(sources[0]) and sources[0] == sources[1]
    if depth(a) == depth(b) or same:
        return "layer", np.arange(min(depth(a), depth(b)) + 1, dtype=float)
    deepest = max(depth(a), depth(b))
    return "relative depth", np.arange(deepest + 1) / deepest


def _pair(a: Trajectory, b: Trajectory, name: str, how: str, grid: np.ndarray) -> dict[str, Any]:
    one, other = (_at(run, name, how, grid) for run in (a, b))
    return {"a": one, "b": other, "difference": other - one}


def _at(run: Trajectory, name: str, how: str, grid: np.ndarray) -> np.ndarray:
    """One series on the grid; a step from l - 1 to l stands at the middle of the two depths."""
    values = mean(run, name)
    values = values.mean(axis=-1) if values.ndim > 1 else values
    steps = len(values) == depth(run)
    if how == "layer":
        return values[: len(grid) - 1] if steps else values[: len(grid)]
    places = (np.arange(len(values)) + (0.5 if steps else 0.0)) / depth(run)
    wanted = (grid[1:] + grid[:-1]) / 2 if steps else grid
    return np.interp(wanted, places, values)


def _first(series: dict[str, Any], grid: np.ndarray) -> dict[str, Any]:
    """Where the mean cosines first differ by more than 0.1."""
    gaps = np.abs(series["mean_cosine"]["difference"])
    wide = np.flatnonzero(gaps > DIFFERS)
    place = float(grid[wide[0]]) if len(wide) else None
    return {"series": "mean_cosine", "threshold": DIFFERS, "at": place}


def _words(a: Trajectory, b: Trajectory, found: dict[str, Any]) -> list[str]:
    one, other = found["a"]["verdict"]["word"], found["b"]["verdict"]["word"]
    said = [
        f"both: {one}" if one == other else f"A: {one}; B: {other}",
        _apart(found),
        _ends(a, b),
        *_largest(found),
    ]
    if found["aligned"] != "layer":
        said.append(
            f"A has {depth(a)} layers and B {depth(b)}: they are compared at equal relative depth"
        )
    elif depth(a) != depth(b):
        said.append(
            f"A has {depth(a)} layers and B {depth(b)} of the same checkpoint: the common layers are "
            "compared one to one, the ends as they are"
        )
    if not found["a"]["same_tokens"]:
        said.append("the two did not read the same tokens: differences come from the text as well")
    return [sentence[:1].upper() + sentence[1:] + "." for sentence in said]


def _apart(found: dict[str, Any]) -> str:
    at = found["first_difference"]["at"]
    gaps = np.abs(found["layers"]["mean_cosine"]["difference"])
    unit = "layer" if found["aligned"] == "layer" else "relative depth"
    if at is None:
        largest = np.nanmax(gaps, initial=0.0)
        return f"mean cosines never differ by more than {DIFFERS:g} (most {largest:.3f})"
    place = int(np.nanargmax(gaps))
    return (
        f"mean cosines first differ by more than {DIFFERS:g} at {unit} {at:.3g}, and most at {unit} "
        f"{found['depth'][place]:.3g} ({found['layers']['mean_cosine']['difference'][place]:+.3f})"
    )


def _ends(a: Trajectory, b: Trajectory) -> str:
    cosines = [mean(run, "sphere_cosine")[-1] for run in (a, b)]
    counts = [mean(run, "clusters")[-1] for run in (a, b)]
    sizes = [lengths(run).mean() for run in (a, b)]
    ranks = [mean(run, "effective_rank")[-1] for run in (a, b)]
    return (
        f"at the end the sphere cosine is {cosines[0]:.3f} in A and {cosines[1]:.3f} in B, with "
        f"{number(counts[0])} clusters of {number(sizes[0])} tokens against {number(counts[1])} of "
        f"{number(sizes[1])} and an effective rank of {number(ranks[0])} against {number(ranks[1])}"
    )


def _largest(found: dict[str, Any]) -> list[str]:
    """Other series whose means over depth differ by more than a factor of 1.5."""
    said = []
    for name in ("norm_median", "speed", "attention_entropy_share", "sink_share", "beta_logits"):
        pair = found["layers"].get(name)
        if pair is None:
            continue
        one, other = (float(np.nanmean(np.abs(pair[side]))) for side in ("a", "b"))
        if min(one, other) > 0 and max(one, other) > 1.5 * min(one, other):
            said.append(f"{name.replace('_', ' ')} {number(one)} in A, {number(other)} in B")
    return ["means over depth that differ by half or more: " + "; ".join(said)] if said else []


def draw_compare(a: Trajectory, b: Trajectory) -> Any:
    """Histograms of A (left) and B (right) at four depths; cosines and clusters of both below."""
    with styled() as plt:
        figure = plt.figure(figsize=(WIDTH, 7.4), layout="constrained")
        grid = figure.add_gridspec(ROWS + 2, 2, height_ratios=[1.0] * ROWS + [2.0, 1.7])
        for side, run in enumerate((a, b)):
            axes = [figure.add_subplot(grid[row, side]) for row in range(ROWS)]
            _histograms(axes, run, PALETTE[side], names(a, b)[side])
        cosine, clusters = (figure.add_subplot(grid[ROWS + row, :]) for row in range(2))
        for side, run in enumerate((a, b)):
            _curves(cosine, clusters, run, _grid(a, b)[0], PALETTE[side], names(a, b)[side])
        cosine.axhline(0, color=FAINT, lw=0.8, zorder=0)
        cosine.set(ylabel="mean cosine,\nsphere tokens", ylim=(min(0, cosine.get_ylim()[0]), 1.02))
        cosine.tick_params(labelbottom=False)
        cosine.legend(fontsize=7.5, loc="best")
        angle = facts(a)["cluster_angle"]
        clusters.set(ylabel=f"clusters / tokens\n({angle:g} rad)", ylim=(0, 1.05))
        clusters.set_xlabel(_grid(a, b)[0])
        figure.align_ylabels([cosine, clusters])
        return figure


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
    axes[0].set_title(drawn(_short(title)), fontsize=8.5)
    axes[-1].set_xlabel("cosine of a pair", fontsize=8)
    axes[1].set_ylabel("pairs, %", fontsize=8)


def _short(title: str, most: int = 40) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"


def _curves(cosine: Any, clusters: Any, run: Trajectory, how: str, colour: str, label: str) -> None:
    places = np.asarray(run.time) / (1 if how == "layer" else depth(run))
    label = drawn(_short(label))
    cosine.plot(places, mean(run, "sphere_cosine"), color=colour, lw=1.6, label=label)
    share = mean(run, "clusters") / lengths(run).mean()
    clusters.plot(places, share, color=colour, lw=1.6)


def write_compare(a: Trajectory, b: Trajectory, folder: str | Path) -> Path:
    """Write folder/compare.html (self-contained) and folder/compare.png; returns the page's path."""
    folder = Path(folder)
    found = compare(a, b)
    png = to_png(draw_compare(a, b))
    document = _render(a, b, found, png)
    write_files(folder, {PICTURE: png, PAGE: document.encode("utf-8")})
    return folder / PAGE


def _render(a: Trajectory, b: Trajectory, found: dict[str, Any], png: bytes) -> str:
    first, second = names(a, b)
    return page(
        f"{first} | {second}",
        [
            heading("Two traces side by side", 1),
            heading(first),
            paragraph(facts(a)["model"]["name"], "quiet"),
            warning_box(a),
            verdict_box(verdict(a), "Verdict on A"),
            heading(second),
            paragraph(facts(b)["model"]["name"], "quiet"),
            warning_box(b),
            verdict_box(verdict(b), "Verdict on B"),
            heading("What differs"),
            listing(found["words"], ordered=True),
            picture(
                png,
                "Side by side",
                "Share of pairs of sphere tokens by their cosine at four depths, A left and B right; "
                "below, mean cosine and clusters of both.",
                " ".join(found["words"]),
            ),
            heading("Numbers"),
            folded("Series of both and their difference", _table(found)),
        ],
    )


def _table(found: dict[str, Any]) -> str:
    places = found["depth"]
    columns: dict[str, Any] = {found["aligned"]: places}
    for name, pair in found["layers"].items():
        for side, label in (("a", "A"), ("b", "B"), ("difference", "B - A")):
            values = pair[side]
            gap = [None] * (len(places) - len(values))
            columns[f"{name.replace('_', ' ')} {label}"] = gap + values
    return table(columns, "means over texts and heads")
