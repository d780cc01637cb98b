"""Random specs are answered or refused with our own errors, never with another exception."""

import copy
import json
import tomllib
import warnings

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenflock.errors import TokenflockError
from tokenflock.lab.catalogue import example_names, example_text
from tokenflock.lab.density import DENSITY_SPECS
from tokenflock.lab.files import identity, parse, render
from tokenflock.lab.run import make_job
from tokenflock.lab.spec import MODEL_SPECS, RunSpec
from tokenflock.lab.tokens import TOKEN_SPECS

EXAMPLES = [tomllib.loads(example_text(name)) for name in example_names()]
MODEL_KEYS = sorted({key for spec in MODEL_SPECS.values() for key in spec.model_fields})
TOKEN_KEYS = sorted({key for spec in TOKEN_SPECS.values() for key in spec.model_fields})
DENSITY_KEYS = sorted({key for spec in DENSITY_SPECS.values() for key in spec.model_fields})
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
slots = st.sampled_from(
    [
        {"weights": {"Q": {"law": "GOE", "scale": 0.5}, "heads": 2}},
        {"weights": {"V": [[1.0, 0.0], [0.0, -1.0]]}},
        {"weights": {"times": [0.5], "pieces": [{"V": 1.0}, {"V": -1.0}]}},
        {"mask": {"kind": "alibi", "slope": 1.0}},
        {"normalisation": {"scheme": "ngpt", "alpha": 0.5}},
        {"noise": {"kind": "common", "scale": 0.1}},
        {"plus": {"width": 3, "gradient": True}},
        {"beta": [1.0, 2.0]},
    ]
)


@st.composite
def mutated(draw):
    """A shipped spec, made small, with a few random changes in random places."""
    table = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    for key in ("n", "per_cluster"):
        if key in table.get("tokens", {}):
            table["tokens"][key] = draw(st.integers(2, 5))
    if "density" in table:
        table["density"]["modes"] = draw(st.integers(1, 9))
    if draw(st.booleans()):
        table["model"].update(copy.deepcopy(draw(slots)))
    for _ in range(draw(st.integers(0, 3))):
        section = draw(st.sampled_from(SECTIONS))
        target = table.setdefault(section, {})
        if not isinstance(target, dict):
            continue
        known = {"model": MODEL_KEYS, "tokens": TOKEN_KEYS, "density": DENSITY_KEYS}.get(section)
        if known is None:
            known = sorted(RunSpec.model_fields[section].annotation.model_fields)
        key = draw(st.one_of(st.sampled_from([*known, *target]), words))
        if draw(st.booleans()):
            target.pop(key, None)
        else:
            target[key] = draw(values)
    if draw(st.integers(0, 9)) == 0:
        table[draw(st.one_of(st.sampled_from(SECTIONS), words))] = draw(values)
    return table


def number_places(node, path=()):
    """Paths of all numbers of a table."""
    if isinstance(node, bool):
        return []
    if isinstance(node, (int, float)):
        return [path]
    entries = node.items() if isinstance(node, dict) else enumerate(node)
    inner = ((key, entry) for key, entry in entries if isinstance(entry, (dict, list, int, float)))
    return [found for key, entry in inner for found in number_places(entry, (*path, key))]


@st.composite
def extreme(draw):
    """A shipped spec whose numbers have the right type and unlikely values."""
    table = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    if draw(st.booleans()):
        table["model"].update(copy.deepcopy(draw(slots)))
    law = table.get("tokens", {}).get("law")
    if draw(st.booleans()) and law not in (None, "points", "arcs", "equiangular"):
        table["tokens"]["samples"] = 2
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from(number_places(table)))
        target = table
        for step in path:
            target = target[step]
        if isinstance(target[key], int):
            target[key] = draw(st.sampled_from([0, 1, 2, 3, 5, 17, 300, 10**5, 10**9, 2**63]))
        else:
            exponent = draw(st.integers(-320, 308))
            target[key] = draw(st.sampled_from([1.0, -1.0, 0.0, float(f"1e{exponent}"), 0.7, 1e3]))
    return table


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.05")


careful = settings(
    deadline=None,
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@careful
@given(st.one_of(mutated(), extreme()))
def test_a_mutated_spec_builds_or_is_refused(table):
    text = tomli_w.dumps(table)
    try:
        spec = parse(text)
        # What parses prints itself, whether or not it can be built.
        assert parse(render(spec)) == spec
        json.dumps(identity(spec))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            job = make_job(spec)
    except TokenflockError as error:
        assert str(error)
        assert error.exit_code == 2
        return
    assert job.parts[-1].times[-1] == job.spec.solve.t1


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
