"""Runs that meet in one folder: nobody writes into another's, and nobody continues another's numbers."""

import json
import shutil

import pytest
from small_runs import kill_after, same, silent, start, write_every_part

import tokenflock as flock
from tokenflock.errors import StoreError, WriteError
from tokenflock.lab.files import parse, render
from tokenflock.lab.folder import require_own_summary
from tokenflock.lab.run import run_spec
from tokenflock.records.opening import find_result
from tokenflock.results.locking import only_writer
from tokenflock.results.names import INITIAL, SEGMENTS, STORE
from tokenflock.store import segment_paths

pytestmark = [
    pytest.mark.usefixtures("shared_programs", "few_parts"),
    pytest.mark.xdist_group("lab"),
]


def other():
    """The same run but for one number."""
    return parse(render(start("plain")), ["beta=9.0"])


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_parts_of_another_beta_are_neither_continued_nor_joined(tmp_path):
    kill_after(3, start("plain"), tmp_path / "one")
    kill_after(1, other(), tmp_path / "nine")
    for path in segment_paths(tmp_path / "nine"):
        shutil.rmtree(path)
    for path in segment_paths(tmp_path / "one"):
        shutil.copytree(path, tmp_path / "nine" / SEGMENTS / path.name)
    before = contents(tmp_path / "nine")
    told = (
        r"000000-000000.zarr belongs to something else: it has spec \w+, where spec \w+ is needed"
    )
    with pytest.raises(StoreError, match=f"{told}.*--overwrite or another --out"):
        run_spec(other(), tmp_path / "nine", True, False, silent)
    with pytest.raises(StoreError, match="belongs to another run than the parts beside it"):
        flock.open(tmp_path / "nine")
    with pytest.raises(StoreError, match="belongs to something else: it has spec"):
        find_result(tmp_path / "nine")
    assert contents(tmp_path / "nine") == before


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"precision": "float32"}, "precision float32"), ({"cuts": "00"}, "cuts 00"), (None, "0.1")],
)
def test_parts_cut_or_computed_in_another_way_are_not_continued(tmp_path, changed, told):
    """Also those of release 0.1, which do not say so; they can still be read."""
    kill_after(2, start("plain"), tmp_path / "run")
    reached = flock.open(tmp_path / "run").reached
    for path in (tmp_path / "run" / SEGMENTS).iterdir():
        metadata = json.loads((path / "zarr.json").read_text())
        known = metadata["attributes"].pop("part_of")
        if changed is not None:
            metadata["attributes"]["part_of"] = {**known, **changed}
        (path / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(StoreError, match=rf"{told}.*start it again with --overwrite"):
        run_spec(start("plain"), tmp_path / "run", True, False, silent)
    assert flock.open(tmp_path / "run").reached == reached
    # Neither is the start of a run taken for that of another.
    for path in segment_paths(tmp_path / "run"):
        shutil.rmtree(path)
    with pytest.raises(StoreError, match=rf"initial.zarr .*{told}"):
        run_spec(start("plain"), tmp_path / "run", True, False, silent)


def test_a_result_of_another_spec_is_not_that_of_the_folder(tmp_path):
    run_spec(start("plain"), tmp_path / "run", False, False, silent)
    (tmp_path / "run" / "spec.toml").write_text(render(other()))
    with pytest.raises(StoreError, match=r"trajectory.zarr belongs to something else.*--overwrite"):
        run_spec(other(), tmp_path / "run", True, False, silent)
    with pytest.raises(StoreError, match=r"summary.json belongs.* id abc, where id 123"):
        require_own_summary({"id": "abc"}, "123", tmp_path / "run")
    # The summary may be right and the store another's.
    with pytest.raises(StoreError, match=r"trajectory.zarr belongs.*, where id 123 is needed"):
        require_own_summary({"id": "123"}, "123", tmp_path / "run", "trajectory.zarr")


def test_while_one_writes_another_neither_resumes_nor_replaces(tmp_path):
    kill_after(2, start("plain"), tmp_path / "run")
    with only_writer(tmp_path / "run"):
        before = contents(tmp_path / "run")
        for spec, resume in ((start("plain"), True), (other(), False)):
            with pytest.raises(StoreError, match=r"run is being written by process \d+ on"):
                run_spec(spec, tmp_path / "run", resume, not resume, silent)
        assert contents(tmp_path / "run") == before
    whole = run_spec(start("plain"), tmp_path / "whole", False, False, silent)
    same(whole, run_spec(start("plain"), tmp_path / "run", True, False, silent))


def test_the_folder_is_held_until_the_caller_is_done(tmp_path):
    seen = []

    def report(done, t, values):
        with pytest.raises(StoreError, match="is being written by"):
            run_spec(other(), tmp_path / "run", False, True, silent)
        seen.append(done)

    run_spec(start("plain"), tmp_path / "run", False, False, report)
    assert seen[-1] == 1.0
    assert flock.open(tmp_path / "run").attributes["spec"]["model"]["beta"] != 9.0


@pytest.mark.parametrize("newcomer", [True, False], ids=["another in its place", "nothing there"])
def test_a_run_whose_folder_is_moved_stops_and_touches_nothing_there(
    tmp_path, monkeypatch, newcomer
):
    place, moved = tmp_path / "run", tmp_path / "moved"
    kill_after(2, other(), tmp_path / "other")
    theirs = contents(tmp_path / "other")

    def move(done, t, values):
        if not moved.exists() and done > 0.3:
            place.rename(moved)
            if newcomer:
                (tmp_path / "other").rename(place)

    with monkeypatch.context() as patch:
        write_every_part(patch)
        with pytest.raises(WriteError, match="run is no longer what this process was writing"):
            run_spec(start("plain"), place, False, False, move)
    assert place.exists() == newcomer
    if newcomer:
        assert contents(place) == theirs
    # What was done went with the folder, and goes on there.
    whole = run_spec(start("plain"), tmp_path / "whole", False, False, silent)
    assert 0 < flock.open(moved).reached < whole.reached
    same(whole, run_spec(start("plain"), moved, True, False, silent))


def test_a_folder_moved_at_the_last_moment_gets_no_result(tmp_path):
    place, moved = tmp_path / "run", tmp_path / "moved"
    kill_after(2, other(), tmp_path / "other")
    theirs = contents(tmp_path / "other")

    def move(done, t, values):
        if done == 1.0:
            place.rename(moved)
            (tmp_path / "other").rename(place)

    with pytest.raises(WriteError):
        run_spec(start("plain"), place, False, False, move)
    assert contents(place) == theirs
    assert not (moved / STORE).exists()
    assert (moved / SEGMENTS / INITIAL).exists()
