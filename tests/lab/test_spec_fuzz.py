"""Mutants of good specs run or are refused, random tables are refused: always with errors of our own."""

from collections import Counter

import pytest
import tomli_w
from fuzzing import built, shared_shapes, tried  # noqa: F401
from gentle_mutants import BASES, mutant
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenflock.errors import TokenflockError
from tokenflock.lab.catalogue import example_names, example_text
from tokenflock.lab.files import parse
from tokenflock.lab.spec import MODEL_SPECS
from tokenflock.lab.tokens import TOKEN_SPECS
from tokenflock.sweeps.catalogue import sweep_example_names

MODEL_KEYS = sorted({key for spec in MODEL_SPECS.values() for key in spec.model_fields})
TOKEN_KEYS = sorted({key for spec in TOKEN_SPECS.values() for key in spec.model_fields})
SECTIONS = ("model", "tokens", "solve", "save", "stop", "output", "density")

numbers = st.one_of(
    st.integers(-3, 9),
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, float("nan"), float("inf"), 10**30]),
    st.floats(allow_nan=True, allow_infinity=True),
)
words = st.one_of(
    st.sampled_from([*MODEL_SPECS, *TOKEN_SPECS, *MODEL_KEYS, *TOKEN_KEYS, "GOE", "causal", "pre"]),
    st.text(max_size=6),
)
scalars = st.one_of(numbers, words, st.booleans(), st.dates())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from(MODEL_KEYS + TOKEN_KEYS), words), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.05")


careful = settings(
    deadline=None,
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# How many mutants there are in a default run and with the slow tests, and where their numbers begin.
BUILT, BUILT_SLOWLY = range(50), range(1_000, 2_000)
RUN, RUN_SLOWLY = range(2, 8), range(1_000, 1_300)
# Most of their mutants have programs of the same shapes.
FEW = ("circle", "phase-small")


def shares(outcomes):
    """What came of the mutants; fewer than half refused, or the mutants try nothing but the door."""
    found = Counter(outcomes)
    assert found["refused"] < 0.5 * found.total(), found
    return found


@pytest.mark.parametrize("seeds", [BUILT, pytest.param(BUILT_SLOWLY, marks=pytest.mark.slow)])
def test_a_mutant_builds_or_is_refused(seeds):
    shares(built(seed) for seed in seeds)


class TestMutantsRun:
    """Through the commands: exit codes, sentences, nothing half-written, results that open again."""

    pytestmark = pytest.mark.usefixtures("shared_shapes")

    def test_some(self, tmp_path):
        found = Counter(tried(seed, tmp_path / str(seed), bases=FEW) for seed in RUN)
        assert found["finished"] > found["refused"]

    @pytest.mark.slow
    def test_of_every_example(self, tmp_path):
        found = shares(tried(seed, tmp_path / str(seed)) for seed in RUN_SLOWLY)
        assert found["finished"] > found["failed"]


def test_every_example_is_mutated():
    assert {*example_names(), *sweep_example_names()} == BASES.keys()
    assert {mutant(seed)[0] for seed in range(400)} == BASES.keys()


@careful
@given(st.dictionaries(st.one_of(st.sampled_from(SECTIONS), words), values, max_size=6))
def test_random_tables_are_refused(table):
    with pytest.raises(TokenflockError):
        parse(tomli_w.dumps(table))


@careful
@given(st.text(max_size=200))
def test_random_text_is_refused(text):
    with pytest.raises(TokenflockError):
        parse(text)


@careful
@given(st.lists(st.text(max_size=30), max_size=3))
def test_random_settings_are_applied_or_refused(texts):
    try:
        parse(example_text("sphere"), texts)
    except TokenflockError as error:
        assert str(error)


@careful
@given(st.sampled_from(SECTIONS), st.sampled_from(MODEL_KEYS + TOKEN_KEYS), values)
def test_random_values_of_settings_are_applied_or_refused(section, key, value):
    written = tomli_w.dumps({"value": value}).removeprefix("value = ").strip()
    try:
        parse(example_text("sphere"), [f"{section}.{key}={written}"])
    except TokenflockError as error:
        assert str(error)
