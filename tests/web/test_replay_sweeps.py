"""Datasets of `tokenflock sweep` as the page shows them: seeds averaged, and cells that can be run."""

import numpy as np
import pytest
import xarray as xr
from packed import unpack
from pydantic import TypeAdapter

from tokenflock.errors import StoreError
from tokenflock.web import stores
from tokenflock.web.replay import read_replay
from tokenflock.web.shapes import SweepReplay

BETAS, SIZES, TIMES = np.array([1.0, 4.0, 9.0]), np.array([8, 16]), np.linspace(0.0, 2.0, 5)
SPEC = {
    "model": {"name": "SA", "beta": 1.0},
    "tokens": {"law": "uniform", "n": 8, "d": 2, "seed": 11},
    "solve": {"t1": 2.0},
    "save": {"observe": ["order_parameter", "energy"]},
}
UNCHECKED = "the numbers are not checked: there is no journal.jsonl beside them"


def written(folder, axes, beside=None, paths=None, seeds=4, spoil=None):
    """A sweep folder with the arrays and labels of a real one; values are random."""
    rng = np.random.default_rng(3)
    coords = {name: (name, np.asarray(values)) for name, values in axes.items()} | (beside or {})
    dims, paths = list(axes), paths or {}
    if seeds:
        dims.append("seed")
        coords |= {
            "seed": ("seed", np.arange(seeds)),
            "tokens_seed": ("seed", 11 + np.arange(seeds)),
        }
        paths["seed"] = ["tokens.seed"]
    cells = tuple(len(coords[dim][1]) for dim in dims)
    values = {name: rng.normal(size=(*cells, 5)) for name in ("energy", "order_parameter")}
    arrays = {name: ((*dims, "time"), array) for name, array in values.items()}
    arrays["states"] = ((*dims, "time", "token"), np.zeros((*cells, 5, 2)))
    arrays["outcome"] = (dims, np.zeros(cells, np.int8))
    arrays["steps"] = (dims, np.full(cells, 7))
    arrays["final_time"] = (dims, np.full(cells, 2.0))
    labels = {
        "format": "tokenflock-sweep-1",
        "title": "swept",
        "says": "watch",
        "spec": SPEC,
        "axes": {name: paths[name] for name in dims},
        "seed_axes": ["seed"] if seeds else [],
    }
    dataset = xr.Dataset(arrays, coords={**coords, "time": TIMES}, attrs=labels)
    if spoil is not None:
        dataset = spoil(dataset)
    dataset.to_zarr(folder / "sweep.zarr", zarr_format=3, consolidated=False)
    return dataset


def replayed(folder):
    replay = read_replay(folder)
    assert TypeAdapter(SweepReplay).validate_python(replay).model_dump().keys() == replay.keys()
    return replay, {one["name"]: unpack(one["values"]) for one in replay["statistics"]}


def test_one_axis_is_shown_over_time_and_names_what_it_sets(tmp_path):
    made = written(tmp_path, {"beta": BETAS}, paths={"beta": ["model.beta"]})
    (entry,) = stores.find([tmp_path])
    assert (entry.kind, entry.title, entry.detail) == ("sweep", "swept", "sweep over beta and time")
    replay, tables = replayed(tmp_path)
    assert replay["rows"] == {
        "name": "beta",
        "values": [1, 4, 9],
        "sets": {"model.beta": [1, 4, 9]},
    }
    assert replay["columns"] == {"name": "time", "values": TIMES.tolist()}
    assert list(tables) == ["order_parameter", "energy"]
    np.testing.assert_allclose(tables["energy"], made.energy.mean("seed"), rtol=1e-6)
    assert replay["spec"] == SPEC
    assert replay["seeds"] == []
    assert replay["notes"] == [
        "means of 4 runs with their own seeds; a cell opens the first of them",
        UNCHECKED,
    ]


