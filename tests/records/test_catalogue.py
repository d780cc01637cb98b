"""The list of results and its index: always what is on the disk, whatever happened to the index."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from made_results import (
    SWEEP,
    made_label,
    made_run,
    made_sweep,
    made_trace,
    made_trajectory,
    write_blocks,
)

import tokenflock as flock
from tokenflock import store
from tokenflock.errors import InputError
from tokenflock.records import catalogue, index
from tokenflock.records.catalogue import list_records
from tokenflock.records.facts import read_facts
from tokenflock.records.index import Index


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of each sort in a tree of folders."""
    place = tmp_path_factory.mktemp("results")
    made_run(place / "a", model__beta=2.0)
    made_run(place / "deep" / "er" / "b", model__beta=[1.0, 9.0], model__name="USA", seconds=0.5)
    made_trace(place / "trace")
    store.write(made_trajectory(tokens__n=99), place / "bare.zarr")
    store.write(made_trajectory(), place / "cut" / "segments" / "000000-000003.zarr")
    made_sweep(place / "phase")
    made_sweep(place / "half", blocks=[0, 2], failures={2: {1: "it broke"}}, summary=False)
    return place


def names(found):
    return [record.path.name for record in found.records]


def columns(found, *wanted):
    return {
        record.path.name: tuple(record.value(each) for each in wanted) for record in found.records
    }


