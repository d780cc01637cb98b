"""A store under fire: disks that fail at any call, two writers, and kill -9 at any moment."""

import errno
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from made_faults import Writers, at_call, read_only, small_disk
from made_sweeps import contents, made_layout, made_result, made_sweep, write_blocks

from tokenflock.errors import StoreError
from tokenflock.sweeps.store import SweepStore

SWEEP = made_sweep()
LAYOUT = made_layout()
GRID = SWEEP.grid


@pytest.fixture
def store(tmp_path):
    return SweepStore.create(tmp_path / "sweep", SWEEP, LAYOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a dataset that was written without any trouble."""
    made = SweepStore.create(tmp_path_factory.mktemp("whole") / "sweep", SWEEP, LAYOUT)
    write_blocks(made)
    return contents(made.folder / "sweep.zarr")


def reopened(store):
    return SweepStore.open(store.folder, SWEEP, LAYOUT)


def finish(store):
    write_blocks(store, np.flatnonzero(~store.done()))


def fail(code):
    def act():
        raise OSError(code, os.strerror(code))

    return act


# --- disks that fail ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)])
def test_a_call_that_fails_leaves_the_block_undone_and_the_rest_alone(store, whole, code):
    write_blocks(store, [0])
    block, tried = GRID.block(1), 0
    with store.lock():
        while True:
            with at_call(tried, fail(code)) as calls:
                try:
                    store.write(block, made_result(block, LAYOUT))
                    break
                except StoreError as error:
                    assert os.strerror(code) in str(error)
                    assert f"tokenflock sweep --resume --out {store.folder}" in str(error)
            again = reopened(store)
            assert np.flatnonzero(again.done()).tolist() == [0]
            assert again.verify() == []
            tried += 1
    # Chunks and their folders, and the line of the journal: every call of a block was made to fail.
    assert tried == len(calls) >= 3 * len(LAYOUT.variables)
    finish(store)
    assert reopened(store).verify() == []
    assert contents(store.folder / "sweep.zarr") == whole


def test_creating_on_a_disk_that_fails_leaves_nothing(tmp_path):
    folder, tried = tmp_path / "new" / "sweep", 0
    while True:
        with at_call(tried, fail(errno.ENOSPC)) as calls:
            try:
                SweepStore.create(folder, SWEEP, LAYOUT)
                break
            except StoreError as error:
                assert "No space left" in str(error)
        if "rename" in calls[:-1]:  # it is there, but perhaps not after a power cut
            assert SweepStore.open(folder, SWEEP, LAYOUT).verify() == []
            shutil.rmtree(tmp_path / "new")
        assert not any(tmp_path.iterdir())
        tried += 1
    assert tried == len(calls) > 2 * len(LAYOUT.variables)


def test_a_disk_that_is_full(tmp_path, whole):
    disk = tmp_path / "disk"
    with small_disk(disk, kibibytes=1024) as mounted:
        if not mounted:
            pytest.skip("no disk can be mounted here")
        store = SweepStore.create(disk / "sweep", SWEEP, LAYOUT)
        space = os.statvfs(disk)
        (disk / "ballast").write_bytes(bytes((space.f_bavail - 20) * space.f_frsize))
        with pytest.raises(StoreError, match=r"No space left.*free some space.*--resume"):
            write_blocks(store)
        kept = np.flatnonzero(store.done())
        assert 0 < len(kept) < GRID.block_count
        assert reopened(store).verify() == []
        assert np.array_equal(np.flatnonzero(reopened(store).done()), kept)
        (disk / "ballast").unlink()
        finish(reopened(store))
        assert contents(store.folder / "sweep.zarr") == whole


def test_a_limit_on_the_size_of_files(store, whole):
    """Where no disk can be mounted: the kernel refuses to let the journal grow."""
    write_blocks(store, [0])
    limit = (store.folder / "journal.jsonl").stat().st_size + 100
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, kept[1]))
    try:
        with pytest.raises(StoreError, match=r"File too large.*--resume"):
            write_blocks(store, [1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)
    assert np.flatnonzero(reopened(store).done()).tolist() == [0]
    assert (store.folder / "journal.jsonl").read_bytes().endswith(b"\n")
    finish(reopened(store))
    assert contents(store.folder / "sweep.zarr") == whole


def test_a_folder_that_cannot_be_written(store):
    write_blocks(store, [0])
    before = contents(store.folder)
    with read_only(store.folder) as made:
        if not made:
            pytest.skip("no folder can be made read-only here")
        with pytest.raises(StoreError, match="finished cells are kept: make it writable"):
            write_blocks(reopened(store), [1])
        with pytest.raises(StoreError, match=r"not permitted|not writable|denied"):
            SweepStore.create(store.folder / "inner" / "sweep", SWEEP, LAYOUT)
        assert reopened(store).verify() == []
    assert contents(store.folder) == before


# --- two writers ----------------------------------------------------------------------------------

HOLDS = """
import sys
from pathlib import Path
from tokenflock.results.locking import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(store):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(store.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait(timeout=30)
    process.stdin.close()
    process.stdout.close()


def test_the_second_writer_is_refused_until_the_first_is_dead(store, holder):
    told = rf"being written by process {holder.pid} on .+ since \d{{4}}-.*another --out"
    for _ in range(2):
        with pytest.raises(StoreError, match=told):
            write_blocks(store, [0])
    assert not reopened(store).done().any()
    holder.kill()
    holder.wait(timeout=30)
    write_blocks(store, [0])
    assert reopened(store).done()[0]


def test_a_lock_is_given_back(store):
    for _ in range(2):
        with store.lock(), pytest.raises(StoreError, match=str(os.getpid())):
            write_blocks(reopened(store), [0])
    with pytest.raises(KeyError), store.lock():
        raise KeyError
    write_blocks(reopened(store), [0])


# --- kill -9 --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writers():
    with Writers() as nursery:
        yield nursery


def check_after_a_kill(store, before):
    """Nothing that was done is lost, and everything that counts as done is whole."""
    again = reopened(store)
    assert again.verify() == []
    assert again.done()[before].all()
    return again.done()


@pytest.mark.slow
def test_killed_at_every_system_call_of_a_block(store, whole, writers):
    done, survived = store.done(), False
    write_blocks(store, range(GRID.block_count - 1))
    for call in range(100):
        # Always the last block: forget it where the kill came after it was committed.
        with store.lock():
            store.forget([GRID.block_count - 1])
        writers.start(store.folder, die_at=call)
        survived = writers.wait()
        done = check_after_a_kill(store, np.arange(GRID.block_count - 1))
        if survived:
            break
    assert survived
    assert call >= 3 * len(LAYOUT.variables)
    assert done.all()
    assert contents(store.folder / "sweep.zarr") == whole


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path, whole, writers):
    draw = np.random.default_rng(11)
    kills, count, between = 0, 0, set()
    first = SweepStore.create(tmp_path / "first", SWEEP, LAYOUT)
    writers.start(first.folder)
    start = time.perf_counter()
    assert writers.wait()
    takes = time.perf_counter() - start
    while kills < 50:
        count += 1
        store = SweepStore.create(tmp_path / str(count), SWEEP, LAYOUT)
        done = store.done()
        while not done.all():
            pid = writers.start(store.folder)
            time.sleep(draw.uniform(0, takes))
            writers.kill(pid)
            kills += not writers.wait()
            done = check_after_a_kill(store, done)
            between.add(int(done.sum()))
        assert contents(store.folder / "sweep.zarr") == whole
    assert len(between) > 3, "the kills came before or after the writing, not during it"