def test_two_axes_are_shown_at_the_last_time(tmp_path):
    paths = {"beta": ["model.beta"], "size": ["tokens.n"]}
    made = written(tmp_path, {"beta": BETAS, "size": SIZES}, paths=paths)
    replay, tables = replayed(tmp_path)
    assert (replay["rows"]["name"], replay["columns"]["name"]) == ("beta", "size")
    assert replay["columns"]["sets"] == {"tokens.n": [8, 16]}
    np.testing.assert_allclose(tables["energy"], made.energy.mean("seed")[..., -1], rtol=1e-6)
    np.testing.assert_allclose(tables["steps"], np.full((3, 2), 7))


def test_of_more_axes_the_two_longest_are_shown_and_the_spec_has_the_rest(tmp_path):
    axes = {"n": SIZES, "beta": BETAS, "d": [2, 3, 4, 5]}
    paths = {"n": ["tokens.n"], "beta": ["model.beta"], "d": ["tokens.d"]}
    made = written(tmp_path, axes, paths=paths, seeds=0)
    replay, tables = replayed(tmp_path)
    assert (replay["rows"]["name"], replay["columns"]["name"]) == ("beta", "d")
    np.testing.assert_allclose(tables["energy"], made.energy[1, ..., -1], rtol=1e-6)
    assert replay["spec"]["tokens"]["n"] == 16
    assert replay["notes"] == ["of 2 along n the middle one is shown (n = 16)", UNCHECKED]


def test_zipped_settings_are_labels_of_positions(tmp_path):
    beside = {"beta": ("pair", BETAS), "t1": ("pair", np.array([2.0, 4.0, 8.0]))}
    written(tmp_path, {"pair": range(3)}, beside, {"pair": ["model.beta", "solve.t1"]})
    rows = replayed(tmp_path)[0]["rows"]
    assert rows["values"] == [0, 1, 2]
    assert rows["labels"] == ["beta = 1, t1 = 2", "beta = 4, t1 = 4", "beta = 9, t1 = 8"]
    assert rows["sets"] == {"model.beta": [1, 4, 9], "solve.t1": [2, 4, 8]}


@pytest.mark.filterwarnings("ignore:The data type")
def test_words_are_labels_of_positions(tmp_path):
    written(tmp_path, {"name": np.array(["SA", "USA"])}, paths={"name": ["model.name"]})
    rows = replayed(tmp_path)[0]["rows"]
    assert rows == {
        "name": "name",
        "values": [0, 1],
        "labels": ["SA", "USA"],
        "sets": {"model.name": ["SA", "USA"]},
    }


def test_runs_with_their_own_times_are_shown_by_the_number_of_the_save(tmp_path):
    def spoil(dataset):
        times = np.ones((3, 4, 1)) * BETAS[:, None, None] * TIMES
        own = dataset.rename_dims(time="save").drop_vars("time")
        return own.assign(time=(("length", "seed", "save"), times))

    made = written(tmp_path, {"length": BETAS}, paths={"length": ["solve.t1"]}, spoil=spoil)
    replay, tables = replayed(tmp_path)
    assert replay["rows"]["sets"] == {"solve.t1": [1, 4, 9]}
    assert replay["columns"] == {"name": "save", "values": [0, 1, 2, 3, 4], "sets": {}}
    assert "time" not in tables
    np.testing.assert_allclose(tables["energy"], made.energy.mean("seed"), rtol=1e-6)


def test_seeds_alone_are_shown_one_by_one(tmp_path):
    made = written(tmp_path, {})
    replay, tables = replayed(tmp_path)
    assert replay["rows"]["sets"] == {"tokens.seed": [11, 12, 13, 14]}
    np.testing.assert_allclose(tables["energy"], made.energy, rtol=1e-6)


def with_own_seeds(dims, missing=None):
    """Seeds of single cells, as large as the engine draws them."""

    def spoil(dataset):
        shape = [dataset.sizes[dim] for dim in dims]
        own = 2**52 + np.arange(np.prod(shape)).reshape(shape)
        if missing is not None:
            own[missing] = -1
        return dataset.drop_vars("tokens_seed").assign(tokens_seed=(dims, own))

    return spoil


