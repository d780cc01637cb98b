"""Shapes are checked in every test: jaxtyping annotations of the numerical modules, by beartype."""

import os
from pathlib import Path

# Test processes share the cores: threads of BLAS and OpenMP in each would wait for one another at
# every small operation. They read this when they are loaded, so it stands before every import.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of one file share fixtures and compiled programs: one process takes them all."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(autouse=True)
def same_draws_in_any_order(request):
    """A module's generator RNG starts every test where the module left it: processes share tests."""
    generator = getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        start = request.module.__dict__.setdefault("_RNG_START", generator.bit_generator.state)
        generator.bit_generator.state = start


# Every compiled program maps some pages of memory, and Linux allows a process 65,530 maps: beyond it the
# compiler dies with a segmentation fault.
MOST_MAPS = 40_000


@pytest.fixture(autouse=True, scope="module")
def room_for_more_programs():
    """Forget compiled programs once they fill most of what a process may map."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MOST_MAPS:
        import jax

        jax.clear_caches()
