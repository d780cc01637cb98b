"""tokenflock sweep, from the command line inwards: help, plans, tables, JSON, bad input, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.sweeps.catalogue import sweep_example_names, sweep_example_text

SPEC = """
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
"""
# The last cells raise when they are built: a cap wider than the sphere.
ONE_BAD = SPEC.replace('law = "uniform"', 'law = "cap"\nradius = 1.0').replace(
    "beta = [1.0, 4.0, 9.0]", "radius = [1.0, 9.0]"
)
ALONE = ["--workers", "1"]


@pytest.fixture
def spec(tmp_path, monkeypatch):
    # The processes of these tests are not to be set up for good.
    monkeypatch.setattr("tokenflock.sweeps.workers.prepare_process", lambda: None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(SPEC)
    return path


def call(*arguments):
    result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def one_sentence(result, code=2):
    assert result.exit_code == code
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("tokenflock: ")
    return lines[0]


def test_help_teaches_by_examples():
    text = " ".join(call("--help").stdout.replace("│", " ").split())
    for words in (
        "--example phase-small",
        "--print-spec >",
        "--dry-run",
        "--resume --out",
        "--scheduler tcp://",
        "[sweep.axes]",
        "Exit codes",
        *sweep_example_names(),
    ):
        assert words in text


def test_a_sweep_from_start_to_picture(spec, tmp_path):
    result = call(spec, *ALONE)
    assert result.exit_code == 0, result.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("tiny-")
    assert "12 cells (3 beta x 4 seed), 0 failed" in result.stdout
    names = "figure.png, journal.jsonl, summary.json, sweep.toml, sweep.zarr"
    assert names in " ".join(result.stdout.split())
    assert "tiny: 100%, 12/12 cells" in result.stderr
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert flock.open(folder).sizes["beta"] == 3
    # Resumed, it is finished; without its picture, it gets one.
    (folder / "figure.png").unlink()
    again = call("--resume", "--out", folder.relative_to(tmp_path), "--json", *ALONE)
    assert again.exit_code == 0
    assert json.loads(again.stdout) == json.loads((folder / "summary.json").read_text())
    assert "is finished; this is its stored result" in again.stderr
    assert (folder / "figure.png").exists()


def test_failed_cells_are_shown_and_are_no_failure_of_the_sweep(spec, tmp_path):
    spec.write_text(ONE_BAD + "[output]\nfigure = false\n")
    result = call(spec, "--out", "bad", *ALONE)
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "radius = 9.0, seed = 0 radius must lie in (0, pi], got 9.0" in words
    assert "8 cells (2 radius x 4 seed), 4 failed" in words
    assert not (tmp_path / "bad" / "figure.png").exists()
    for out in (["--out", "strict"], ["--out", "bad", "--resume"]):
        strict = call(spec, *out, "--strict", *ALONE)
        assert strict.exit_code == 1
        assert "strict: the cell radius = 9.0, seed = 0 failed" in strict.stderr


def test_nothing_but_failures_is_exit_code_1(spec, monkeypatch):
    summary = {"ok": False, "cells": 3, "failed": 3}
    # The package's attribute of this name is the command.
    module = sys.modules["tokenflock.cli.sweep"]
    monkeypatch.setattr(module, "_conduct", lambda *_, **__: summary)
    result = call(spec, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == summary
    assert result.stderr == "tokenflock: all 3 cells failed\n"


def test_a_plan_is_told_and_nothing_is_written(spec, tmp_path):
    before = list(tmp_path.iterdir())
    words = " ".join(call(spec, "--dry-run", "--batch", 5, *ALONE).stdout.split())
    assert "3 beta x 4 seed = 12 cells" in words
    assert "3 blocks of up to 4 cells, on 1 workers" in words
    assert "MiB on disk" in words
    plan = json.loads(call(spec, "--dry-run", "--json", *ALONE).stdout)
    assert (plan["cells"], plan["blocks"], plan["batch"], plan["workers"]) == (12, 6, 2, 1)
    assert plan["disk"] > 0
    assert plan["seconds"] > 0
    assert list(tmp_path.iterdir()) == before


def test_a_plan_that_would_be_refused_says_so(spec, tmp_path, monkeypatch):
    spec.write_text(SPEC.replace('"tiny"', r'"tiny\u001b[2J"'))
    monkeypatch.setattr("tokenflock.sweeps.estimate.free_bytes", lambda folder: 100.0)
    result = call(spec, "--dry-run", *ALONE)
    assert result.exit_code == 2
    assert r"tiny\x1b[2J (" in result.stdout
    assert "12 cells need up to" in result.stderr
    result = call(spec, "--dry-run", "--json", "--out", ".", *ALONE)
    assert result.exit_code == 2
    assert json.loads(result.stdout)["refused"].startswith(". exists; choose another --out")


def test_the_list_of_examples_shows_sweeps():
    found = CliRunner().invoke(app, ["list", "examples", "--json"])
    assert [row["name"] for row in json.loads(found.stdout)["sweeps"]] == sweep_example_names()


def test_a_printed_spec_is_the_same_sweep(spec):
    printed = call(spec, "--set", "model.beta=2.5", "--set", "sweep.seed=4", "--print-spec").stdout
    table = tomllib.loads(printed)
    assert (table["sweep"]["batch"], table["sweep"]["seed"]) == (2, 4)
    spec.write_text(printed)
    assert call(spec, "--print-spec").stdout == printed


def test_every_shipped_sweep_can_be_planned():
    assert {"phase-diagram", "phase-small"} <= set(sweep_example_names())
    for name in sweep_example_names():
        assert call("--example", name, "--print-spec").exit_code == 0
        assert sweep_example_text(name).startswith('title = "')


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a spec file or --example NAME"),
        (["missing.toml"], "there is no file missing.toml"),
        (["--example", "phase-smal"], "did you mean 'phase-small'?"),
        (["tiny.toml", "--example", "phase-small"], "not both"),
        (["--resume"], "--resume needs --out"),
        (["--resume", "--out", "nowhere"], "there is no sweep to resume in nowhere"),
        (["--resume", "--out", "nowhere", "--set", "t1=3"], "--set changes a spec"),
        (["--resume", "--overwrite", "--out", "x"], "choose one"),
        (["--resume", "--batch", "3", "--out", "x"], "--batch is fixed when a sweep starts"),
        (["tiny.toml", "--print-spec", "--json"], "--print-spec prints TOML; leave out --json"),
        (["tiny.toml", "--retry-failed"], "--retry-failed belongs to --resume"),
        (["tiny.toml", "--out", "tiny.toml"], "tiny.toml is a file"),
        (["tiny.toml", "--out", "."], ". exists"),
        (["tiny.toml", "--out", ".", "--overwrite"], ". is not a sweep folder"),
        (["tiny.toml", "--set", "sweep.axes.seed.seeds=99999999"], "seeds"),
        (["tiny.toml", "--set", "sweep.axes.gamma=[1,2]"], "gamma"),
    ],
)
def test_bad_input_is_a_sentence_and_writes_nothing(spec, tmp_path, arguments, words):
    before = sorted(tmp_path.rglob("*"))
    assert words in one_sentence(call(*arguments))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_picture_that_cannot_be_drawn_fails_nothing(spec, monkeypatch):
    def broken(dataset):
        raise ValueError("no ink")

    monkeypatch.setattr("tokenflock.plot.sweeps.draw_sweep", broken)
    result = call(spec, "--out", "a", *ALONE)
    assert result.exit_code == 0
    assert "there is no picture: unexpected ValueError: no ink" in result.stderr


def test_sigterm_is_an_interrupt(spec, tmp_path, monkeypatch):
    def terminated(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr("tokenflock.sweeps.conduct.conduct", terminated)
    before = signal.getsignal(signal.SIGTERM)
    result = call(spec, "--out", "a")
    assert result.exit_code == 130
    assert result.stderr == "tokenflock: interrupted before anything was written\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_before_anything_is_written_says_so(spec, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tokenflock.sweeps.conduct.conduct", interrupted)
    result = call(spec, "--out", "a")
    assert result.exit_code == 130
    assert result.stderr == "tokenflock: interrupted before anything was written\n"
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_a_hundred_thousand_cells_start_before_the_last_is_planned(spec, tmp_path):
    """The first blocks are on disk while nearly all of the 100,200 cells are still to come."""
    seeds = ["--set", "sweep.axes.seed.seeds=33400", "--set", "sweep.batch=256"]
    command = [str(Path(sys.executable).with_name("tokenflock")), "sweep", spec, *seeds]
    sweep = subprocess.Popen(
        [*map(str, command), "--out", "first"], stderr=subprocess.DEVNULL, start_new_session=True
    )
    journal = tmp_path / "first" / "journal.jsonl"
    try:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
            assert sweep.poll() is None
            time.sleep(0.01)
    finally:
        os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
    blocks = journal.read_bytes().count(b"\n")
    assert blocks < 0.1 * 100_200 / 256
