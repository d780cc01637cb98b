"""Shapes are checked in every test: jaxtyping annotations of the numerical modules, by beartype."""

import matplotlib as mpl
from jaxtyping import install_import_hook

CHECKED = [
    "tokenflock.space",
    "tokenflock.measure",
    "tokenflock.graph",
    "tokenflock.masks",
    "tokenflock.kinds",
    "tokenflock.weights",
    "tokenflock.reduce",
    "tokenflock.terms",
    "tokenflock.noise",
    "tokenflock.normalisation",
    "tokenflock.dynamics",
    "tokenflock.observables",
]
install_import_hook(CHECKED, "beartype.beartype")
mpl.use("Agg")