def test_a_cell_has_the_seed_of_its_own_first_run(tmp_path):
    spoil = with_own_seeds(("beta", "size", "seed"), missing=(2, 1))
    paths = {"beta": ["model.beta"], "size": ["tokens.n"]}
    made = written(tmp_path, {"beta": BETAS, "size": SIZES}, paths=paths, spoil=spoil)
    replay, tables = replayed(tmp_path)
    (own,) = replay["seeds"]
    assert own["path"] == "tokens.seed"
    expected = made.tokens_seed[..., 0].values.astype(float)
    expected[2, 1] = np.nan
    np.testing.assert_array_equal(unpack(own["values"]), expected)
    assert replay["notes"][0].endswith("a cell opens the first of them")
    assert "tokens_seed" not in tables


@pytest.mark.parametrize("axes", [{"beta": BETAS}, {}], ids=["over time", "seeds alone"])
def test_own_seeds_over_time_are_one_per_row(axes, tmp_path):
    dims = (*axes, "seed")
    paths = {"beta": ["model.beta"]}
    made = written(tmp_path, axes, paths=paths, spoil=with_own_seeds(dims))
    (own,) = replayed(tmp_path)[0]["seeds"]
    expected = made.tokens_seed[:, 0] if axes else made.tokens_seed
    np.testing.assert_array_equal(unpack(own["values"]), expected.values[:, None])


def test_a_sweep_that_lost_its_seeds_says_which_run_a_cell_opens(tmp_path):
    def spoil(dataset):
        return dataset.drop_vars("tokens_seed")

    written(tmp_path, {"beta": BETAS}, paths={"beta": ["model.beta"]}, spoil=spoil)
    replay = replayed(tmp_path)[0]
    assert replay["notes"][0].endswith("a cell opens one with the seed of the first cell")
    assert replay["seeds"] == []


def test_an_unfinished_sweep_shows_what_is_done(tmp_path):
    def spoil(dataset):
        dataset["outcome"][2] = -2
        dataset["outcome"][1, 0] = -1
        dataset["energy"][2] = np.nan
        return dataset

    made = written(tmp_path, {"beta": BETAS}, paths={"beta": ["model.beta"]}, spoil=spoil)
    replay, tables = replayed(tmp_path)
    np.testing.assert_allclose(tables["energy"][0], made.energy[0].mean("seed"), rtol=1e-6)
    np.testing.assert_allclose(tables["energy"][1], made.energy[1, 1:].mean("seed"), rtol=1e-6)
    assert np.all(np.isnan(tables["energy"][2]))
    np.testing.assert_array_equal(tables["failed runs"][:, 0], [0, 1, 0])
    assert replay["notes"][1:3] == ["1 of 12 runs failed", "4 of 12 runs are not computed yet"]


def test_a_damaged_chunk_is_a_sentence(tmp_path):
    written(tmp_path, {"beta": BETAS}, paths={"beta": ["model.beta"]})
    for chunk in (tmp_path / "sweep.zarr" / "energy" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(chunk.read_bytes()[:20])
    with pytest.raises(StoreError, match=r"sweep\.zarr is not a readable sweep"):
        read_replay(tmp_path)


@pytest.mark.parametrize(
    "labels",
    [
        {"axes": "beta"},
        {"axes": {"../../etc": ["model.beta"]}},
        {"axes": {}},
        {"axes": {"beta": ["model.beta"]}, "seed_axes": None},
    ],
)
def test_labels_that_make_no_sense_are_no_sweep(labels, tmp_path):
    def spoil(dataset):
        return dataset.assign_attrs(labels)

    written(tmp_path, {"beta": BETAS}, paths={"beta": ["model.beta"]}, spoil=spoil)
    assert stores.find([tmp_path]) == []
