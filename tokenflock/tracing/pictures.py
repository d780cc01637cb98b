"""The pictures of a trace: which there are, what each shows, and when a run has what it needs.

Each is drawn from the Trajectory alone, so a stored run draws the same pictures as a fresh one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..plot.style import styled
from ..trajectory import Trajectory
from . import pictures_heads as heads
from . import pictures_map as maps
from . import pictures_series as series


@dataclass(frozen=True)
class Picture:
    """One picture: its title, what it shows, the variables it needs, and how it is drawn."""

    title: str
    shows: str
    needs: tuple[str, ...]
    draw: Callable[[Any, Trajectory], Any]


PICTURES: dict[str, Picture] = {
    "histogram": Picture(
        "Cosines of all pairs, layer by layer",
        "Share of pairs of different sphere tokens by their cosine, at a few layers, as in the ALBERT "
        "figure of arXiv:2312.10794. Mass that moves to 1 is collapse; a second heap at 1 beside a "
        "broad one is clusters.",
        ("cosine_histogram",),
        series.histogram,
    ),
    "cosines": Picture(
        "Mean cosine by layer",
        "Mean cosine of different tokens, on the sphere and of the hidden states as they are. Bands: "
        "quantiles over pairs (one text) or over texts. Dashed: equiangular tokens of the theory with "
        "this normalisation, from the measured start.",
        ("sphere_cosine", "mean_cosine"),
        series.cosines,
    ),
    "clusters": Picture(
        "Clusters by layer",
        "Connected components of sphere tokens closer than each of three angles.",
        ("clusters_at",),
        series.clusters,
    ),
    "map": Picture(
        "Paths of the tokens",
        "Sphere tokens of all layers in the two directions in which they vary most. Hollow: start; "
        "filled: end. Colours: clusters at the end (grey: alone), or the place in the text, dark to light, "
        "where nothing or everything has merged. Of many tokens some five hundred paths are drawn.",
        ("states",),
        maps.plane,
    ),
    "map_3d": Picture(
        "Paths of the tokens in three dimensions",
        "The same with the third direction.",
        ("states",),
        maps.room,
    ),
    "norms": Picture(
        "Norms and outlier coordinates",
        "Norms of the hidden states, and the largest share of the squared norm that one coordinate holds.",
        ("norm_median", "norm_max", "outlier_share"),
        series.norms,
    ),
    "sinks": Picture(
        "Attention sinks",
        "Largest mean attention that one token receives and what the first token receives, by layer and "
        "head; and, for a single text, what each token receives from all heads.",
        ("sink_share", "first_mass"),
        heads.sinks,
    ),
    "attention": Picture(
        "Sharpness and rank of attention",
        "Entropy of the attention rows over its largest possible value, and the effective rank of the "
        "attention matrices where it was asked for.",
        ("attention_entropy_share",),
        heads.attention,
    ),
    "heads": Picture(
        "Temperature of the heads",
        "Effective inverse temperature beta: from the spread of the measured scores, and from the "
        "weights for isotropic tokens.",
        ("beta_logits",),
        heads.temperatures,
    ),
    "spectra": Picture(
        "Spectra of the value maps",
        "Eigenvalues of each head's value-output map. Right of zero attracts tokens that look at each "
        "other (the theory's V = I), left of zero repels.",
        ("ov_real", "ov_imag", "ov_positive_share"),
        heads.spectra,
    ),
    "speeds": Picture(
        "Speed of the tokens beside theory",
        "Mean angle a token turns in each layer, beside |P u|/|x| of the layer's own update u (the flow "
        "of arXiv:2510.22026), and the change of the cosine beside the rate of equiangular tokens.",
        ("turning_angle",),
        series.speeds,
    ),
    "growth": Picture(
        "Growth of a small perturbation",
        "Size of a small perturbation of the start, relative to its first size.",
        ("perturbation_growth",),
        series.growth,
    ),
}


def available(run: Trajectory) -> list[str]:
    """Names of the pictures for which the run has the variables."""
    return [name for name, it in PICTURES.items() if all(need in run for need in it.needs)]


def caption(name: str, figure: Any) -> str:
    """What a picture shows, and which of its axes are logarithmic: that depends on the numbers."""
    logarithmic = [
        " ".join(axes.get_ylabel().split())
        for axes in figure.axes
        if axes.get_yscale() == "log" and axes.get_ylabel()
    ]
    said = f" Logarithmic axis: {', '.join(logarithmic)}." if logarithmic else ""
    return PICTURES[name].shows + said


def draw_all(run: Trajectory) -> dict[str, Any]:
    """Every picture the run has the numbers for, as matplotlib Figures by name."""
    with styled() as plt, warnings.catch_warnings():
        # Tokens of other scripts may lack a glyph: a box is drawn in its place.
        warnings.filterwarnings("ignore", message="Glyph")
        return {name: PICTURES[name].draw(plt, run) for name in available(run)}
