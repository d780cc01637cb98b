"""Results that are not as they were written: named by whoever reads them, and by a list that is asked to."""

import json
import shutil

import pytest
from made_results import made_run, made_sweep, made_trajectory
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock import store
from tokenflock.cli import app
from tokenflock.errors import StoreError
from tokenflock.records.catalogue import list_records
from tokenflock.records.opening import find_result
from tokenflock.records.showing import describe_result
from tokenflock.results.checksums import damage_of


def flip(path, place=-1):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture
def place(tmp_path):
    made_run(tmp_path / "good")
    flip(made_run(tmp_path / "flipped") / "trajectory.zarr" / "energy" / "c" / "0")
    folder = made_sweep(tmp_path / "swept")
    flip(next((folder / "sweep.zarr" / "energy").glob("c.*")))
    parts = tmp_path / "cut" / "segments"
    store.write(made_trajectory(), parts / "000000-000000.zarr")
    store.write(made_trajectory(1), parts / "000001-000001.zarr")
    flip(parts / "000000-000000.zarr" / "energy" / "c" / "0")
    return tmp_path


DAMAGE = {
    "flipped": "trajectory.zarr: energy",
    "swept": "is changed",
    "cut": "000000-000000.zarr: energy",
}


def test_a_list_reads_the_numbers_where_it_is_asked_to(place):
    plain = list_records([place])
    assert "damaged" not in {record.value("outcome") for record in plain.records}
    found = {r.path.name: r for r in list_records([place], verify=True).records}
    assert found["good"].value("outcome") == "finished"
    assert found["good"].value("damage") is None
    for name, told in DAMAGE.items():
        assert found[name].value("outcome") == "damaged"
        assert told in found[name].value("damage")
    table = flock.runs(place, "outcome == 'damaged'", verify=True)
    assert len(table) == 3


def test_a_list_that_is_not_asked_reads_no_number(place, monkeypatch):
    monkeypatch.setattr("tokenflock.records.catalogue.verified", pytest.fail)
    list_records([place])


@pytest.mark.parametrize("name", DAMAGE)
def test_show_names_the_damage(place, name):
    found = describe_result(find_result(place / name), verify=True)
    assert found["outcome"] == "damaged"
    assert DAMAGE[name] in found["damage"]
    assert describe_result(find_result(place / "good"), verify=True)["outcome"] == "finished"


def test_by_command(place):
    shown = CliRunner().invoke(app, ["show", str(place / "flipped")])
    assert "outcome: damaged: trajectory.zarr: energy" in shown.stdout
    unread = CliRunner().invoke(app, ["show", str(place / "flipped"), "--no-verify", "--json"])
    assert json.loads(unread.stdout)["outcome"] == "finished"
    listed = CliRunner().invoke(app, ["list", "runs", str(place), "--verify", "--json"])
    rows = {row["title"]: row["outcome"] for row in json.loads(listed.stdout)["runs"]}
    assert rows["phase"] == "damaged"
    refused = CliRunner().invoke(app, ["list", "models", "--verify"])
    assert refused.exit_code == 2
    assert "--verify belong to tokenflock list runs" in " ".join(refused.stderr.split())


def cut_journal(folder, lines):
    """A journal truncated where a line ends: what is left of it is sound."""
    path = folder / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


class TestJournalAndSummary:
    def test_a_journal_that_lost_its_end_is_noticed_everywhere(self, tmp_path):
        folder = made_sweep(tmp_path / "phase")
        cut_journal(folder, 5)  # the header, and 4 blocks of 3 cells
        told = "journal.jsonl is truncated: it lists 12 of 30 cells, and summary.json says that 30 are done"
        for verify in (True, False):
            with pytest.raises(StoreError, match=r"12 of 30 cells.*tokenflock sweep --resume"):
                flock.open(folder, verify=verify)
        for _ in range(2):
            (record,) = list_records([tmp_path]).records
            assert record.value("damage") == told
            assert (record.value("done"), record.value("cells")) == (12, 30)
        shown = describe_result(find_result(folder))
        assert (shown["outcome"], shown["damage"], shown["done"]) == ("damaged", told, 12)

    def test_failures_that_are_counted_otherwise(self, tmp_path):
        folder = made_sweep(tmp_path / "phase", failures={2: {1: "it broke"}})
        (folder / "summary.json").write_text('{"cells": 30, "failed": 0}')
        with pytest.raises(StoreError, match=r"tells of 0 failed cells, and journal\.jsonl of 1"):
            flock.open(folder)

    def test_the_summary_of_another_sweep_says_nothing_of_this_one(self, tmp_path):
        folder = made_sweep(tmp_path / "phase", blocks=[0, 2], summary=False)
        (folder / "summary.json").write_text('{"id": "another", "cells": 30, "failed": 0}')
        assert flock.open(folder).attrs["cells_done"] == 6

    def test_a_finished_sweep_without_its_journal(self, tmp_path):
        (made_sweep(tmp_path / "phase") / "journal.jsonl").unlink()
        (record,) = list_records([tmp_path]).records
        assert record.value("damage") == "journal.jsonl is missing"


class TestChecksums:
    def test_what_is_missing_or_new(self, tmp_path):
        place = made_run(tmp_path / "run") / "trajectory.zarr"
        assert damage_of(place) is None
        (place / "states" / "c" / "0" / "0" / "0").unlink()
        shutil.copytree(place / "energy", place / "power")
        shutil.rmtree(place / "steps")
        assert damage_of(place) == (
            "trajectory.zarr: states is not as it was written, steps is missing, power does not belong to it"
        )

    def test_what_cannot_be_decoded(self, tmp_path):
        place = made_run(tmp_path / "run") / "trajectory.zarr"
        (place / "energy" / "c" / "0").write_bytes(b"no zstd")
        assert str(damage_of(place)).startswith("trajectory.zarr: energy cannot be read (")

    def test_every_type_is_read_as_it_was_written(self, tmp_path):
        """The light reader and the one of `open` must agree about what a checksum is of."""
        import numpy as np
        import xarray as xr

        values = {
            "words": np.array(["a", "bcd", "日本"]),
            "truths": np.array([True, False, True]),
            "waves": np.array([1 + 2j, 3j, np.nan]),
            "small": np.arange(3, dtype="int8"),
        }
        dataset = xr.Dataset({name: ("x", array) for name, array in values.items()})
        dataset["single"] = 4.0
        store.write_dataset(dataset, tmp_path / "all.zarr", "tokenflock-test")
        assert damage_of(tmp_path / "all.zarr") is None
        store.read_dataset(tmp_path / "all.zarr", "tokenflock-test")

    def test_what_says_nothing(self, tmp_path):
        place = made_run(tmp_path / "run") / "trajectory.zarr"
        content = json.loads((place / "zarr.json").read_text())
        del content["attributes"]["checksums"]
        (place / "zarr.json").write_text(json.dumps(content))
        assert "no checksums" in str(damage_of(place))
