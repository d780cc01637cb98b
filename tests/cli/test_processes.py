"""Real processes: kills and Ctrl-C, start-up time, the last words on a full disk."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interrupts import HEARING_SIGINT

import tokenflock as flock

COMMAND = str(Path(sys.executable).with_name("tokenflock"))
# Some seconds of computing in forty parts, with noise, so that every step counts.
LONG = """
title = "long"
[model]
name = "NoisyUSA"
beta = 2.0
temperature = 0.2
[tokens]
law = "uniform"
d = 3
n = 64
seed = 1
[solve]
t1 = 5.0
dt = 0.0005
seed = 3
[save]
every = 0.0625
observe = ["order_parameter", { name = "clusters", angle = 0.1 }]
[output]
figure = false
"""


def parts_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "segments").glob("0*.zarr"))


def interrupted(arguments: list[str], folder: Path, sent: int, wait: float) -> subprocess.Popen:
    """Start the command, wait for new parts on disk and a little longer, then send the signal."""
    known = parts_in(folder)
    process = subprocess.Popen(
        [*HEARING_SIGINT, COMMAND, "run", *arguments, "--out", str(folder), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while parts_in(folder) == known and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(wait)
    process.send_signal(sent)
    return process


def test_a_run_that_is_really_killed_ends_with_the_same_numbers(tmp_path):
    """Killed once and interrupted once; tests/lab kills at more moments, within one process."""
    spec, whole, broken = tmp_path / "long.toml", tmp_path / "whole", tmp_path / "broken"
    spec.write_text(LONG)
    uninterrupted = subprocess.Popen(
        [COMMAND, "run", str(spec), "--out", str(whole), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    moments = random.Random(5)
    reached = [0.0]
    process = interrupted([str(spec)], broken, signal.SIGKILL, moments.uniform(0.0, 0.3))
    assert process.wait(60) == -signal.SIGKILL
    opened = flock.open(broken)
    assert opened.outcome == "interrupted"
    reached.append(opened.reached)
    process = interrupted(["--resume"], broken, signal.SIGINT, 0.0)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr
    assert f"tokenflock run --resume --out {broken}" in " ".join(stderr.split())
    reached.append(flock.open(broken).reached)
    assert reached == sorted(set(reached))
    assert reached[-1] < 5.0
    last = subprocess.run(
        [COMMAND, "run", "--resume", "--out", str(broken), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    first = json.loads(uninterrupted.communicate(timeout=120)[0])
    again = json.loads(last.stdout)
    for key in ("id", "clusters", "energy", "health", "time"):
        assert again[key] == first[key]
    expected, found = flock.open(whole), flock.open(broken)
    assert set(expected.arrays) == set(found.arrays)
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(array, found.arrays[name], err_msg=name)
    np.testing.assert_array_equal(expected.time, found.time)
    assert sorted(item.name for item in broken.iterdir()) == [
        "spec.toml",
        "summary.json",
        "trajectory.zarr",
    ]


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_two_processes_never_write_into_one_folder(tmp_path):
    """The second is refused at once; the first stops when another folder is put in its place."""
    spec, place, moved = tmp_path / "long.toml", tmp_path / "run", tmp_path / "moved"
    spec.write_text(LONG)
    second = [COMMAND, "run", str(spec), "--set", "n=8", "--set", "t1=0.5"]
    subprocess.run([*second, "--out", str(tmp_path / "other"), "--json"], check=True)
    first = subprocess.Popen(
        [COMMAND, "run", str(spec), "--set", "t1=50.0", "--out", str(place)],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not parts_in(place):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # It must not come to its end meanwhile, however slowly the others start.
    first.send_signal(signal.SIGSTOP)
    for how in ([*second, "--overwrite"], [COMMAND, "run", "--resume"]):
        refused = subprocess.run(
            [*how, "--out", str(place)], capture_output=True, text=True, check=False
        )
        told = " ".join(refused.stderr.split())
        assert refused.returncode == 2
        assert f"is being written by process {first.pid} on" in told
        assert "Traceback" not in told
    place.rename(moved)
    (tmp_path / "other").rename(place)
    before = contents(place)
    first.send_signal(signal.SIGCONT)
    told = " ".join(first.communicate(timeout=120)[1].split())
    assert first.returncode == 1
    assert "is no longer what this process was writing" in told
    assert "Traceback" not in told
    assert contents(place) == before
    assert flock.open(moved).attributes["spec"]["tokens"]["n"] == 64
    assert flock.open(place).attributes["spec"]["tokens"]["n"] == 8


@pytest.mark.slow
def test_the_printed_spec_gives_the_same_numbers_in_another_process(tmp_path):
    settings = ["n=6", "t1=2.0", "every=0.5", "figure=false"]
    chosen = ["--example", "circle", *(word for s in settings for word in ("--set", s))]

    def call(*arguments):
        return subprocess.run(
            [COMMAND, "run", *map(str, arguments)], capture_output=True, text=True, check=True
        ).stdout

    first = json.loads(call(*chosen, "--out", tmp_path / "first", "--json"))
    (tmp_path / "printed.toml").write_text(call(*chosen, "--print-spec"))
    again = json.loads(call(tmp_path / "printed.toml", "--out", tmp_path / "again", "--json"))
    for key in ("id", "clusters", "energy", "health"):
        assert again[key] == first[key]
    expected, found = flock.open(tmp_path / "first"), flock.open(tmp_path / "again")
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(array, found.arrays[name], err_msg=name)


HEAVY = {"jax", "numpy", "matplotlib", "xarray", "zarr", "equinox"}


@pytest.mark.parametrize(
    "script",
    [
        "import tokenflock",
        "import tokenflock.cli",
        "from tokenflock.cli import app; app(['run', '--help'], standalone_mode=False)",
        "from tokenflock.cli import app; app(['list', 'examples'], standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_imported(script):
    listing = f"{script}; import sys; print('@', *sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split("@")[-1].split())


def test_last_words_on_a_full_disk_are_no_traceback():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, "list", "examples", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_a_closed_pipe_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [COMMAND, "list", "examples", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert "Traceback" not in done.stderr


# The garbage collector's callback gets the Ctrl-C, as JAX's does when the collector is busy.
LOSING_CTRL_C = """
import gc, signal, sys, time
import tokenflock.cli as cli

def lose(*_):
    gc.callbacks.remove(lose)
    signal.raise_signal(signal.SIGINT)

def command():
    gc.callbacks.append(lose)
    gc.collect()
    time.sleep(30)

signal.signal(signal.SIGINT, signal.default_int_handler)
cli.app.command("wait")(cli.in_a_sentence(command))
sys.argv = ["tokenflock", "wait"]
cli.main()
"""


def test_a_ctrl_c_that_the_garbage_collector_swallows_is_heard():
    done = subprocess.run(
        [sys.executable, "-c", LOSING_CTRL_C],
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "tokenflock: interrupted\n")
