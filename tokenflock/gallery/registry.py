"""All albums of the gallery, and how a user names a figure."""

from __future__ import annotations

import functools
from importlib import import_module

from ..names import find_named
from .core import Album, Figure

# One module per paper or part of one, in the order of the gallery.
MODULES = (
    "perspective",
    "emergence",
    "metastability",
    "causal",
    "kinetic",
    "mean_field",
    "moderate",
    "quantitative",
    "normalisation",
    "survey",
    "hardmax",
    "sentiment",
    "perceptron",
    "gaussian",
    "sinkformers",
    "homogenized",
    "collapse_depth",
    "noisy.transitions",
    "noisy.modes",
    "stochastic",
    "interpolation",
)


@functools.cache
def albums() -> tuple[Album, ...]:
    """The albums with their figures; two modules may share one."""
    found = [import_module(f".{name}", __package__).ALBUM for name in MODULES]
    return tuple({album.paper: album for album in found}.values())


def all_figures() -> list[Figure]:
    """Every figure, paper by paper."""
    return [figure for album in albums() for figure in album.figures]


def find_figure(name: str) -> Figure:
    """The figure with this id, or with the unique end of one."""
    return find_named(name, all_figures(), "figure")
