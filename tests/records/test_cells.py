"""One cell of a sweep, by its exact coordinates; what a sweep says of itself."""

import tomllib

import numpy as np
import pytest
from made_results import energy_of, made_run, made_sweep, made_trace

from tokenflock.errors import InputError
from tokenflock.lab.files import identity, parse
from tokenflock.lab.setting_paths import last_name
from tokenflock.records.cells import cell_text, cell_values, find_cell, sweep_of
from tokenflock.records.opening import find_result
from tokenflock.records.showing import describe_result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweeps")
    return made_sweep(place / "phase", failures={3: {1: "it broke", 0: "it broke first"}})


@pytest.fixture(scope="module")
def result(folder):
    return find_result(folder)


@pytest.fixture(scope="module")
def sweep(result):
    return sweep_of(result)


@pytest.mark.parametrize(
    ("path", "name"),
    [("model.beta", "beta"), ("model.beta.values.1", "values_1"), ("beta", "beta"), ("7", "7")],
)
def test_what_a_setting_is_called(path, name):
    assert last_name(path) == name


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ("beta=4,pair=1,seed=2", (3, 1, 2)),
        (" seed = 0 , n = 8 , beta = 1.0000000000001 ", (0, 0, 0)),
        ("beta=5e0,tokens.law=hemisphere,seed=1", (4, 1, 1)),
        ("model.beta=2,law='uniform',n=8,seed=1", (1, 0, 1)),
        ('beta=2,law="uniform",seed=1', (1, 0, 1)),
    ],
)
def test_coordinates_name_a_cell(sweep, asked, index):
    assert find_cell(sweep, asked) == index


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("beta=4.1,pair=0,seed=0", "there is no such cell; the nearest beta are 4.0 and 5.0"),
        ("beta=4.000001,pair=0,seed=0", "the nearest beta are 4.0 and 5.0"),
        ("beta=9,pair=0,seed=0", "the nearest beta is 5.0"),
        ("beta=nan,pair=0,seed=0", "there is no such cell"),
        ("beta=4,law=cap,seed=0", "law is one of uniform, hemisphere"),
        ("beta=4,n=8,law=hemisphere,seed=0", "no such cell"),
        ("beta=4,seed=0", "must say where on pair (2 values: 0, 1)"),
        ("bta=4,pair=0,seed=0", "did you mean 'beta'"),
        ("time=4", "no axis 'time'"),
        ("beta", "takes coordinates such as"),
        ("beta=4,beta=5", "takes coordinates such as"),
        ("beta=4,,seed=3", "no such cell"),
        ("", "takes coordinates such as"),
    ],
)
def test_only_exact_cells(sweep, asked, words):
    with pytest.raises(InputError) as caught:
        find_cell(sweep, asked)
    assert words in str(caught.value)


def test_large_whole_numbers_are_compared_exactly(sweep):
    seeds = sweep.axes[2].settings["tokens.seed"]
    assert find_cell(sweep, f"beta=1,pair=0,tokens.seed={seeds[1]}") == (0, 0, 1)
    with pytest.raises(InputError, match="no such cell"):
        find_cell(sweep, f"beta=1,pair=0,tokens.seed={seeds[1] + 1}")


def test_a_cell_is_a_run(sweep):
    text = cell_text(sweep, (3, 1, 2))
    spec = parse(text)
    assert text.startswith("# The cell beta = 4.0, pair = 1, seed = 2 of sweep ")
    assert identity(spec) == identity(sweep.cell_spec((3, 1, 2)))
    assert (spec.model.beta, spec.tokens.n) == (4.0, 16)
    assert spec.tokens.seed == sweep.axes[2].settings["tokens.seed"][2]


def test_the_numbers_of_a_cell(result, sweep):
    found = cell_values(result, sweep, (3, 1, 2))
    np.testing.assert_array_equal(
        found["energy"], energy_of(sweep, (3, 1, 2)) + found["time"].values
    )
    assert int(found["steps"]) == 6


def test_only_sweeps_have_cells(tmp_path):
    with pytest.raises(InputError, match="is a run, and only a sweep has cells"):
        sweep_of(find_result(made_run(tmp_path / "a")))


class TestShow:
    def test_a_sweep(self, folder):
        content = describe_result(find_result(folder / "sweep.zarr"))
        assert (content["kind"], content["cells"], content["failed"]) == ("sweep", 30, 2)
        assert tomllib.loads(content["toml"])["sweep"]["axes"]["seed"]["seeds"] == 3
        arrays = {array["name"]: (array["dims"], array["shape"]) for array in content["arrays"]}
        assert arrays["energy"] == (["beta", "pair", "seed", "time"], [5, 2, 3, 5])
        assert arrays["law"] == (["pair"], [2])
        # Block 3 is the three seeds of the second beta and the second pair.
        assert content["failures"] == [
            {"coordinates": {"beta": 2.0, "pair": 1, "seed": 0}, "says": "it broke first"},
            {"coordinates": {"beta": 2.0, "pair": 1, "seed": 1}, "says": "it broke"},
        ]
        assert content["bytes"] > 1000

    def test_a_run_and_a_trace(self, tmp_path):
        content = describe_result(find_result(made_run(tmp_path / "a")))
        assert content["health"]["steps"] == 12
        assert parse(content["toml"]).tokens.n == 8
        assert {"says": "Interaction energy", "shape": [5]}.items() <= next(
            array for array in content["arrays"] if array["name"] == "energy"
        ).items()
        trace = describe_result(find_result(made_trace(tmp_path / "t")))
        assert (trace["kind"], trace["toml"]) == ("trace", None)

    @pytest.mark.parametrize("place", ["nothing", ".", "a\0b", "x" * 5000])
    def test_what_is_no_result(self, tmp_path, monkeypatch, place):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError):
            find_result(place)
