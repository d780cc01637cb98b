"""Real sweeps on the page: every cell opens the run it shows, and damage is told beside what is sound."""

import os
import shutil

import numpy as np
import pytest
from packed import unpack

import tokenflock as flock
from tokenflock.errors import StoreError
from tokenflock.sweeps.plan import parse_sweep
from tokenflock.web.replay import read_replay

OWN_SEEDS = """
title = "own seeds"
[model]
name = "SA"
beta = 4.0
[tokens]
law = "uniform"
d = 2
n = 6
[solve]
t1 = 1.0
step = 0.5
[save]
every = 0.5
observe = ["energy"]
[sweep]
batch = 2
[sweep.axes]
beta = [1.0, 4.0, 9.0]
temperature = { values = [0.5, 1.0], set = "tokens.perturb" }
seed = { seeds = 2, per = "cell" }
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept") / "phase"
    flock.sweep(OWN_SEEDS, folder, workers=1)
    return folder


@pytest.fixture
def sweep(finished, tmp_path):
    """A copy to damage."""
    return shutil.copytree(finished, tmp_path / "phase")


def shown(folder):
    replay = read_replay(folder)
    return replay, {one["name"]: unpack(one["values"]) for one in replay["statistics"]}


def notes_about(folder):
    return "; ".join(read_replay(folder)["notes"])


def test_a_cell_opens_the_run_it_shows(finished):
    replay, _ = shown(finished)
    plan = parse_sweep(OWN_SEEDS)
    (own,) = replay["seeds"]
    expected = [
        [plan.cell_spec((row, column, 0)).tokens.seed for column in range(2)] for row in range(3)
    ]
    assert own["path"] == "tokens.seed"
    np.testing.assert_array_equal(unpack(own["values"]), expected)
    assert replay["notes"] == [
        "means of 2 runs with their own seeds; a cell opens the first of them"
    ]


def spoilt(folder, name, how):
    chunk = folder / "sweep.zarr" / name
    if how == "missing":
        chunk.unlink()
    elif how == "cut short":
        chunk.write_bytes(chunk.read_bytes()[:10])
    elif how == "another's":
        # Sound by its own checksum: only the journal knows that it does not belong here.
        shutil.copy(folder / "sweep.zarr" / name.replace("c.1.0", "c.2.1"), chunk)
    else:
        chunk.rename(folder / "elsewhere")
        chunk.symlink_to(folder / "elsewhere")


@pytest.mark.parametrize("how", ["missing", "cut short", "another's", "a link"])
def test_a_damaged_chunk_is_told_and_the_rest_is_shown(how, sweep, finished):
    spoilt(sweep, "energy/c.1.0.0.0", how)
    replay, tables = shown(sweep)
    expected = shown(finished)[1]["energy"].copy()
    expected[1, 0] = np.nan
    np.testing.assert_array_equal(tables["energy"], expected)
    words = {"missing": "missing", "a link": "not a plain file"}.get(
        how, "changed or cannot be read"
    )
    place = "energy at beta = 4, temperature = 0.5, seed = 0 to 1 (sweep.zarr/energy/c.1.0.0.0)"
    assert replay["notes"][1:] == [
        f"{place} is {words}",
        "repair it with tokenflock sweep --resume --out phase",
    ]
    assert str(sweep.parent) not in notes_about(sweep)


def test_damaged_seeds_and_outcomes_are_told_and_not_used(sweep):
    for name in ("outcome/c.1.0.0", "tokens_seed/c.1.0.0"):
        spoilt(sweep, name, "cut short")
    replay, tables = shown(sweep)
    assert np.isnan(tables["energy"][1, 0])
    assert np.isnan(unpack(replay["seeds"][0]["values"])[1, 0])
    assert "outcome at beta = 4" in notes_about(sweep)
    assert "2 of 12 runs are damaged or not computed yet" in notes_about(sweep)
    assert "tokens_seed at beta = 4" in notes_about(sweep)


def test_much_damage_is_counted(sweep):
    for chunk in (sweep / "sweep.zarr" / "energy").glob("c.*"):
        chunk.unlink()
    assert "and 3 more files" in notes_about(sweep)


def test_a_block_whose_line_is_lost_is_not_shown(sweep, finished):
    journal = sweep / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"block":1', b'"block":3')
    journal.write_bytes(b"".join(lines))
    _, tables = shown(sweep)
    expected = shown(finished)[1]["energy"].copy()
    expected[0, 1] = np.nan
    np.testing.assert_array_equal(tables["energy"], expected)
    assert "journal.jsonl is changed: line 3" in notes_about(sweep)
    assert "2 of 12 runs are not computed yet" in notes_about(sweep)


@pytest.mark.parametrize("kind", ["gone", "link", "pipe", "no header", "large"])
def test_without_a_journal_the_numbers_are_shown_unchecked(kind, sweep, tmp_path, monkeypatch):
    journal = sweep / "journal.jsonl"
    if kind == "large":
        monkeypatch.setattr("tokenflock.web.checked.LARGEST_JOURNAL", 10)
    elif kind == "no header":
        journal.write_bytes(b"{}\n")
    else:
        journal.rename(tmp_path / "journal")
    if kind == "link":
        journal.symlink_to(tmp_path / "journal")
    if kind == "pipe":
        os.mkfifo(journal)
    assert "the numbers are not checked" in notes_about(sweep)


def test_a_disk_that_cannot_read_is_told_without_its_path(sweep, monkeypatch):
    from zarr.storage import LocalStore

    whole = LocalStore.get

    async def failing(self, key, *rest):
        if key == "energy/c.1.0.0.0":
            raise PermissionError(13, "Permission denied", str(sweep / key))
        return await whole(self, key, *rest)

    monkeypatch.setattr(LocalStore, "get", failing)
    assert "energy/c.1.0.0.0) is changed or cannot be read" in notes_about(sweep)
    assert str(sweep) not in notes_about(sweep)


def test_a_changed_spec_is_told_and_a_changed_axis_is_refused(sweep):
    (sweep / "sweep.toml").unlink()
    (sweep / "sweep.toml").symlink_to("/dev/zero")
    assert "sweep.toml is missing" in notes_about(sweep)
    axis = sweep / "sweep.zarr" / "beta" / "c.0"
    axis.write_bytes(axis.read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError, match=r"beta/c\.0 is changed; repair it with tokenflock sweep"):
        read_replay(sweep)
