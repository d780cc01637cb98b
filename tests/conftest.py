"""Shapes are checked in every test: jaxtyping annotations of the numerical modules, by beartype."""

import os

# Test processes share the cores: threads of BLAS and OpenMP in each would wait for one another at
# every small operation. They read this when they are loaded, so it stands before every import.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import matplotlib as mpl  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

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
