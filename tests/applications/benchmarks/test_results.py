"""The committed numbers: whole, in the form that is documented, and on the page as they are."""

import importlib.util
import json
from pathlib import Path

import pytest
from contract import check_result

from tokenflock.applications.benchmarks import all_benchmarks

ROOT = Path(__file__).parents[3]
FILES = {
    benchmark.name: ROOT / "benchmarks" / "results" / f"{benchmark.name}.json"
    for benchmark in all_benchmarks()
}
COMMITTED = [name for name, file in FILES.items() if file.exists()]


def test_every_benchmark_has_a_committed_result():
    assert set(COMMITTED) == set(FILES)


def builder():
    path = ROOT / "docs" / "build_benchmarks.py"
    spec = importlib.util.spec_from_file_location("build_benchmarks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_result_obeys_the_contract(name):
    result = json.loads(FILES[name].read_text())
    check_result(result)
    assert result["name"] == name


@pytest.mark.parametrize("name", COMMITTED)
def test_what_is_promised_is_met_or_the_page_says_why_not(name):
    result = json.loads(FILES[name].read_text())
    below = [bar["says"] for row in result["rows"] for bar in row["bars"] if bar["met"] is not True]
    note = builder().NOTES[name]
    assert not below or "limit" in note, (
        f"{name} misses {below} and its note does not say what limits it"
    )


def test_the_page_shows_the_committed_numbers():
    module = builder()
    assert module.PAGE.read_text() == module.page(), "run python docs/build_benchmarks.py"
    assert set(module.NOTES) == set(FILES)
