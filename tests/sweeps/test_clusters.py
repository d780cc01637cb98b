"""Sweeps on several processes: a cluster of our own, one that others started, and deaths in both."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tiny_sweeps import (
    SLOW_CELLS,
    TINY,
    SeparateCluster,
    computing_children,
    dataset_hash,
    is_alive,
    journal_lines,
    kill_group,
    start,
    wait_until,
)

import tokenflock as flock
from tokenflock.errors import InputError, SolveError
from tokenflock.sweeps.cluster import own_cluster, running_cluster
from tokenflock.sweeps.conduct import Wishes, conduct
from tokenflock.sweeps.grid import Grid
from tokenflock.sweeps.isolation import computed
from tokenflock.sweeps.layout import BlockResult, Layout, Variable
from tokenflock.sweeps.plan import parse_sweep
from tokenflock.sweeps.workers import Order


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The digest of the sweep computed in this process."""
    folder = tmp_path_factory.mktemp("alone") / "sweep"
    conduct(parse_sweep(TINY), folder, Wishes(workers=1))
    return dataset_hash(folder)


def test_two_worker_processes_give_the_same_bytes_as_one(tiny, tmp_path):
    data = flock.sweep(TINY, tmp_path / "two", workers=2, progress=False)
    assert data["order_parameter"].dims == ("beta", "seed", "time")
    assert data.attrs["cells_done"] == 12
    assert dataset_hash(tmp_path / "two") == tiny
    # A dict of the same settings is the same sweep, which is finished.
    again = flock.sweep(tomllib.loads(TINY), tmp_path / "two", resume=True, progress=False)
    assert again.identical(data)


def test_what_is_no_spec_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="the path of a TOML file, its text or a dict, got int"):
        flock.sweep(3, tmp_path / "a")
    with pytest.raises(InputError, match="there is no file"):
        flock.sweep("nowhere.toml", tmp_path / "a")


@pytest.mark.slow
@pytest.mark.parametrize("wishes", [Wishes(workers=4), Wishes(workers=1, apart=True)], ids=str)
def test_four_processes_and_one_of_its_own_give_the_same_bytes(tiny, tmp_path, wishes):
    conduct(parse_sweep(TINY), tmp_path / "other", wishes)
    assert dataset_hash(tmp_path / "other") == tiny


@pytest.mark.slow
def test_a_scheduler_and_workers_started_elsewhere_give_the_same_bytes(tiny, tmp_path):
    cluster = SeparateCluster(tmp_path)
    try:
        conduct(parse_sweep(TINY), tmp_path / "far", Wishes(scheduler=cluster.address))
        assert dataset_hash(tmp_path / "far") == tiny
        assert is_alive(cluster.scheduler.pid)
    finally:
        cluster.stop()


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:9",
        pytest.param("nonsense", marks=pytest.mark.slow),
        pytest.param("what://is-this:1", marks=pytest.mark.slow),
    ],
)
def test_a_scheduler_that_does_not_answer_is_a_sentence(tmp_path, monkeypatch, address):
    monkeypatch.setattr("tokenflock.sweeps.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match="no dask scheduler answers at"):
        conduct(parse_sweep(TINY), tmp_path / "a", Wishes(scheduler=address))
    assert list(tmp_path.iterdir()) == []


# Loaded by Python as it starts: neither tokenflock nor what pip knows of it can be found.
WITHOUT_TOKENFLOCK = """
import importlib.metadata, sys
sys.modules["tokenflock"] = None
known = importlib.metadata.version
def version(name):
    if name == "tokenflock":
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)
importlib.metadata.version = version
"""


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            WITHOUT_TOKENFLOCK,
            r"the worker at tcp://\S+ has no tokenflock, jax \d.*install the same",
        ),
        pytest.param(
            "import sys; sys.modules['tokenflock'] = None",
            r"the worker at \S+ cannot load tokenflock: ",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["missing", "broken"],
)
def test_workers_without_tokenflock_are_refused(tmp_path, monkeypatch, lines, words):
    (tmp_path / "sitecustomize.py").write_text(lines)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cluster = SeparateCluster(tmp_path, workers=1)
    try:
        with (
            running_cluster(ORDER, cluster.address, print) as crew,
            pytest.raises(InputError, match=words),
        ):
            crew.attempt(Grid((3,), (3,)).block(0), None)
    finally:
        cluster.stop()


