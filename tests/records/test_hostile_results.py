"""Folders that mean harm: traps, names and labels of every sort. What is good is listed, and no more."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from made_results import made_label, made_sweep

import tokenflock as flock
from tokenflock.cli.list_runs import list_runs
from tokenflock.errors import StoreError
from tokenflock.records import facts as facts_module
from tokenflock.records.catalogue import list_records
from tokenflock.records.facts import read_facts
from tokenflock.records.opening import find_result
from tokenflock.records.showing import describe_result
from tokenflock.sweeps.journal import Entry, Journal, to_line


def names(found):
    return [record.path.name for record in found.records]


def change(path, edit):
    """Edit a JSON file in its place."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def endless_axis(folder):
    change(folder / "sweep.zarr" / "beta" / "zarr.json", lambda found: found.update(shape=[2**63]))


def many_axes(folder):
    axes = {f"axis{k}": [f"model.axis{k}"] for k in range(300)}
    change(folder / "sweep.zarr" / "zarr.json", lambda found: found["attributes"].update(axes=axes))
    for name in axes:
        (folder / "sweep.zarr" / name).mkdir()
        (folder / "sweep.zarr" / name / "zarr.json").write_text('{"shape": [1000]}')


def endless_grid(folder):
    """A journal that is sound in itself, with a number that no array can be as long as."""
    (folder / "summary.json").unlink()
    header = Journal(folder / "journal.jsonl").header
    assert header is not None
    larger = dataclasses.replace(header, shape=(10**30, *header.shape[1:]))
    lines = to_line(larger) + to_line(Entry(1, {}, {}, larger.identity))
    (folder / "journal.jsonl").write_bytes(lines)


def no_number(folder):
    (folder / "summary.json").write_text('{"cells": 30, "failed": 0, "seconds": NaN}')


def pipe_as_summary(folder):
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")


def empty_label(folder):
    (folder / "sweep.zarr" / "zarr.json").write_text("")


class TestOneDamagedAmongMany:
    """One line of the list is the damaged folder's, and all others are there."""

    @pytest.mark.parametrize(
        ("damage", "told"),
        [
            (endless_axis, "its axis beta has more than 1,000,000 positions"),
            (many_axes, "300 axes, and a sweep has at most 16"),
            (endless_grid, "journal.jsonl is changed: line 1"),
            (no_number, "NaN is no number"),
            (pipe_as_summary, "not a regular file"),
            (empty_label, "zarr.json is not as it was written"),
        ],
    )
    def test_it_is_named(self, tmp_path, damage, told, capsys):
        made_label(tmp_path / "good")
        damage(made_sweep(tmp_path / "odd"))
        for _ in range(2):  # from the files, and from the index
            found = list_records([tmp_path])
            assert {r.path.name: r.value("outcome") for r in found.records} == {
                "good": "finished",
                "odd": "damaged",
            }
            assert told in found.records[-1].value("damage")
            assert f"{tmp_path / 'odd'} is damaged" in found.notes[0]
        assert names(list_records([tmp_path], "outcome == 'damaged'")) == ["odd"]
        table = flock.runs(tmp_path)
        assert table["outcome"].tolist() == ["finished", "damaged"]
        assert told in table["damage"][1]
        list_runs([tmp_path], None, None, False, as_json=True)
        rows = json.loads(capsys.readouterr().out)["runs"]
        assert [row["outcome"] for row in rows] == ["finished", "damaged"]

    def test_anything_a_file_may_raise_is_told(self, tmp_path, monkeypatch):
        def broken(*_):
            raise ArithmeticError("odd numbers")

        made_label(tmp_path / "odd")
        monkeypatch.setattr(facts_module, "_run_facts", broken)
        (record,) = list_records([tmp_path]).records
        assert record.value("damage") == "ArithmeticError: odd numbers"
        with pytest.raises(StoreError, match="odd is damaged: ArithmeticError: odd numbers; take"):
            find_result(tmp_path / "odd")


