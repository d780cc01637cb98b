"""Sweeps that meet in one place: nothing is written into another's folder, and no block is taken for ours."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_sweeps import contents, made_layout, made_result, made_sweep, write_blocks

from tokenflock.errors import StoreError, WriteError
from tokenflock.sweeps import conduct as conduct_module
from tokenflock.sweeps import store as store_module
from tokenflock.sweeps.checked_reading import open_sweep
from tokenflock.sweeps.conduct import Wishes, conduct
from tokenflock.sweeps.journal import OLD_FORMAT, Entry, Header, from_line, to_line
from tokenflock.sweeps.store import SweepStore

SWEEP, LAYOUT = made_sweep(), made_layout()
# The same cells in the same blocks, of another model: nothing in a block itself tells them apart.
OTHER = type(SWEEP)(**{**vars(SWEEP), "id": "abcdef012345", "text": SWEEP.text + "\n# another\n"})
LAST = SWEEP.grid.block_count - 1

# Writes a block for each line it reads, and says how that went.
WRITES = """
import sys
from made_sweeps import made_layout, made_result, made_sweep
from tokenflock.errors import TokenflockError
from tokenflock.sweeps.store import SweepStore
sweep, layout = made_sweep(), made_layout()
store = SweepStore.open(sys.argv[1], sweep, layout)
with store.lock():
    print("ready", flush=True)
    for line in sys.stdin:
        block = sweep.grid.block(int(line))
        try:
            store.write(block, made_result(block, layout))
            print("written", flush=True)
        except TokenflockError as error:
            print(error.exit_code, error, flush=True)
"""


@pytest.fixture
def store(tmp_path):
    return SweepStore.create(tmp_path / "sweep", SWEEP, LAYOUT)


@pytest.fixture
def other(tmp_path):
    made = SweepStore.create(tmp_path / "other", OTHER, LAYOUT)
    write_blocks(made, [0, 1])
    return made.folder


@pytest.fixture
def writer(store):
    """Another process that writes the sweep: give it a block, get what it says."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(store.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])},
    )
    assert process.stdout.readline() == "ready\n"

    def write(block):
        process.stdin.write(f"{block}\n")
        process.stdin.flush()
        return process.stdout.readline()

    yield write
    process.stdin.close()
    process.wait(timeout=60)
    process.stdout.close()


def test_a_process_whose_folder_is_moved_writes_nothing_into_the_one_in_its_place(
    store, other, writer, tmp_path
):
    assert writer(0) == "written\n"
    store.folder.rename(tmp_path / "moved")
    assert "no longer what this process was writing" in writer(1)
    assert not store.folder.exists()
    other.rename(store.folder)
    before = contents(store.folder)
    told = writer(1)
    assert told.startswith("1 ")
    assert "Nothing was written into what is there now" in told
    assert contents(store.folder) == before
    (store.folder).rename(tmp_path / "other")
    (tmp_path / "moved").rename(store.folder)
    # Back in its place it is the same folder again.
    assert writer(1) == "written\n"


@pytest.mark.parametrize("moment", ["write_flushed", "append"])
def test_a_folder_moved_in_the_middle_of_a_block(store, other, tmp_path, monkeypatch, moment):
    """After its chunks are written under hidden names, or just before its line in the journal."""
    before = contents(other)

    def swap():
        if other.exists():
            store.folder.rename(tmp_path / "moved")
            other.rename(store.folder)

    if moment == "append":
        real = store.journal.append
        monkeypatch.setattr(store.journal, "append", lambda *given: (swap(), real(*given)))
    else:
        replace = store_module.replace_files

        def swapped(folder, files, scratch, check):
            replace(folder, files, scratch, lambda: (swap(), check()))

        monkeypatch.setattr(store_module, "replace_files", swapped)
    with pytest.raises(WriteError, match="no longer what this process"), store.lock():
        store.write(SWEEP.grid.block(LAST), made_result(SWEEP.grid.block(LAST), LAYOUT))
    assert contents(store.folder) == before
    assert not SweepStore.open(tmp_path / "moved", SWEEP, LAYOUT).done().any()