def indexed(path):
    """The folders in the index itself, whatever their entries hold."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT path FROM results ORDER BY path").fetchall()
    return [Path(os.fsdecode(row[0])) for row in rows]


class TestFacts:
    def test_kinds_and_outcomes(self, made):
        assert columns(list_records([made]), "kind", "outcome", "title", "model") == {
            "a": ("run", "finished", "made", "SA"),
            "b": ("run", "finished", "made", "USA"),
            "bare.zarr": ("run", "finished", "made", "SA"),
            "cut": ("run", "interrupted", "made", "SA"),
            "half": ("sweep", "interrupted", "phase", "SA"),
            "phase": ("sweep", "finished", "phase", "SA"),
            "trace": ("trace", "finished", "tiny", "tiny"),
        }

    def test_numbers(self, made):
        found = columns(list_records([made]), "seconds", "cells", "done", "failed", "tokens.n")
        assert found["a"] == (1.5, None, None, None, 8)
        assert found["bare.zarr"] == (None, None, None, None, 99)
        assert found["trace"] == (2.0, None, None, None, None)
        assert found["phase"] == (3.0, 30, 30, 0, None)
        # A batch of at most four cells is the three seeds; two blocks of ten are done.
        assert found["half"] == (None, 30, 6, 1, None)

    def test_what_a_sweep_varies_is_no_setting_of_it(self, made):
        facts = read_facts(made / "phase")
        assert facts is not None
        swept = {path: values for axis in facts.axes for path, values in axis.values.items()}
        assert swept == {
            "model.beta": [1.0, 2.0, 3.0, 4.0, 5.0],
            "tokens.n": [8, 16],
            "tokens.law": ["uniform", "hemisphere"],
        }
        assert facts.repeats == 3
        assert not facts.settings.keys() & {*swept, "tokens.seed"}
        assert facts.settings["solve.t1"] == 4.0


class TestWhere:
    def test_a_sweep_matches_by_its_cells(self, made):
        found = list_records([made], "beta > 3 and kind == 'sweep'")
        assert {r.path.name: r.matching for r in found.records} == {"half": 12, "phase": 12}

    def test_zipped_settings_go_together(self, made):
        found = list_records([made], "n == 16 and law == 'hemisphere' and beta == 5")
        assert {r.path.name: r.matching for r in found.records} == {"half": 3, "phase": 3}
        assert names(list_records([made], "n == 16 and law == 'uniform'")) == []

    def test_a_batch_matches_by_its_betas(self, made):
        found = list_records([made], "beta > 8")
        assert {r.path.name: r.matching for r in found.records} == {"b": 1}

    def test_seeds_are_not_expanded(self, made):
        assert names(list_records([made], '"tokens.seed" is not null')) == [
            "a",
            "bare.zarr",
            "cut",
            "b",
        ]

    def test_a_swept_model(self, tmp_path):
        text = SWEEP.replace("beta = { from = 1.0, to = 5.0, count = 5 }", 'name = ["SA", "USA"]')
        made_sweep(tmp_path / "models", text.replace('name = "SA"', 'name = "SA"\nbeta = 2.0'))
        (record,) = list_records([tmp_path], "model == 'USA'").records
        assert record.matching == 6

    def test_a_bound_on_combinations_is_said(self, made, monkeypatch):
        monkeypatch.setattr(catalogue, "MOST_COMBINATIONS", 3)
        found = list_records([made / "phase"], "beta < 9 and n > 0")
        assert found.records[0].matching == 3 * 3
        assert "more than 3 combinations" in found.notes[0]

    def test_nothing_there_knows_no_columns(self, tmp_path):
        assert list_records([tmp_path], "anything > 4").records == []

    def test_order(self, made):
        runs = [made / "a", made / "deep", made / "trace", made / "cut"]
        assert names(list_records(runs, sort="seconds")) == ["b", "a", "trace", "cut"]
        assert names(list_records(runs, sort="-seconds")) == ["trace", "a", "b", "cut"]
        assert names(list_records(runs, sort="model"))[-1] == "trace"
        with pytest.raises(InputError, match="did you mean 'seconds'"):
            list_records(runs, sort="-second")

    def test_as_a_table(self, made):
        table = flock.runs(made, where="kind == 'run'")
        assert list(table["path"].map(lambda p: Path(p).name)) == ["a", "bare.zarr", "cut", "b"]
        assert table["beta"].tolist()[:3] == [2.0, 4.0, 4.0]
        assert {"tokens.seed", "solve.seed", "n", "t1", "matching"} <= set(table.columns)
        assert flock.runs(made, where="beta > 100").empty

    def test_nested_settings_have_columns_of_their_own(self, tmp_path):
        made_label(tmp_path / "a", model__noise={"kind": "brownian", "beta": 1.0})
        (row,) = flock.runs(tmp_path, where="beta > 3").to_dict("records")
        assert (row["beta"], row["model.noise.beta"]) == (4.0, 1.0)


class TestFolders:
    def test_the_default_is_runs_or_here(self, made, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        made_label(tmp_path / "here")
        assert names(list_records()) == ["here"]
        made_label(tmp_path / "runs" / "there")
        assert names(list_records()) == ["there"]

    @pytest.mark.parametrize("place", ["nowhere", "a\0b", "x" * 5000])
    def test_no_such_folder(self, tmp_path, monkeypatch, place):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError):
            list_records([place])

    def test_a_folder_given_twice_counts_once(self, made):
        assert len(list_records([made, made / "a", made]).records) == 7


class TestIndex:
    def count_reads(self, monkeypatch):
        read = []
        real = catalogue.read_facts

        def counted(folder):
            read.append(folder.name)
            return real(folder)

        monkeypatch.setattr(catalogue, "read_facts", counted)
        return read

    def test_the_summary_of_another_result_says_nothing_of_this_one(self, tmp_path):
        for name, owner in (("own", "0123456789ab"), ("other", "ffffffffffff")):
            made_run(tmp_path / name)
            told = json.dumps({"id": owner, "seconds": 77.0})
            (tmp_path / name / "summary.json").write_text(told)
        found = columns(list_records([tmp_path]), "seconds")
        assert found == {"own": (77.0,), "other": (None,)}

    def test_only_what_changed_is_read_again(self, tmp_path, monkeypatch):
        for name in "abc":
            made_run(tmp_path / name)
        read = self.count_reads(monkeypatch)
        list_records([tmp_path])
        assert sorted(read) == ["a", "b", "c"]
        read.clear()
        shutil.rmtree(tmp_path / "a")
        (tmp_path / "b" / "summary.json").write_text('{"seconds": 77.0}')
        made_label(tmp_path / "d")
        found = list_records([tmp_path])
        assert sorted(read) == ["b", "d"]
        assert columns(found, "seconds") == {"b": (77.0,), "c": (1.5,), "d": (None,)}

    def test_a_sweep_in_progress_is_followed(self, tmp_path):
        folder = made_sweep(tmp_path / "s", blocks=[0], summary=False)
        assert columns(list_records([tmp_path]), "done") == {"s": (3,)}
        write_blocks(folder, [1, 7])
        assert columns(list_records([tmp_path]), "done") == {"s": (9,)}

    def test_vanished_folders_are_forgotten(self, tmp_path, own_index):
        made_label(tmp_path / "a")
        made_label(tmp_path / "ab")
        list_records([tmp_path])
        shutil.rmtree(tmp_path / "ab")
        list_records([tmp_path])
        assert indexed(own_index) == [tmp_path / "a"]

    @pytest.mark.parametrize("case", ["too many folders", "unreadable"])
    def test_vanished_folders_are_forgotten_in_any_case(
        self, tmp_path, own_index, monkeypatch, case
    ):
        for name in ("a", "b", "c"):
            made_label(tmp_path / name)
        list_records([tmp_path])
        shutil.rmtree(tmp_path / "a")
        if case == "unreadable":
            with sqlite3.connect(own_index) as database:
                database.execute("UPDATE results SET facts = '{'")
        else:
            # The folder itself and b; c is there, though it is not looked at.
            monkeypatch.setattr(catalogue, "MOST_FOLDERS", 2)
        list_records([tmp_path])
        assert indexed(own_index) == [tmp_path / "b", tmp_path / "c"]

    def test_neighbours_with_longer_names_are_others(self, tmp_path):
        made_label(tmp_path / "a" / "x")
        made_label(tmp_path / "ab" / "y")
        list_records([tmp_path])
        shutil.rmtree(tmp_path / "ab")
        assert set(Index().under(tmp_path / "a")) == {tmp_path / "a" / "x"}
        list_records([tmp_path / "a"])
        assert (tmp_path / "ab" / "y") in Index().under(tmp_path)

    @pytest.mark.parametrize("damage", ["text", "cut", "flipped", "version", "rows", "empty"])
    def test_a_damaged_index_costs_nothing(self, made, own_index, damage):
        whole = columns(list_records([made]), "kind", "model.beta")
        _damage(own_index, damage)
        found = list_records([made])
        assert columns(found, "kind", "model.beta") == whole
        if damage in ("text", "cut"):
            assert "made anew" in found.notes[0]
        assert list_records([made]).notes == []

    def test_rebuild(self, made, own_index):
        list_records([made])
        with sqlite3.connect(own_index) as database:
            database.execute("UPDATE results SET facts = replace(facts, 'made', 'wrong')")
        assert "wrong" in str(columns(list_records([made]), "title"))
        assert "wrong" not in str(columns(list_records([made], rebuild=True), "title"))

    def test_a_cache_that_cannot_be_written(self, made, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("TOKENFLOCK_CACHE", str(tmp_path / "file" / "cache"))
        assert len(list_records([made]).records) == 7
        monkeypatch.setenv("TOKENFLOCK_CACHE", str(tmp_path))
        (tmp_path / "records.sqlite").mkdir()
        assert len(list_records([made], rebuild=True).records) == 7

    def test_a_locked_index_costs_time_only(self, made, own_index, monkeypatch):
        monkeypatch.setattr(index, "PATIENCE_SECONDS", 0.1)
        list_records([made])
        holder = sqlite3.connect(own_index, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        try:
            assert len(list_records([made]).records) == 7
        finally:
            holder.close()

    def test_two_processes_at_once(self, tmp_path, own_index):
        for number in range(60):
            made_label(tmp_path / f"{number:02}", tokens__n=number + 2)
        code = (
            "import sys; from tokenflock.records.catalogue import list_records\n"
            "for _ in range(20):\n"
            "    found = list_records([sys.argv[1]], rebuild=_ % 5 == 0)\n"
            "    assert len(found.records) == 60, len(found.records)\n"
        )
        start = [sys.executable, "-c", code, str(tmp_path)]
        processes = [subprocess.Popen(start, stderr=subprocess.PIPE) for _ in range(3)]
        for process in processes:
            _, told = process.communicate(timeout=120)
            assert process.returncode == 0, told.decode()
        assert len(list_records([tmp_path]).records) == 60


def _damage(path, damage):
    content = path.read_bytes()
    if damage == "text":
        path.write_bytes(b"this is no database at all, " * 100)
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2 + 100])
    elif damage == "flipped":
        middle = bytearray(content)
        for place in range(4096, len(middle), 97):
            middle[place] ^= 0x55
        path.write_bytes(bytes(middle))
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        change = {
            "version": "PRAGMA user_version = 99",
            "rows": "UPDATE results SET facts = '{\"axes\": [3]}'",
        }
        with sqlite3.connect(path) as database:
            database.execute(change[damage])


def test_a_thousand_runs_are_read_once(tmp_path, monkeypatch):
    first = made_label(tmp_path / "runs" / "r0000")
    text = (first / "trajectory.zarr" / "zarr.json").read_text()
    for number in range(1, 1000):
        store_folder = tmp_path / "runs" / f"r{number:04}" / "trajectory.zarr"
        store_folder.mkdir(parents=True)
        changed = text.replace('"beta": 4.0', f'"beta": {number / 100}')
        (store_folder / "zarr.json").write_text(changed)
    command = [
        *(sys.executable, "-m", "tokenflock", "list", "runs", str(tmp_path)),
        *("--where", "beta > 4 and model == 'SA'", "--sort", "-beta", "--json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["runs"]
    assert len(rows) == 1000 - 401
    assert rows[0]["settings"]["model.beta"] == 9.99
    # What was indexed is read from the index: no result is opened again, by this process or another.
    monkeypatch.setattr(catalogue, "read_facts", lambda path: pytest.fail(f"{path} is read again"))
    assert len(list_records([tmp_path]).records) == 1000
