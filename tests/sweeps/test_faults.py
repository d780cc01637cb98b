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
from collections import Counter, deque

import pytest
from tiny_sweeps import (
    SLOW_CELLS,
    SeparateCluster,
    computing_children,
    dataset_hash,
    is_alive,
    journal_lines,
    kill_group,
    start,
    wait_until,
)

from tokenflock.sweeps.conduct import Wishes, conduct
from tokenflock.sweeps.plan import parse_sweep

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
    conduct(parse_sweep(spec.read_text()), out, Wishes(workers=1))
    return dataset_hash(out)


class Campaign:
    """Sweeps with kills until all planned ones have happened; everything random comes from `draw`.

    A kill is (whether the cluster is apart, who is killed). The scheduler of a cluster of its own lives
    in the client.
    """

    def __init__(self, spec, place, kills, draw, wanted):
        self.spec, self.place, self.wanted, self.draw = spec, place, wanted, draw
        self.planned = deque(kills)
        self.killed = Counter()
        self.cluster = SeparateCluster(place) if any(apart for apart, _ in kills) else None
        self.sweeps = self.attempts = 0

    def run(self):
        try:
            while self.planned:
                self.sweeps += 1
                self.one_sweep(self.place / f"sweep-{self.sweeps}")
        finally:
            if self.cluster is not None:
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
        what = ["--resume"] if (out / "sweep.toml").exists() else [self.spec]
        apart = self.planned[0][0] if self.planned else False
        alone = not self.planned or self.planned[0][1] != "worker"
        own = ["--workers", self.draw.choice([1, 2]) if alone else 2]
        where = ["--scheduler", self.cluster.address] if apart else own
        sweep = start(*what, "--out", out, *where)
        try:
            self.hurt(sweep, out, apart)
            told, complained = sweep.communicate(timeout=300)
        finally:
            kill_group(sweep)
        self.check(out, before, sweep.returncode, told, complained)

    def hurt(self, sweep, out, apart):
        """Kill as planned at random moments, for as long as the sweep goes on."""
        while self.planned and self.planned[0][0] == apart and self.wait(sweep, out):
            victim = self.planned[0][1]
            if victim == "worker":
                done = self.kill_worker(sweep, apart)
            elif victim == "scheduler" and apart:
                self.cluster.kill_scheduler()
                self.cluster.start()
                done = True
            else:
                self.kill_client(sweep)
                done = True
            if done:
                self.planned.popleft()
                self.killed[victim] += 1

    def wait(self, sweep, out):
        """Any moment of the attempt, start-up included, or one soon after a number of commits."""
        known = len(journal_lines(out))
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
            return True
        for worker in computing_children(sweep.pid)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                return True
        return False

    def kill_client(self, sweep):
        """Nothing it has started outlives it."""
        left = computing_children(sweep.pid)
        sweep.kill()
        sweep.wait(timeout=30)
        wait_until(lambda: not any(map(is_alive, left)), 20, "the end of the workers")

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


def campaign(spec, place, wanted, kills, draw):
    began = time.monotonic()
    found = Campaign(spec, place, kills, draw, wanted).run()
    print(
        f"{dict(found.killed)} in {found.attempts} attempts of {found.sweeps} sweeps, "
        f"{time.monotonic() - began:.0f} s"
    )
    assert sum(found.killed.values()) == len(kills)


def test_a_sweep_survives_a_kill_of_its_client(spec, uninterrupted, tmp_path):
    campaign(spec, tmp_path, uninterrupted, [(False, "client")], random.Random(6))


@pytest.mark.slow
def test_a_sweep_survives_one_kill_of_each(spec, uninterrupted, tmp_path):
    kills = [(True, "worker"), (True, "scheduler"), (False, "client")]
    campaign(spec, tmp_path, uninterrupted, kills, random.Random(1))


@pytest.mark.slow
def test_a_sweep_survives_fifty_kills(spec, uninterrupted, tmp_path):
    seed = int(os.environ.get("FAULT_SEED", "20261116"))
    draw = random.Random(seed)
    victims = ("client", "worker", "scheduler")
    kills = [(draw.random() < 0.6, draw.choice(victims)) for _ in range(50)]
    print(f"seed {seed}")
    campaign(spec, tmp_path, uninterrupted, kills, draw)
