"""Kill -9 at random moments: of the client, of a worker, of the scheduler. Nothing done is lost or redone.

A campaign runs one sweep after the other until so many kills have happened; after each one whatever
died is started again, the sweep with --resume. It runs on a cluster of its own processes or on one whose
scheduler and workers are processes of ours.
"""

import contextlib
import json
import os
import random
import signal
import time

import pytest
from tiny_sweeps import (
    SLOW_CELLS,
    SeparateCluster,
    computing_children,
    dataset_hash,
    journal_lines,
    kill_group,
    start,
)

# Enough blocks for several kills in one sweep.
SPEC = SLOW_CELLS.replace("batch = 2", "batch = 1")
BLOCKS = 12


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "slow.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def uninterrupted(spec, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "sweep"
    sweep = start(spec, "--out", out, "--workers", 1)
    _, complained = sweep.communicate(timeout=300)
    assert sweep.returncode == 0, complained
    return dataset_hash(out)


class Campaign:
    """Kills until there have been `kills` of them; everything random comes from the seed."""

    def __init__(self, spec, place, kills, seed, wanted):
        self.spec, self.place, self.kills, self.wanted = spec, place, kills, wanted
        self.draw = random.Random(seed)
        self.cluster = SeparateCluster(place)
        self.killed = {"client": 0, "worker": 0, "scheduler": 0}
        self.sweeps = self.attempts = 0

    def run(self):
        try:
            while sum(self.killed.values()) < self.kills:
                self.sweeps += 1
                self.one_sweep(self.place / f"sweep-{self.sweeps}")
        finally:
            self.cluster.stop()
        return self

    def one_sweep(self, out):
        """A sweep from its first attempt to the one that ends, with kills in between."""
        while not (out / "summary.json").exists():
            self.attempt(out)
        assert len(journal_lines(out)) == BLOCKS
        assert dataset_hash(out) == self.wanted

    def attempt(self, out):
        self.attempts += 1
        before = journal_lines(out)
        begun = (out / "sweep.toml").exists()
        apart = self.draw.random() < 0.6
        where = (
            ["--scheduler", self.cluster.address]
            if apart
            else ["--workers", self.draw.choice([1, 2])]
        )
        what = ["--resume"] if begun else [self.spec]
        sweep = start(*what, "--out", out, *where)
        try:
            self.hurt(sweep, out, apart, len(before))
            told, complained = sweep.communicate(timeout=300)
        finally:
            kill_group(sweep)
        self.check(out, before, sweep.returncode, told, complained)

    def hurt(self, sweep, out, apart, known):
        """Wait for a random moment, kill somebody, and once more if the sweep goes on."""
        while sum(self.killed.values()) < self.kills and self.wait(sweep, out, known):
            victim = self.draw.choice(["client", "worker", "scheduler"])
            if victim == "worker":
                self.kill_worker(sweep, apart)
                known = len(journal_lines(out))
            elif victim == "scheduler" and apart:
                self.cluster.kill_scheduler()
                self.cluster.start()
                self.killed["scheduler"] += 1
                return
            else:
                # The scheduler of a cluster of its own lives in the client.
                sweep.kill()
                self.killed["client" if victim == "client" else "scheduler"] += 1
                return

    def wait(self, sweep, out, known):
        """Any moment of the attempt, start-up included, or one soon after a number of commits."""
        if self.draw.random() < 0.3:
            deadline, blocks = time.monotonic() + self.draw.uniform(0.0, 6.0), BLOCKS + 1
        else:
            deadline, blocks = time.monotonic() + 120, known + self.draw.randint(1, 4)
        extra = self.draw.uniform(0.0, 0.15)
        while time.monotonic() < deadline and len(journal_lines(out)) < blocks:
            if sweep.poll() is not None or (out / "summary.json").exists():
                return False
            time.sleep(0.005)
        time.sleep(extra)
        return sweep.poll() is None

    def kill_worker(self, sweep, apart):
        if apart:
            self.cluster.kill_worker(self.draw.randrange(2))
        else:
            workers = computing_children(sweep.pid)
            if not workers:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.draw.choice(workers), signal.SIGKILL)
        self.killed["worker"] += 1

    def check(self, out, before, code, told, complained):
        """Whatever happened, what was committed stands, word for word, and an end is a clean one."""
        gone = "is gone; what is done is kept" in complained
        never_there = "no dask scheduler answers" in complained
        expected = {1: gone, 2: never_there}.get(code, code in (0, -signal.SIGKILL))
        assert expected, complained
        assert "Traceback" not in complained, complained
        after = journal_lines(out)
        assert after[: len(before)] == before
        blocks = [json.loads(line)["block"] for line in after]
        assert len(set(blocks)) == len(blocks), "a committed block was computed again"
        if code == 0:
            assert json.loads(told)["failed"] == 0


def campaign(spec, place, wanted, kills, seed):
    start_time = time.monotonic()
    found = Campaign(spec, place, kills, seed, wanted).run()
    print(
        f"seed {seed}: {found.killed} in {found.attempts} attempts of {found.sweeps} sweeps, "
        f"{time.monotonic() - start_time:.0f} s"
    )
    assert sum(found.killed.values()) == kills


def test_a_sweep_survives_a_few_kills(spec, uninterrupted, tmp_path):
    campaign(spec, tmp_path, uninterrupted, kills=4, seed=3)


@pytest.mark.slow
def test_a_sweep_survives_fifty_kills(spec, uninterrupted, tmp_path):
    seed = int(os.environ.get("FAULT_SEED", "20261116"))
    campaign(spec, tmp_path, uninterrupted, kills=50, seed=seed)