def test_a_block_of_another_sweep_is_named_and_computed_again(store, other):
    write_blocks(store)
    foreign = (other / "journal.jsonl").read_bytes().splitlines(keepends=True)[1]
    with (store.folder / "journal.jsonl").open("ab") as journal:
        journal.write(foreign)
    found, own = from_line(foreign), store.journal.identity
    lines = SWEEP.grid.block_count + 2
    told = f"line {lines} belongs to another sweep: it has {found.of}, not {own}"
    assert found.of != own
    with pytest.raises(StoreError, match=told):
        open_sweep(store.folder)
    again = SweepStore.open(store.folder, SWEEP, LAYOUT)
    assert [str(one) for one in again.verify()] == [f"journal.jsonl is changed: {told}"]
    with again.lock():
        again.forget([])
    assert SweepStore.open(store.folder, SWEEP, LAYOUT).verify() == []
    assert open_sweep(store.folder).attrs["cells_done"] == SWEEP.grid.size


def as_release_0_1_wrote(folder):
    """The journal without identities."""
    lines = []
    for line in (folder / "journal.jsonl").read_bytes().splitlines(keepends=True):
        record = from_line(line)
        if isinstance(record, Header):
            lines.append(to_line(dataclasses.replace(record, format=OLD_FORMAT)))
        else:
            assert isinstance(record, Entry)
            lines.append(to_line(dataclasses.replace(record, of="")))
            assert b'"of"' not in lines[-1]
    (folder / "journal.jsonl").write_bytes(b"".join(lines))


def test_a_sweep_of_release_0_1_is_read_and_not_continued(store):
    write_blocks(store, [0, 1])
    values = open_sweep(store.folder)["energy"].values
    as_release_0_1_wrote(store.folder)
    before = contents(store.folder)
    old = SweepStore.open(store.folder, SWEEP, LAYOUT)
    np.testing.assert_array_equal(open_sweep(store.folder)["energy"].values, values)
    with pytest.raises(StoreError, match=r"begun by release 0\.1 and is not finished"), old.lock():
        pass
    assert contents(store.folder) == before


def test_a_finished_sweep_of_release_0_1_is_repaired(store):
    write_blocks(store)
    as_release_0_1_wrote(store.folder)
    whole = contents(store.folder)
    (store.folder / "sweep.zarr" / "zarr.json").unlink()
    with SweepStore.open(store.folder, SWEEP, LAYOUT).lock() as repaired:
        assert repaired == ["sweep.zarr/zarr.json"]
    assert contents(store.folder) == whole


def test_a_second_process_is_told_before_anything_is_computed(store, monkeypatch):
    monkeypatch.setattr(conduct_module, "_crew", lambda *_: pytest.fail("workers were started"))
    monkeypatch.setattr(conduct_module, "layout_of", lambda _: pytest.fail("cells were probed"))
    write_blocks(store, [0])
    with store.lock():
        before = contents(store.folder)
        for wishes in (Wishes(resume=True), Wishes(overwrite=True)):
            with pytest.raises(StoreError, match=rf"being written by process {os.getpid()} on"):
                conduct(SWEEP, store.folder, wishes)
        assert contents(store.folder) == before


def test_the_summary_of_another_sweep_is_not_the_answer(store, monkeypatch):
    monkeypatch.setattr(store_module, "layout_of", lambda _: LAYOUT)
    write_blocks(store)
    (store.folder / "summary.json").write_text('{"id": "abcdef012345", "ok": true}')
    told = f"summary.json belongs.* id abcdef012345, where id {SWEEP.id} is needed"
    with pytest.raises(StoreError, match=told):
        conduct(SWEEP, store.folder, Wishes(resume=True))


def test_a_folder_without_a_sweep_gets_no_lock(tmp_path):
    (tmp_path / "mine").mkdir()
    for wishes in (Wishes(resume=True), Wishes()):
        with pytest.raises(Exception, match=r"no sweep to resume|exists; choose"):
            conduct(SWEEP, tmp_path / "mine", wishes)
    assert [*(tmp_path / "mine").iterdir()] == []
    shutil.rmtree(tmp_path / "mine")
