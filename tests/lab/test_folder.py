"""Folders of runs: what they hold, what is refused, and what a full disk leaves behind."""

import contextlib
import errno
import json
import os
import shlex
from pathlib import Path

import pytest
from small_runs import same, silent, start, write_every_part
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.errors import InputError, StoreError, WriteError
from tokenflock.lab import run as run_module
from tokenflock.lab.files import parse, render
from tokenflock.lab.folder import read_summary
from tokenflock.lab.run import run_spec
from tokenflock.results.names import STORE, SUMMARY
from tokenflock.results.places import check_parent

pytestmark = [
    pytest.mark.usefixtures("shared_programs", "few_parts"),
    pytest.mark.xdist_group("lab"),
]


def test_attributes_hold_everything_that_made_the_numbers(tmp_path):
    spec = start("plain")
    run_spec(spec, tmp_path / "run", False, False, silent)
    header = json.loads((tmp_path / "run" / STORE / "zarr.json").read_text())
    assert header["zarr_format"] == 3
    held = header["attributes"]
    assert parse(render(spec)) == type(spec).model_validate(held["spec"])
    assert held["spec"]["tokens"]["seed"] == 1
    assert held["spec"]["solve"]["seed"] == 0
    assert held["dtype"] == "float64"
    assert held["device"].startswith("cpu")
    assert held["numerics"]["reduction"]["class"] == "Dense"
    assert held["versions"]["tokenflock"] == flock.__version__
    assert {"steps", "rejected_steps", "norm_drift", "energy_violation"} <= set(held["health"])
    assert parse((tmp_path / "run" / "spec.toml").read_text()) == spec


def test_an_existing_folder_is_refused_and_kept(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="exists; choose another --out"):
        run_spec(start("plain"), tmp_path / "run", False, False, silent)
    assert list((tmp_path / "run").iterdir()) == []


def test_overwrite_replaces_a_run_and_nothing_else(tmp_path):
    run_spec(start("plain"), tmp_path / "run", False, False, silent)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    run_spec(start("noise"), tmp_path / "run", False, True, silent)
    assert flock.open(tmp_path / "run").attributes["label"] == "USA"
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_two_that_start_together_do_not_share_a_folder(tmp_path, monkeypatch):
    """The other one appears after the check and before the folder is made."""
    run_spec(start("plain"), tmp_path / "run", False, False, silent)
    before = (tmp_path / "run" / STORE / "zarr.json").read_bytes()
    monkeypatch.setattr(run_module, "check_folder", lambda *arguments: None)
    with pytest.raises(InputError, match="another process has just made"):
        run_spec(start("noise"), tmp_path / "run", False, False, silent)
    assert (tmp_path / "run" / STORE / "zarr.json").read_bytes() == before


def test_overwrite_refuses_a_folder_that_is_no_run(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years")
    with pytest.raises(InputError, match="not a run folder"):
        run_spec(start("plain"), tmp_path / "thesis", False, True, silent)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years"


def test_a_refused_spec_does_not_destroy_the_run_it_would_replace(tmp_path):
    run_spec(start("plain"), tmp_path / "run", False, False, silent)
    bad = parse(render(start("plain")), ["save.observe=[{name='clusters', distance=1.0}]"])
    with pytest.raises(InputError, match="need angle"):
        run_spec(bad, tmp_path / "run", False, True, silent)
    assert flock.open(tmp_path / "run").outcome == "finished"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["save.observe=[{name='clusters', distance=0.1}]"], "need angle"),
        (["save.observe=[{name='min_alignment', direction=[1.0]}]"], "1 coordinates"),
        (["save.observe=['mean_radius', 'convex_hull_volume']"], "tokens in R"),
    ],
)
def test_what_cannot_be_observed_leaves_nothing_behind(settings, words, tmp_path):
    spec = parse(render(start("plain")), settings)
    with pytest.raises(InputError, match=words):
        run_spec(spec, tmp_path / "deep" / "run", False, False, silent)
    assert list(tmp_path.iterdir()) == []


