"""One writer per place: the second is told, a dead one holds nothing, a moved folder is left alone."""

import os
import subprocess
import sys

import pytest

from tokenflock.errors import StoreError, WriteError
from tokenflock.results.atomic import complete_file, complete_files, complete_folder
from tokenflock.results.identity import digest, require_same
from tokenflock.results.locking import HOLDER, LOCK, only_writer, only_writer_in, only_writer_of

HOLDS = """
import sys
from pathlib import Path
from tokenflock.results import locking
with getattr(locking, sys.argv[1])(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held_elsewhere():
    """Lets another process hold a place; gives that process."""
    processes = []

    def hold(how, place):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, how, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in processes:
        process.kill()
        process.wait(timeout=30)
        process.stdin.close()
        process.stdout.close()


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["only_writer", "only_writer_of"])
def test_the_second_is_told_who_writes_until_that_one_is_killed(tmp_path, held_elsewhere, how):
    place, hold = (
        tmp_path / "result",
        {"only_writer": only_writer, "only_writer_of": only_writer_of},
    )
    place.mkdir()
    process = held_elsewhere(how, place)
    before = contents(tmp_path)
    told = rf"result is being written by process {process.pid} on .+ since \d{{4}}-.*another --out"
    with pytest.raises(StoreError, match=told) as refusal, hold[how](place):
        pass
    assert refusal.value.exit_code == 2
    assert contents(tmp_path) == before
    process.kill()
    process.wait(timeout=30)
    with hold[how](place):
        pass
    assert [*tmp_path.rglob("*")] == [place]


def test_a_moved_folder_is_not_ours_and_the_one_in_its_place_is_left_alone(tmp_path):
    place, elsewhere, other = (tmp_path / name for name in ("result", "elsewhere", "other"))
    place.mkdir()
    other.mkdir()
    with only_writer(other), only_writer(place) as writer:
        writer.require_place()
        place.rename(elsewhere)
        with pytest.raises(WriteError, match="result is no longer what this process was writing"):
            writer.require_place()
        other.rename(place)
        before = contents(place)
        assert {path.name for path in before} == {LOCK, HOLDER}
        with pytest.raises(WriteError, match="moved away, removed or replaced"):
            writer.require_place()
    assert contents(place) == before


@pytest.mark.parametrize("write", [complete_file, complete_folder, complete_files])
def test_a_folder_moved_away_while_it_is_written_into_is_told_as_such(tmp_path, write):
    """The scratch went with it, so the disk misses a file; that is not what its user must hear."""
    place = tmp_path / "place"
    place.mkdir()

    def write_while_it_moves(writer):
        with write(place / "inner", check=writer.require_place) as scratch:
            place.rename(tmp_path / "elsewhere")
            (scratch / "part").write_bytes(b"numbers")

    with only_writer(place) as writer, pytest.raises(WriteError, match="moved away, removed"):
        write_while_it_moves(writer)
    assert not place.exists()


def test_a_folder_that_is_removed_is_not_made_again(tmp_path):
    with only_writer_in(tmp_path / "deep" / "result") as writer:
        os.remove(tmp_path / "deep" / "result" / LOCK)
        os.remove(tmp_path / "deep" / "result" / HOLDER)
        (tmp_path / "deep" / "result").rmdir()
        with pytest.raises(WriteError):
            writer.require_place()
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_left_of_a_place_that_was_only_held(tmp_path):
    for hold in (only_writer_in, only_writer_of):
        with pytest.raises(KeyError), hold(tmp_path / "deep" / "result"):
            raise KeyError
        assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", [LOCK, HOLDER])
def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path, name):
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / name).symlink_to(tmp_path / "letter.txt")
    with pytest.raises(StoreError, match="is a link"), only_writer(tmp_path / "result"):
        pass
    assert (tmp_path / "letter.txt").read_text() == "mine"


def test_a_place_under_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for hold in (only_writer_in, only_writer_of):
        with pytest.raises(StoreError, match="cannot write"), hold(tmp_path / "file" / "result"):
            pass


def test_a_part_says_what_it_has_and_what_is_needed():
    needed = {"spec": "aa", "precision": "float64"}
    require_same("part", {**needed, "more": "x"}, needed, "do it")
    with pytest.raises(
        StoreError, match="part belongs to something else: it has spec bb, where spec aa is"
    ):
        require_same("part", {**needed, "spec": "bb"}, needed, "do it")
    with pytest.raises(
        StoreError, match=r"it has precision nothing, where precision float64 .*; do it"
    ):
        require_same("part", {"spec": "aa"}, needed, "do it")
    for nothing in (None, {}, "aa"):
        with pytest.raises(
            StoreError, match=r"does not say what it belongs to.* 0.1 .*spec aa.*do it"
        ):
            require_same("part", nothing, needed, "do it")


def test_a_digest_depends_on_content_and_not_on_order():
    assert digest({"a": 1, "b": [2.5]}) == digest({"b": [2.5], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
