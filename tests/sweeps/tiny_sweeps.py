"""A sweep of small cells, and what tests of running it share: commands, clusters, comparisons."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("tokenflock"))

TINY = """
title = "tiny"
[model]
name = "SA"
beta = 4.0
[tokens]
law = "uniform"
d = 3
n = 12
[solve]
t1 = 2.0
step = 0.1
[save]
every = 1.0
observe = ["order_parameter"]
[sweep]
batch = 2
[sweep.axes]
beta = [1.0, 4.0, 9.0]
seed = { seeds = 4 }
[output]
figure = false
"""
# The same program with more steps: about a tenth of a second for a cell.
SLOW_CELLS = TINY.replace("step = 0.1", "step = 5e-5")


def tree_hash(folder):
    """One digest of the names and contents of all files below a folder."""
    found = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        found.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def dataset_hash(folder):
    return tree_hash(Path(folder) / "sweep.zarr")


def journal_lines(folder):
    """Whole lines of finished blocks."""
    try:
        text = (Path(folder) / "journal.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    return text[: text.rfind(b"\n") + 1].splitlines()[1:]


def children(pid):
    """Processes a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found


def computing_children(pid):
    """Worker processes of a local cluster: children started by multiprocessing's spawn."""
    workers = []
    for child in children(pid):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                workers.append(child)
    return workers


def is_alive(pid):
    """Running, and not only waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=120.0, what="it"):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
        time.sleep(0.01)
    return found


def start(*arguments, **options):
    """The command as a process of its own, in a group of its own."""
    return subprocess.Popen(
        [COMMAND, "sweep", *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


class SeparateCluster:
    """A dask scheduler and workers as processes of their own, started as a user would."""

    def __init__(self, folder, workers=2):
        self.folder = Path(folder)
        self.count = workers
        self.started = 0
        self.start()

    def start(self):
        self.started += 1
        file = self.folder / f"scheduler-{self.started}.json"
        self.scheduler = self._process(
            "dask_scheduler", "--port", "0", "--scheduler-file", file, "--no-dashboard"
        )
        wait_until(lambda: file.exists() and file.stat().st_size > 0, what="a scheduler")
        self.file = file
        self.workers = [self.worker() for _ in range(self.count)]

    @property
    def address(self):
        import json

        return wait_until(lambda: _loaded(json, self.file), what="an address")["address"]

    def kill_scheduler(self):
        self.scheduler.kill()
        self.stop()

    def kill_worker(self, number):
        """A worker without a nanny dies for good; another takes its place, as a queue would do it."""
        _bury(self.workers[number])
        self.workers[number] = self.worker()

    def stop(self):
        for process in [self.scheduler, *self.workers]:
            _bury(process)

    def worker(self):
        return self._process(
            *("dask_worker", "--scheduler-file", self.file, "--nthreads", 1),
            *("--no-nanny", "--no-dashboard", "--local-directory", self.folder / "scratch"),
        )

    def _process(self, module, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _loaded(json, file):
    try:
        return json.loads(file.read_text())
    except ValueError:
        return None


def _bury(process):
    process.kill()
    process.wait(timeout=30)


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