def test_pairs_that_would_not_fit_are_refused_after_compiling(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.5")
    spec = parse(render(start("plain")), ["n=20000", "reduction=tiled"])
    with pytest.raises(InputError, match=r"GiB, the limit is 0\.5 GiB; use fewer samples"):
        run_spec(spec, tmp_path / "run", False, False, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_under_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file/run", "file"):
        with pytest.raises((InputError, StoreError), match="is a file"):
            run_spec(start("plain"), tmp_path / place, False, False, silent)
    assert (tmp_path / "file").read_text() == ""


def test_names_no_disk_takes(tmp_path):
    for name in ("a" * 300, "a\0b"):
        with pytest.raises((InputError, StoreError)):
            run_spec(start("plain"), tmp_path / name, False, False, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_at_the_start_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*arguments, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        run_spec(start("plain"), tmp_path / "deep" / "run", False, False, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_later_keeps_what_was_written(tmp_path, monkeypatch):
    spec, room = start("plain"), iter([True] * 150)
    real = os.fsync

    def filling(descriptor):
        if not next(room, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", filling)
        write_every_part(patch)
        told = (
            r"No space left.* is kept: free some space, then continue with tokenflock run --resume"
        )
        with pytest.raises(WriteError, match=told):
            run_spec(spec, tmp_path / "run", False, False, silent)
    assert flock.open(tmp_path / "run").reached > 0
    assert not list((tmp_path / "run").rglob(".writing-*"))
    resumed = run_spec(spec, tmp_path / "run", True, False, silent)
    same(run_spec(spec, tmp_path / "whole", False, False, silent), resumed)


def test_the_root_of_a_disk_has_no_parent():
    # Some may write there, and others are told that they may not.
    with contextlib.suppress(StoreError):
        check_parent(Path("/"))


WRONG_SUMMARIES = {
    "empty": lambda whole: {},
    "a list": lambda whole: [],
    "lacks ok": lambda whole: {name: value for name, value in whole.items() if name != "ok"},
    "ok in words": lambda whole: {**whole, "ok": "yes"},
    "time in words": lambda whole: {**whole, "time": "late"},
    "not a number": lambda whole: {**whole, "energy": float("nan")},
    "deep": lambda whole: {**whole, "health": nested(900)},
}


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def test_a_finished_batch_is_known_to_be_finished(tmp_path):
    """Its time is a list, one for each member."""
    spec, folder = parse(render(start("batch")), ["figure=false"]), tmp_path / "run"
    run_spec(spec, folder, False, False, silent)
    resume = ["run", "--resume", "--out", str(folder), "--json"]
    first, again = (CliRunner().invoke(app, resume) for _ in range(2))
    assert isinstance(json.loads(first.stdout)["time"], list)
    assert "is finished; this is its stored result" in again.stderr
    assert json.loads(again.stdout) == json.loads(first.stdout)


def test_a_finished_run_with_a_flipped_byte_is_not_called_finished(tmp_path):
    """It is refused with a command, and the command gives the run again."""
    spec, folder = parse(render(start("plain")), ["figure=false"]), tmp_path / "run"
    whole = run_spec(spec, folder, False, False, silent)
    resume = ["run", "--resume", "--out", str(folder), "--json"]
    assert CliRunner().invoke(app, resume).exit_code == 0
    chunk = next(path for path in (folder / STORE / "states" / "c").rglob("*") if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    for _ in range(2):  # with its summary, and without
        refused = CliRunner().invoke(app, resume)
        assert refused.exit_code == 2
        assert f"{folder} is damaged: {STORE}: states" in refused.stderr
        (folder / SUMMARY).unlink(missing_ok=True)
    again = refused.stderr.split("Compute the run again with tokenflock ")[1].split(", or take")[0]
    assert CliRunner().invoke(app, [*shlex.split(again), "--json"]).exit_code == 0
    same(flock.open(folder), whole)


def test_a_wrong_summary_is_made_anew_from_the_store(tmp_path):
    spec, folder = parse(render(start("plain")), ["figure=false"]), tmp_path / "run"
    run_spec(spec, folder, False, False, silent)
    resume = ["run", "--resume", "--out", str(folder), "--json"]
    first = CliRunner().invoke(app, resume)
    assert first.exit_code == 0
    whole = read_summary(folder)
    assert json.loads(first.stdout) == whole
    texts = {name: json.dumps(make(whole)) for name, make in WRONG_SUMMARIES.items()}
    texts |= {"half": "{", "too deep": "[" * 5000, "no text": "\udcff"}
    for name, text in texts.items():
        (folder / SUMMARY).write_bytes(text.encode("utf-8", "surrogateescape"))
        assert read_summary(folder) is None, name
        again = CliRunner().invoke(app, resume)
        assert again.exit_code == 0, name
        assert {**json.loads(again.stdout), "seconds": 0} == {**whole, "seconds": 0}, name