class TestHostile:
    @pytest.fixture
    def traps(self, tmp_path):
        """A good run among traps."""
        place, outside = tmp_path / "place", tmp_path / "outside"
        made_label(place / "good")
        made_label(outside / "secret", title="secret")
        for name in ("pipe", "endless", "linked", "typed", "huge", "deep"):
            (place / name / "trajectory.zarr").mkdir(parents=True)
        os.mkfifo(place / "pipe" / "trajectory.zarr" / "zarr.json")
        os.symlink("/dev/zero", place / "endless" / "trajectory.zarr" / "zarr.json")
        secret = outside / "secret" / "trajectory.zarr"
        os.symlink(secret / "zarr.json", place / "linked" / "trajectory.zarr" / "zarr.json")
        os.symlink(outside, place / "away")
        os.symlink(place, place / "circle")
        (place / "run").mkdir()
        os.symlink(secret, place / "run" / "trajectory.zarr")
        with (place / "huge" / "trajectory.zarr" / "zarr.json").open("wb") as file:
            file.truncate(2**33)
        (place / "deep" / "trajectory.zarr" / "zarr.json").write_text("[" * 100_000)
        return place

    def test_what_is_good_is_listed_and_traps_are_named(self, traps):
        found = list_records([traps])
        outcomes = {record.path.name: record.value("outcome") for record in found.records}
        damaged = dict.fromkeys(("pipe", "endless", "linked", "deep"), "damaged")
        assert outcomes == {"good": "finished", **damaged}

    def test_names_of_every_sort(self, tmp_path):
        odd = [
            b"new\nline",
            b"caf\xe9",
            b"\x1b[31mred",
            "日本".encode(),
            b"'; drop table results --",
        ]
        for name in odd:
            folder = tmp_path / os.fsdecode(name)
            made_label(folder)
        for _ in range(2):
            found = list_records([tmp_path], "beta > 1")
            assert sorted(os.fsencode(r.path.name) for r in found.records) == sorted(odd)
        assert names(list_records([tmp_path], "path like '%caf?'")) == ["caf\udce9"]
        assert {os.fsencode(Path(path).name) for path in flock.runs(tmp_path)["path"]} == {*odd}

    @pytest.mark.parametrize(
        "labels",
        [
            {"spec": "text", "trace": [1], "label": {"a": 1}, "versions": 3, "created": 4},
            {"spec": {"model": {"beta": ["x", 2]}, "tokens": None, "a": [[]], "": 3, "x.y": 4}},
            {"spec": {"number": "nan"}, "title": 3},
            {"spec": {"tokens": {"n": 10**400, "d": {"number": "inf"}, "s": "\ud800"}}},
            {"spec": {str(k): k for k in range(5000)}},
        ],
    )
    def test_labels_of_every_sort(self, tmp_path, labels):
        folder = made_label(tmp_path / "odd")
        path = folder / "trajectory.zarr" / "zarr.json"
        content = json.loads(path.read_text())
        content["attributes"] |= labels
        path.write_text(json.dumps(content))
        for _ in range(2):
            found = list_records([tmp_path], "kind == 'run'", sort="title")
            assert names(found) == ["odd"]
        assert len(flock.runs(tmp_path)) == 1

    @pytest.mark.parametrize(
        "axes",
        [
            {"..": ["model.beta"], "": ["a"], "a\0b": ["c"], "beta": [["x"]], "/etc": ["passwd"]},
            {"beta": "model.beta"},
            [1],
            {"beta": ["model.beta", "model.beta"]},
        ],
    )
    def test_axes_of_every_sort(self, tmp_path, axes):
        folder = made_sweep(tmp_path / "odd")
        path = folder / "sweep.zarr" / "zarr.json"
        content = json.loads(path.read_text())
        content["attributes"]["axes"] = axes
        path.write_text(json.dumps(content))
        assert names(list_records([tmp_path], "kind == 'sweep'")) == ["odd"]

    def test_coordinates_that_lead_out_are_not_read(self, tmp_path):
        folder = made_sweep(tmp_path / "in" / "odd")
        chunk = next((folder / "sweep.zarr" / "beta").glob("c*"))
        os.rename(chunk, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", chunk)
        facts = read_facts(folder)
        assert facts is not None
        assert [(axis.name, list(axis.values), len(axis)) for axis in facts.axes] == [
            ("beta", [], 5),
            ("pair", ["tokens.n", "tokens.law"], 2),
        ]
        # Nor is the first cell's value taken for that of all.
        assert "model.beta" not in facts.settings

    def test_coordinates_that_could_burst_are_not_read(self, tmp_path):
        folder = made_sweep(tmp_path / "odd")
        path = folder / "sweep.zarr" / "beta" / "zarr.json"
        content = json.loads(path.read_text())
        content["codecs"].append({"name": "zstd", "configuration": {"level": 1, "checksum": False}})
        path.write_text(json.dumps(content))
        facts = read_facts(folder)
        assert facts is not None
        assert (facts.axes[0].values, len(facts.axes[0])) == ({}, 5)

    def test_a_sweep_without_its_other_files_is_shown(self, tmp_path):
        folder = made_sweep(tmp_path / "odd")
        for name in ("sweep.toml", "journal.jsonl"):
            (folder / name).unlink()
            os.mkfifo(folder / name)
        content = describe_result(find_result(folder))
        assert (content["cells"], content["toml"], content["failures"]) == (30, None, [])
