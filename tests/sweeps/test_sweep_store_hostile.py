"""Folders from strangers: links and pipes in the place of files, journals that are not of this sweep."""

import dataclasses
import os
import re

import pytest
from made_sweeps import contents, made_layout, made_result, made_sweep, write_blocks

from tokenflock.errors import StoreError
from tokenflock.sweeps.checked_reading import open_sweep
from tokenflock.sweeps.journal import Mark, from_line, to_line
from tokenflock.sweeps.store import SweepStore

SWEEP = made_sweep()
LAYOUT = made_layout()
GRID = SWEEP.grid


@pytest.fixture
def store(tmp_path):
    return SweepStore.create(tmp_path / "sweep", SWEEP, LAYOUT)


def reopened(store):
    return SweepStore.open(store.folder, SWEEP, LAYOUT)


@pytest.mark.parametrize(
    "change",
    [
        {"block_shape": (1, 1)},
        {"block_shape": (1, 1, 0)},
        {"shape": (3, 2)},
        {"axes": ("beta", "seed")},
        {"files": {"a/b/c": Mark(1, "00")}},
        {"text": Mark("1", "00")},
    ],
)
def test_a_header_that_makes_no_sense_is_damage(store, change):
    write_blocks(store)
    header = dataclasses.replace(store.journal.header, **change)
    assert from_line(to_line(header)) is None


def test_the_journal_of_another_sweep_is_told(store):
    write_blocks(store)
    path = store.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    header = store.journal.header
    lines[0] = to_line(dataclasses.replace(header, block_shape=(3, 1, 1)))
    path.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=r"not the journal of sweep\.toml"):
        reopened(store)
    lines[0] = to_line(dataclasses.replace(header, shape=(3, 2, 7)))
    path.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=r"not the journal of sweep\.zarr"):
        open_sweep(store.folder)


def test_a_failure_of_a_cell_that_is_not_there_is_damage(store):
    with store.lock():
        store.write(GRID.block(0), made_result(GRID.block(0), LAYOUT, {99: "nowhere"}))
    assert reopened(store).failures() == []
    assert [one.file for one in reopened(store).verify()] == ["journal.jsonl"]


# --- links ----------------------------------------------------------------------------------------

LINKS = ["journal.jsonl", ".lock", ".writer.json", "sweep.zarr/energy", "sweep.zarr/steps/c.1.1.1"]
MORE_LINKS = [
    *("sweep.toml", "summary.json", "figure.png", "sweep.zarr", "sweep.zarr/zarr.json"),
    *(".writing-block", ".writing-summary.json"),
]


@pytest.mark.parametrize(
    "name", [*LINKS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_LINKS)]
)
def test_a_link_in_the_folder_of_a_stranger_is_refused(store, tmp_path, name):
    write_blocks(store)
    place, outside = store.folder / name, tmp_path / "mine"
    if place.exists():
        place.rename(outside)
    elif name == ".writing-block":
        outside.mkdir()
    else:
        outside.write_text("mine")
    place.symlink_to(outside)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=f"{re.escape(name)} is a link"):
        reopened(store)
    with pytest.raises(StoreError, match=f"{re.escape(name)} is a link"), store.lock():
        pass
    with pytest.raises(StoreError, match=r"is a link|c\.1\.1\.1\) is unreadable"):
        open_sweep(store.folder)
    with pytest.raises(StoreError, match=r"is a link|c\.1\.1\.1\) is unreadable"):
        _ = open_sweep(store.folder, verify=False)["steps"].values
    assert contents(tmp_path) == before


def test_a_pipe_is_not_waited_for(store):
    write_blocks(store)
    chunk = store.folder / "sweep.zarr" / "steps" / "c.1.1.1"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(StoreError, match=r"c\.1\.1\.1 is neither a file nor a folder"):
        reopened(store)
    with pytest.raises(StoreError, match=r"c\.1\.1\.1\) is unreadable"):
        open_sweep(store.folder)
    with pytest.raises(StoreError, match=r"c\.1\.1\.1\) is unreadable"):
        _ = open_sweep(store.folder, verify=False)["steps"].values
