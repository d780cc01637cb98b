"""Shapes are checked in every test: jaxtyping annotations of the numerical modules, by beartype."""

import os

# Test processes share the cores: threads of BLAS and OpenMP in each would wait for one another at
# every small operation. They read this when they are loaded, so it stands before every import.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from compiled_programs import count_programs, make_room  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

from tokenflock.compiled_programs import compile_quickly  # noqa: E402

pytest_plugins = ["suite_cost", "brute_force"]
CHECKED = [
    "tokenflock.space",
    "tokenflock.measure",
    "tokenflock.starts",
    "tokenflock.connected_components",
    "tokenflock.masks",
    "tokenflock.kinds",
    "tokenflock.weights",
    "tokenflock.random_weights",
    "tokenflock.reduce",
    "tokenflock.terms",
    "tokenflock.noise",
    "tokenflock.normalisation",
    "tokenflock.dynamics",
    "tokenflock.observables",
]
install_import_hook(CHECKED, "beartype.beartype")
mpl.use("Agg")
compile_quickly()
count_programs()


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


@pytest.fixture(autouse=True)
def room_for_more_programs():
    """Long files compile more programs than a process may hold."""
    yield
    make_room()


@pytest.fixture
def forgotten_after():
    """What a test registers is no observable of the others."""
    from tokenflock.observables import OBSERVABLES

    before = dict(OBSERVABLES)
    yield
    OBSERVABLES.clear()
    OBSERVABLES.update(before)
