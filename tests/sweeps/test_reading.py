"""Opening a sweep: labelled, lazy, as far as it is done, and never with a wrong number."""

import pickle

import numpy as np
import pytest
import xarray as xr
from made_faults import DAMAGES, damage
from made_sweeps import contents, made_layout, made_result, made_sweep, write_blocks

import tokenflock as flock
from tokenflock.errors import StoreError
from tokenflock.results.names import JOURNAL, SWEEP_STORE
from tokenflock.store import read
from tokenflock.sweeps.checked_reading import open_sweep
from tokenflock.sweeps.store import SweepStore

SWEEP = made_sweep()
LAYOUT = made_layout()
GRID = SWEEP.grid


@pytest.fixture
def store(tmp_path):
    return SweepStore.create(tmp_path / "sweep", SWEEP, LAYOUT)


def test_the_dataset_is_labelled_by_the_sweep(store):
    write_blocks(store)
    dataset = flock.open(store.folder)
    assert dataset["energy"].dims == ("beta", "pair", "seed", "time")
    assert dataset["outcome"].dims == ("beta", "pair", "seed")
    assert dataset["beta"].values.tolist() == [1.0, 3.0, 5.0]
    assert dataset["n"].dims == ("pair",)
    assert dataset["n"].values.tolist() == [8, 16]
    assert dataset["law"].values.tolist() == ["uniform", "hemisphere"]
    assert set(dataset.data_vars) == {variable.name for variable in LAYOUT.variables}
    assert dataset["energy"].attrs["units"] == "1"
    assert dataset["outcome"].attrs["flag_meanings"] == "missing error finished"
    kept = {name: dataset.attrs[name] for name in ("format", "id", "title", "says", "label")}
    assert kept == {
        "format": "tokenflock-sweep-1",
        "id": SWEEP.id,
        "title": "small",
        "says": "A sweep to be damaged.",
        "label": "SA",
    }
    assert dataset.attrs["axes"]["pair"] == ["tokens.n", "tokens.law"]
    assert dataset.attrs["seed_axes"] == ["seed"]
    assert dataset.attrs["spec"]["model"]["beta"] == 1.0
    assert dataset.attrs["sweep"]["batch"] == 4


def test_every_number_is_where_it_belongs(store):
    write_blocks(store)
    dataset = flock.open(store.folder)
    for index in range(GRID.block_count):
        block = GRID.block(index)
        for name, values in made_result(block, LAYOUT).arrays.items():
            for cell, wanted in zip(block.cells(), values, strict=True):
                assert np.array_equal(dataset[name].values[cell], wanted)


def test_an_unfinished_sweep_opens_as_far_as_it_is_done(store):
    write_blocks(store, [1, 4])
    dataset = flock.open(store.folder)
    done = np.zeros(GRID.shape, dtype=bool)
    for index in (1, 4):
        done[GRID.block(index).region] = True
    assert np.array_equal(~np.isnan(dataset["energy"].values).any(axis=-1), done)
    assert np.array_equal(dataset["outcome"].values != -2, done)
    assert (dataset.attrs["cells"], dataset.attrs["cells_done"]) == (30, done.sum())
    assert flock.open(SweepStore.open(store.folder, SWEEP, LAYOUT).folder / SWEEP_STORE).equals(
        dataset
    )


def test_failed_cells_are_counted(store):
    with store.lock():
        store.write(GRID.block(0), made_result(GRID.block(0), LAYOUT, {0: "broke", 2: "broke"}))
    assert flock.open(store.folder).attrs["cells_failed"] == 2


def test_chunks_that_were_not_committed_are_not_seen(store):
    write_blocks(store, [0, 1])
    journal = store.folder / JOURNAL
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    dataset = flock.open(store.folder)
    assert dataset.attrs["cells_done"] == GRID.block(0).size
    assert np.isnan(dataset["energy"].values[GRID.block(1).region]).all()
    assert not np.isnan(dataset["energy"].values[GRID.block(0).region]).any()


def test_arrays_are_read_when_they_are_used(store):
    write_blocks(store)
    dataset = flock.open(store.folder)
    for name in ("energy", "diameter"):
        for chunk in (store.folder / SWEEP_STORE / name).glob("c.2*"):
            chunk.unlink()
    assert np.isfinite(dataset["energy"].isel(beta=[0, 1]).values).all()
    with pytest.raises(StoreError, match="energy at beta = 5"):
        _ = dataset["energy"].values


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_chunk_is_refused_when_it_is_read(store, how):
    write_blocks(store)
    damage(store.folder / SWEEP_STORE / "steps" / "c.1.0.1", how, np.random.default_rng(2))
    dataset = flock.open(store.folder, verify=False)
    assert (dataset["steps"].isel(beta=0).values >= 0).all()
    with pytest.raises(
        StoreError, match=r"steps at beta = 3, pair = 0, seed = 3 to 4 .*c\.1\.0\.1"
    ):
        _ = dataset["steps"].values
    with pytest.raises(StoreError, match="--resume"):
        flock.open(store.folder)


def test_other_readers_find_a_changed_chunk_too(store):
    write_blocks(store)
    place = store.folder / SWEEP_STORE / "energy" / "c.0.0.0.0"
    with xr.open_zarr(store.folder / SWEEP_STORE, consolidated=False, chunks=None) as plain:
        assert plain.drop_vars("law").equals(flock.open(store.folder).drop_vars("law"))
    sound = place.read_bytes()
    for number in range(20):
        damage(place, "flip", np.random.default_rng(number))
        with (
            xr.open_zarr(store.folder / SWEEP_STORE, consolidated=False, chunks=None) as plain,
            pytest.raises(ValueError, match="checksum"),
        ):
            _ = plain["energy"].values
        place.write_bytes(sound)


def test_many_damages_are_told_in_one_sentence(store):
    write_blocks(store)
    for name in ("energy", "steps"):
        for chunk in (store.folder / SWEEP_STORE / name).glob("c.*"):
            chunk.unlink()
    with pytest.raises(StoreError, match=f"and {2 * GRID.block_count - 3} more") as caught:
        flock.open(store.folder)
    assert len(str(caught.value)) < 1000


def test_a_dataset_travels_between_processes(store):
    write_blocks(store)
    dataset = flock.open(store.folder)
    assert pickle.loads(pickle.dumps(dataset)).equals(dataset)


def test_reading_changes_nothing(store):
    write_blocks(store, [0])
    before = contents(store.folder)
    flock.open(store.folder).load()
    assert contents(store.folder) == before


def test_what_is_no_sweep_is_a_sentence(store, tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        flock.open(tmp_path / "nothing")
    with pytest.raises(StoreError, match=r"not the folder of a sweep.*tokenflock\.open"):
        open_sweep(tmp_path)
    with pytest.raises(StoreError, match="cannot open"):
        flock.open("a" * 5000)
    (store.folder / JOURNAL).unlink()
    with pytest.raises(StoreError, match=r"journal\.jsonl is missing"):
        flock.open(store.folder)


def test_the_store_may_be_named_and_what_reads_runs_alone_says_how(store):
    write_blocks(store)
    assert flock.open(store.folder / SWEEP_STORE).equals(flock.open(store.folder))
    for path in (store.folder, store.folder / SWEEP_STORE):
        with pytest.raises(StoreError, match=r"holds a sweep.* with tokenflock\.open"):
            read(path)
