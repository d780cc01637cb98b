"""The report of a trace: one HTML page that needs nothing else, and its pictures as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..results.strict_json import plain
from ..trajectory import Trajectory
from .html_page import (
    box,
    escaped,
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
from .narrative import REGIME, plain_words
from .pictures import PICTURES, caption, draw_all
from .trace_values import depth, facts, labels, lengths, texts
from .verdict import Verdict, layer_lists, verdict
from .wording import changes, number, shown

REPORT = "report.html"
MOST_TOKENS_SHOWN = 2000


def write_report(run: Trajectory, folder: str | Path) -> Path:
    """Write folder/report.html and folder/NAME.png; returns the path of the page.

    Files appear when they are complete, the page last, so that an interrupted report leaves the
    earlier one readable. Other files in the folder are left alone.
    """
    folder = Path(folder)
    figures = draw_all(run)
    captions = {name: caption(name, figure) for name, figure in figures.items()}
    pictures = {name: to_png(figure) for name, figure in figures.items()}
    document = render(run, pictures, captions)
    files = {f"{name}.png": content for name, content in pictures.items()}
    files[REPORT] = document.encode("utf-8")
    write_files(folder, files, stale=[f"{name}.png" for name in PICTURES])
    return folder / REPORT


def render(run: Trajectory, pictures: dict[str, bytes], captions: dict[str, str]) -> str:
    """The page, from the run and its pictures as PNG."""
    ruling = verdict(run)
    words = [each for each in plain_words(run) if not each.lower().startswith(REGIME)]
    title = f"Trace of {facts(run)['model']['name']}"
    return page(
        title,
        [
            heading(title, 1),
            paragraph(_subtitle(run), "quiet"),
            warning_box(run),
            verdict_box(ruling),
            heading("What happened to the tokens"),
            listing(words, ordered=True),
            heading("Pictures"),
            *(
                picture(png, PICTURES[name].title, captions[name], _alternative(run, name, ruling))
                for name, png in pictures.items()
            ),
            heading("How to read this"),
            how_to_read(run),
            heading("Numbers"),
            folded("Layer by layer", layer_table(run)),
            folded("The tokens", _tokens(run)),
            folded("The model and the run", _about(run)),
        ],
    )


def _subtitle(run: Trajectory) -> str:
    sizes = lengths(run)
    what = f"{texts(run)} texts" if texts(run) > 1 else f"one text of {sizes[0]} tokens"
    return f"{what}, {depth(run)} layers, {changes(run)}; {run.attributes.get('created', '')}"


def warning_box(run: Trajectory) -> str:
    """What a reader must know first: interventions, rounding, what could not be read."""
    found = facts(run)
    said = [note for note in found["notes"] if note.startswith(REGIME)]
    layer = (found.get("rounding") or {}).get("decides_from_layer")
    if layer is not None:
        said.append(f"rounding decides from layer {layer} on; only statistics mean anything there")
    said += found["missing"]
    if run.outcome != "finished":
        said.append(run.advice)
    return box("Read with care", listing(said), "warning") if said else ""


def verdict_box(ruling: Verdict, title: str = "Verdict") -> str:
    """The word, its criterion, its caveats."""
    body = f"<p><strong>{escaped(ruling.word)}</strong></p>" + paragraph(
        f"Criterion: {ruling.criterion}."
    )
    return box(title, body + listing(ruling.caveats), "verdict")


def _alternative(run: Trajectory, name: str, ruling: Verdict) -> str:
    """What the picture would tell somebody who cannot see it: its title and its ends in numbers."""
    series = {
        "histogram": "sphere_cosine",
        "cosines": "sphere_cosine",
        "clusters": "clusters",
        "norms": "norm_median",
        "speeds": "turning_angle",
        "growth": "perturbation_growth",
    }.get(name)
    title = PICTURES[name].title
    if series is None or series not in run:
        return f"{title}; the verdict is {ruling.word}"
    values = layer_lists(run)[series]
    said = run.details.get(series, {}).get("long_name", series)
    return f"{title}. {said}: {number(values[0])} at first, {number(values[-1])} at the end"


def how_to_read(run: Trajectory) -> str:
    """Frame, counting, cluster angle, reference beta, regime."""
    found = facts(run)
    frame = {
        "post": "a token leaves each layer through a LayerNorm; its gain and bias are taken off and the "
        "rest is scaled to length one, which makes the theory's sphere exact",
        "pre": "a token is scaled to length one at every layer, and the last state, which leaves the final "
        "norm, has its gain taken off first; lengths are shown apart",
    }.get(found.get("scheme") or "", "a token is scaled to length one at every layer")
    beta = number(found["reference_beta"])
    body = listing(
        [
            f"Hidden states are what the model itself passes on. Sphere tokens: {frame}.",
            "Layers and heads count from 1: layer l makes state l out of state l - 1, and state 0 is the "
            "embedding. Tokens and coordinates count from 0.",
            f"Clusters are connected components of sphere tokens closer than {found['cluster_angle']:g} "
            "rad (cosine 0.99), unless another angle is named.",
            f"Energies and the equiangular theory use beta = {beta}, the median of the heads' own unless "
            "it was given. That theory has Q = K = V = I, no feed-forward block and one head; it is a "
            "yardstick, not a model of this network.",
            "Speeds of the theory are |P u|/|x|, the part of an update u across the token over its "
            "length: the flow of arXiv:2510.22026 for small steps. A layer that turns a token by a "
            "large angle turns it less than that.",
            "A trained model with a part taken out, looped or started elsewhere is outside its training "
            "regime: what it does then is a fact about its weights, not about what it was trained for.",
            "Bands over texts run from 5 % to 95 %.",
        ]
    )
    return f'<section class="box">{body}</section>'


def layer_table(run: Trajectory) -> str:
    """Every series with one number per layer; rates stand at the layer that made them."""
    lists = plain(layer_lists(run))
    lists.pop("cluster_angle")
    for angle, counts in (lists.pop("clusters_at", None) or {}).items():
        lists[f"clusters {angle} rad"] = counts
    states = depth(run) + 1
    columns: dict[str, Any] = {"layer": list(range(states))}
    for name, values in lists.items():
        columns[name.replace("_", " ")] = [None] * (states - len(values)) + values
    return table(columns, "means over texts" if texts(run) > 1 else "one text")


def _tokens(run: Trajectory) -> str:
    if texts(run) > 1:
        sizes = lengths(run)
        return paragraph(
            f"{texts(run)} texts of {sizes.min()} to {sizes.max()} tokens, {sizes.mean():.1f} on average"
        )
    names = labels(run)[0]
    listed = " ".join(
        f"<code>{escaped(shown(name, most=40))}</code>" for name in names[:MOST_TOKENS_SHOWN]
    )
    left = len(names) - MOST_TOKENS_SHOWN
    return f"<p>{listed}</p>" + (paragraph(f"and {left} more") if left > 0 else "")


def _about(run: Trajectory) -> str:
    found, keys = facts(run), ("created", "versions", "system")
    items = [f"{name}: {value}" for name, value in found["model"].items()]
    items += [f"intervention {name}: {value}" for name, value in found["interventions"].items()]
    items += [f"{key}: {run.attributes[key]}" for key in keys if key in run.attributes]
    if found.get("seconds") is not None:
        items.append(f"seconds: {found['seconds']:.1f}")
    return listing(items)