# What workers find instead of the module that computes: numbers at once, and a cell that really ends
# the process which computes it. Python loads this file when it starts.
DEADLY = """
import os, sys, types
import signal

def compute_block(text, index, only=None, layout=None):
    import numpy as np
    from tokenflock.sweeps.layout import BlockResult
    places = range(3) if only is None else only
    if index == 2 and 1 in places:
        os.kill(os.getpid(), signal.SIGKILL)
    numbers = np.full(3, np.nan)
    outcome = np.full(3, -2, np.int8)
    for place in places:
        numbers[place], outcome[place] = 10 * index + place, 0
    return BlockResult({"x": numbers, "outcome": outcome}, {}, 0.0)

module = types.ModuleType("tokenflock.sweeps.block")
module.compute_block = compute_block
sys.modules[module.__name__] = module
"""
NUMBERS = Layout(
    (Variable("x", (), (), "float64", np.nan), Variable("outcome", (), (), "int8", -2)), {}
)
ORDER = Order("", NUMBERS)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_cell_that_kills_every_worker_is_the_only_one_lost(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    grid = Grid((18,), (3,))
    with own_cluster(ORDER, 2, print) as crew:
        found = {
            block.index: result
            for block, result in computed(crew, map(grid.block, range(6)), NUMBERS)
        }
    assert sorted(found) == list(range(6))
    assert found[2].failures == {1: "the worker died 4 times (out of memory?)"}
    assert found[2].arrays["outcome"].tolist() == [0, -1, 0]
    for index in (0, 1, 3, 4, 5):
        assert found[index].failures == {}
        assert found[index].arrays["x"].tolist() == [10.0 * index + k for k in range(3)]


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_the_client_holds_few_blocks_however_many_there_are(tmp_path, monkeypatch):
    """Three hundred results of a megabyte each pass through; none of them stays."""
    large = DEADLY.replace("np.full(3, np.nan)", "np.full(125_000, np.nan)")
    (tmp_path / "sitecustomize.py").write_text(large)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    grid = Grid((3000,), (3,))
    asked = 0

    def blocks():
        nonlocal asked
        for index in range(3, 303):
            asked += 1
            yield grid.block(index)

    with own_cluster(ORDER, 2, print) as crew:
        start, most = resident_bytes(), 0
        for answered, (_, result) in enumerate(crew.stream(blocks()), start=1):
            assert isinstance(result, BlockResult)
            assert asked - answered <= 4
            assert len(crew.client.futures) <= 4
            most = max(most, resident_bytes())
    assert asked == 300
    assert most - start < 100e6


SCRIPT = """
import jax, jax.numpy as jnp
jnp.ones(3).sum()
import tokenflock as flock
data = flock.sweep({spec!r}, {folder!r}, workers=2, progress=False)
print(dict(data.sizes)["seed"], data.attrs["cells_failed"])
"""


@pytest.mark.slow
def test_a_script_without_any_set_up_gets_its_dataset(tiny, tmp_path):
    """New processes run the script of their parent again unless they are kept from it."""
    (tmp_path / "tiny.toml").write_text(TINY)
    script = tmp_path / "script.py"
    folder = tmp_path / "out"
    script.write_text(SCRIPT.format(spec=str(tmp_path / "tiny.toml"), folder=str(folder)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["4", "0"]
    assert dataset_hash(folder) == tiny


@pytest.fixture
def slow_cells(tmp_path):
    path = tmp_path / "slow.toml"
    path.write_text(SLOW_CELLS)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "workers", "everyone"),
    [
        (signal.SIGINT, 2, True),
        (signal.SIGTERM, 2, False),
        # As a batch system does it: all processes of a job.
        (signal.SIGTERM, 2, True),
        (signal.SIGTERM, 1, True),
    ],
)
def test_after_an_interrupt_a_sentence_and_nothing_is_left(
    slow_cells, tmp_path, sent, workers, everyone
):
    out = tmp_path / "out"
    sweep = start(
        *(slow_cells, "--out", out, "--workers", workers, "--set", "sweep.axes.seed.seeds=60")
    )
    try:
        wait_until(lambda: journal_lines(out), what="a block")
        processes = computing_children(sweep.pid)
        assert len(processes) == (workers if workers > 1 else 0)
        (os.killpg if everyone else os.kill)(sweep.pid, sent)
        told, complained = sweep.communicate(timeout=30)
        assert (sweep.returncode, told) == (130, "")
        assert f"tokenflock sweep --resume --out {out}" in complained
        for words in ("Traceback", "distributed", "resource_tracker", "leaked"):
            assert words not in complained
        wait_until(lambda: not any(map(is_alive, processes)), 10, "the end of the workers")
        left = {item.name for item in out.iterdir()} - {".lock"}
        assert left == {"sweep.toml", "sweep.zarr", "journal.jsonl"}
    finally:
        kill_group(sweep)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_a_killed_client_leaves_none(slow_cells, tmp_path):
    out = tmp_path / "out"
    seeds = "sweep.axes.seed.seeds=60"
    sweep = start(slow_cells, "--out", out, "--workers", 2, "--set", seeds)
    try:
        wait_until(lambda: journal_lines(out), what="a block")
        victim = computing_children(sweep.pid)[0]
        os.kill(victim, signal.SIGKILL)
        both = wait_until(
            lambda: len(found := computing_children(sweep.pid)) == 2 and victim not in found,
            what="another worker",
        )
        assert both
        count = len(journal_lines(out))
        wait_until(lambda: len(journal_lines(out)) > count + 2, what="more blocks")
        workers = computing_children(sweep.pid)
        sweep.kill()
        sweep.wait(timeout=30)
        wait_until(lambda: not any(map(is_alive, workers)), 10, "the end of the workers")
    finally:
        kill_group(sweep)


@pytest.mark.slow
def test_a_stopped_worker_is_told_and_others_compute_its_blocks(tmp_path, monkeypatch):
    """SIGSTOP closes no connection: dask alone waits for minutes."""
    monkeypatch.setattr("tokenflock.sweeps.silence.SILENT_SECONDS", 3.0)
    watch, folder = StopsOne(), tmp_path / "stopped"
    summary = conduct(parse_sweep(SLOW_CELLS), folder, Wishes(workers=2), watch)
    conduct(parse_sweep(SLOW_CELLS), tmp_path / "alone", Wishes(workers=1))
    assert (summary["computed"], summary["failed"]) == (12, 0)
    assert any("no sign of life" in said and "others compute" in said for said in watch.said)
    assert dataset_hash(folder) == dataset_hash(tmp_path / "alone")
    assert not is_alive(watch.stopped)


class StopsOne:
    """Stops a worker process of this one when the first block is on the disk."""

    def __init__(self):
        self.said, self.stopped = [], 0

    def standing(self, now):
        if now.computed and not self.stopped:
            self.stopped = computing_children(os.getpid())[-1]
            os.kill(self.stopped, signal.SIGSTOP)

    def say(self, sentence):
        self.said.append(sentence)

    def stop(self, failed=False): ...


@pytest.mark.slow
def test_a_lost_scheduler_is_a_sentence_and_resume_goes_on(slow_cells, tmp_path):
    out = tmp_path / "out"
    cluster = SeparateCluster(tmp_path)
    try:
        sweep = start(slow_cells, "--out", out, "--scheduler", cluster.address)
        wait_until(lambda: journal_lines(out) or sweep.poll() is not None, what="a block")
        cluster.kill_scheduler()
        told, complained = sweep.communicate(timeout=60)
        assert (sweep.returncode, told) == (1, "")
        assert "is gone; what is done is kept" in complained
        assert "Traceback" not in complained
        before = journal_lines(out)
    finally:
        cluster.stop()
    sweep = start("--resume", "--out", out, "--workers", 1)
    told, complained = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, complained
    assert json.loads(told)["computed"] == 12 - 2 * len(before)
    assert journal_lines(out)[: len(before)] == before


def test_a_cluster_without_workers_is_waited_for(tmp_path, monkeypatch):
    """Workers may come when the queue lets them; those that come later compute."""
    monkeypatch.setattr("tokenflock.sweeps.lookout.LOOK_SECONDS", 0.1)
    (tmp_path / "sitecustomize.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cluster = SeparateCluster(tmp_path, workers=0)
    said = []

    def say(sentence):
        said.append(sentence)
        cluster.workers.append(cluster.worker())

    try:
        with running_cluster(ORDER, cluster.address, say) as crew:
            answer = crew.attempt(Grid((3,), (3,)).block(0), None)
    finally:
        cluster.stop()
    assert said == [f"the cluster at {cluster.address} has no workers; waiting for one"]
    assert answer.arrays["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.slow
def test_a_cluster_of_ours_that_stays_without_workers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("tokenflock.sweeps.lookout.LOOK_SECONDS", 0.1)
    cluster = SeparateCluster(tmp_path, workers=0)
    try:
        with running_cluster(ORDER, cluster.address, print) as crew:
            crew.lookout.patience = 0.3
            with pytest.raises(SolveError, match="all worker processes are gone"):
                crew.attempt(Grid((3,), (3,)).block(0), None)
    finally:
        cluster.stop()
