"""Exports read back by other programs, to the same bits, at any piece size, and never half written."""

import csv
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr
from made_results import SWEEP, energy_of, made_run, made_sweep, made_trajectory

from tokenflock import store
from tokenflock.errors import InputError, StoreError
from tokenflock.records import exporting, tables
from tokenflock.records.boxes import boxes
from tokenflock.records.exporting import export
from tokenflock.records.opening import find_result
from tokenflock.results.locking import only_writer_of
from tokenflock.sweeps.plan import parse_sweep

ODD = [0.1, 1 / 3, 5e-324, -0.0, np.nan, np.inf, -np.inf, 1.7976931348623157e308, 1e22, np.pi]

SHORT = np.asarray([min(max(x, -3e38), 3e38) for x in ODD], dtype="float32")


@pytest.fixture
def odd_run(tmp_path):
    """Numbers that are hard to write, of every type."""
    run = made_trajectory(times=np.arange(10.0))
    run.arrays |= {
        "energy": np.asarray(ODD),
        "short": SHORT,
        "whole": np.arange(10) * (2**59 + 1),
        "truth": np.arange(10) % 2 == 0,
        "wave": np.asarray(ODD) + 1j * np.arange(10),
    }
    run.axes |= dict.fromkeys(("short", "whole", "truth", "wave"), ("time",))
    store.write(run, tmp_path / "odd" / "trajectory.zarr")
    return tmp_path / "odd"


@pytest.fixture(scope="module")
def sweep_folder(tmp_path_factory):
    return made_sweep(tmp_path_factory.mktemp("sweeps") / "phase")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bits(values, dtype="float64"):
    found = np.asarray(values, dtype=dtype)
    return [*np.where(np.isnan(found), np.nan, found).view(f"u{found.itemsize}")]


class TestBits:
    @pytest.mark.parametrize("most", [tables.MOST_ENTRIES, 3])
    def test_csv(self, odd_run, most, monkeypatch):
        monkeypatch.setattr(tables, "CSV_ROWS", most)
        export(find_result(odd_run), "csv", arrays=["energy", "short", "whole", "truth", "wave"])
        with open("odd.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [*rows[0]] == ["time", "energy", "short", "whole", "truth", "wave_real", "wave_imag"]
        assert bits([float(row["energy"]) for row in rows]) == bits(ODD)
        assert bits([row["short"] for row in rows], "float32") == bits(SHORT, "float32")
        assert [int(row["whole"]) for row in rows] == [k * (2**59 + 1) for k in range(10)]
        assert [row["truth"] for row in rows] == ["True", "False"] * 5
        table = pd.read_csv("odd.csv")
        assert bits(table["energy"]) == bits(ODD)

    def test_parquet(self, odd_run):
        export(find_result(odd_run), "parquet", arrays=["energy", "short", "whole", "truth"])
        table = pq.read_table("odd.parquet")
        assert bits(table["energy"].to_numpy()) == bits(ODD)
        assert bits(table["short"].to_numpy(), "float32") == bits(SHORT, "float32")
        assert table["energy"].null_count == 0
        assert table["whole"].to_pylist()[-1] == 9 * (2**59 + 1)
        about = json.loads(table.schema.metadata[b"tokenflock"])
        assert about["spec"]["model"] == {"name": "SA", "beta": 4.0}
        assert about["dims"]["energy"] == ["time"]

    def test_npz(self, odd_run):
        export(find_result(odd_run), "npz")
        run = find_result(odd_run).dataset()
        with np.load("odd.npz", allow_pickle=False) as found:
            assert {*found} == {"about", *map(str, run.variables)}
            for name in run.variables:
                assert found[name].dtype == run[name].dtype
                assert found[name].tobytes() == run[name].values.tobytes()
            assert json.loads(str(found["about"]))["title"] == "made"


class TestTables:
    def test_a_file_for_each_set_of_dimensions(self, odd_run):
        written = export(find_result(odd_run), "csv", arrays=["energy", "states", "steps"])
        assert written["files"] == [
            "odd-scalars.csv",
            "odd-time.csv",
            "odd-time-token-coordinate.csv",
        ]
        assert written["rows"] == 1 + 10 + 160
        states = pd.read_csv("odd-time-token-coordinate.csv")
        stored = find_result(odd_run).dataset()["states"]
        again = xr.DataArray.from_series(
            states.set_index(["time", "token", "coordinate"])["states"]
        )
        np.testing.assert_array_equal(again, stored)
        assert pd.read_csv("odd-scalars.csv")["steps"].tolist() == [12]

    # Everything at once, then five rows of eight columns, two, and one.
    @pytest.mark.parametrize(
        "most",
        [
            tables.MOST_ENTRIES,
            40,
            pytest.param(16, marks=pytest.mark.slow),
            pytest.param(1, marks=pytest.mark.slow),
        ],
    )
    @pytest.mark.parametrize("to", ["csv", "parquet"])
    def test_a_sweep_in_pieces_of_any_size(self, sweep_folder, to, most, monkeypatch):
        monkeypatch.setattr(tables.Group.pieces, "__defaults__", (most,))
        export(find_result(sweep_folder), to, arrays=["energy"])
        read = pd.read_csv if to == "csv" else pd.read_parquet
        table = read(f"phase.{to}")
        assert list(table.columns) == [
            *("beta", "pair", "seed", "time", "law", "n", "tokens_seed", "energy"),
        ]
        assert len(table) == 150
        expected = 1000 * table["beta"] + 100 * table["n"] + 10 * table["seed"] + table["time"]
        np.testing.assert_array_equal(table["energy"], expected)
        assert table["law"].tolist()[:30] == ["uniform"] * 15 + ["hemisphere"] * 15
        np.testing.assert_array_equal(table["beta"], np.repeat(np.arange(1.0, 6.0), 30))

    def test_a_sweep_as_arrays(self, sweep_folder, monkeypatch):
        monkeypatch.setattr(boxes, "__defaults__", (7,))
        written = export(find_result(sweep_folder), "npz")
        sweep = parse_sweep((sweep_folder / "sweep.toml").read_text())
        with np.load("phase.npz") as found:
            assert found["energy"][2, 1, 0, 3] == energy_of(sweep, (2, 1, 0)) + 3.0
            assert found["law"].tolist() == ["uniform", "hemisphere"]
            assert json.loads(str(found["about"]))["sweep"]["batch"] == 4
        first = (sweep_folder.parent / "x.npz", sweep_folder.parent / "y.npz")
        for place in first:
            export(find_result(sweep_folder), "npz", place)
        assert first[0].read_bytes() == first[1].read_bytes()
        assert written["bytes"] == first[0].stat().st_size

    def test_an_unfinished_sweep_says_so(self, tmp_path):
        folder = made_sweep(tmp_path / "half", blocks=[0], summary=False)
        written = export(find_result(folder), "csv", arrays=["energy"])
        assert (written["cells"], written["cells_done"]) == (30, 3)
        assert pd.read_csv("half.csv")["energy"].notna().sum() == 15

    def test_dimensions_without_values(self, here):
        dataset = xr.Dataset(
            {
                "x": (("a", "b"), np.arange(6.0).reshape(2, 3)),
                "none": (("a", "c"), np.zeros((2, 0))),
            },
            coords={"b": [10, 20, 30], "both": (("b", "a"), np.arange(6).reshape(3, 2))},
        )
        first, second = tables.groups(dataset, ["x", "none"])
        tables.write_csv(here / "x.csv", first, "")
        table = pd.read_csv("x.csv")
        assert table["a"].tolist() == [0, 0, 0, 1, 1, 1]
        assert table["both"].tolist() == [0, 2, 4, 1, 3, 5]
        for write in (tables.write_csv, tables.write_parquet):
            write(here / "none", second, "")
        assert pq.read_table("none").num_rows == 0


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4, 5), (2, 0, 3), (1, 1, 7)])
@pytest.mark.parametrize("most", [1, 4, 7, 60, 1000])
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_boxes_are_the_array_in_order(shape, most, chunk):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    pieces = [array[box] for box in boxes(shape, (chunk,) * len(shape), most)]
    assert max((piece.size for piece in pieces), default=0) <= most
    np.testing.assert_array_equal(
        np.concatenate([p.reshape(-1) for p in pieces]), array.reshape(-1)
    )


class TestPlaces:
    def test_nothing_is_overwritten_silently(self, sweep_folder, here):
        (here / "mine.csv").write_text("dear")
        with pytest.raises(InputError, match="exists; choose another --out"):
            export(find_result(sweep_folder), "csv", here / "mine.csv", ["energy"])
        assert (here / "mine.csv").read_text() == "dear"
        export(find_result(sweep_folder), "csv", here / "mine.csv", ["energy"], overwrite=True)
        assert len(pd.read_csv("mine.csv")) == 150
        assert [item.name for item in here.iterdir()] == ["mine.csv"]

    def test_two_exports_do_not_mix_their_tables(self, sweep_folder, here):
        with (
            only_writer_of(here / "phase.csv"),
            pytest.raises(StoreError, match=r"phase.csv is being written by"),
        ):
            export(find_result(sweep_folder), "csv")
        assert [*here.iterdir()] == []

    def test_one_of_several_files_in_the_way(self, sweep_folder, here):
        (here / "phase-beta-pair-seed.csv").write_text("dear")
        with pytest.raises(InputError, match="exists"):
            export(find_result(sweep_folder), "csv")
        assert [item.name for item in here.iterdir()] == ["phase-beta-pair-seed.csv"]

    @pytest.mark.parametrize("place", [".", "file/x.csv", "/proc/x.csv", "a\0b"])
    def test_places_that_cannot_be_written(self, sweep_folder, here, place):
        (here / "file").write_text("")
        with pytest.raises((InputError, StoreError)):
            export(find_result(sweep_folder), "csv", exporting.Path(place), ["energy"])
        assert [item.name for item in here.iterdir()] == ["file"]

    def test_a_failure_leaves_nothing(self, sweep_folder, here, monkeypatch):
        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(exporting, "write_npz", full)
        with pytest.raises(StoreError, match="No space left"):
            export(find_result(sweep_folder), "npz", here / "new" / "x.npz")
        assert [*here.iterdir()] == []

    @pytest.mark.parametrize("already", [[], ["phase-beta-pair-seed.csv"]])
    def test_a_failure_between_two_files(self, sweep_folder, here, monkeypatch, already):
        """Files that were moved go again; what one of them replaced cannot come back, so it stays."""
        for name in already:
            (here / name).write_text("old")
        move = exporting.os.replace

        def move_one(source, place):
            if place.name.endswith("-time.csv"):
                raise OSError(28, "No space left on device")
            move(source, place)

        monkeypatch.setattr(exporting.os, "replace", move_one)
        with pytest.raises(StoreError, match="No space left"):
            export(find_result(sweep_folder), "csv", overwrite=True)
        assert [item.name for item in here.iterdir()] == already
        assert all("steps" in (here / name).read_text() for name in already)

    def test_a_damaged_chunk_leaves_nothing(self, tmp_path, here):
        folder = made_sweep(here / "sweeps" / "s")
        chunk = sorted((folder / "sweep.zarr" / "energy").glob("c*"))[-1]
        content = bytearray(chunk.read_bytes())
        content[len(content) // 2] ^= 1
        chunk.write_bytes(bytes(content))
        with pytest.raises(StoreError, match="energy"):
            export(find_result(folder), "csv", here / "new" / "x.csv", ["energy"])
        assert [item.name for item in here.iterdir()] == ["sweeps"]

    def test_what_is_not_there(self, sweep_folder):
        with pytest.raises(InputError, match="did you mean 'energy'"):
            export(find_result(sweep_folder), "csv", arrays=["enrgy"])
        with pytest.raises(InputError, match="--to takes csv, parquet, npz"):
            export(find_result(sweep_folder), "xlsx")

    def test_without_pyarrow(self, sweep_folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(InputError, match=r"pip install 'tokenflock\[parquet\]'"):
            export(find_result(sweep_folder), "parquet")

    @pytest.mark.parametrize(
        ("to", "out", "written"),
        [
            ("csv", "x", "x.csv"),
            ("parquet", "sub/x", "sub/x.parquet"),
            ("npz", "beta4.5", "beta4.5.npz"),
            ("csv", "x.CSV", "x.CSV"),
            ("csv", "x.txt", "x.txt.csv"),
            ("csv", "x.csv.gz", "x.csv.gz.csv"),
        ],
    )
    def test_a_name_gets_the_ending_of_its_format(self, sweep_folder, here, to, out, written):
        found = export(find_result(sweep_folder), to, exporting.Path(out), ["energy"])
        assert found["files"] == [written]
        assert (here / written).is_file()

    def test_several_tables_of_a_name_without_an_ending(self, odd_run, here):
        export(find_result(odd_run), "csv", exporting.Path("x"), ["energy", "steps"])
        assert sorted(item.name for item in here.glob("x*")) == ["x-scalars.csv", "x-time.csv"]

    def test_an_ending_of_another_format_is_refused(self, sweep_folder, here):
        with pytest.raises(InputError, match=r"x.npz ends in .npz, and --to csv writes .csv"):
            export(find_result(sweep_folder), "csv", exporting.Path("x.npz"), ["energy"])
        assert [*here.iterdir()] == []

    def test_odd_names_become_plain_files(self, here):
        folder = made_run(here / "in" / "new\nline é")
        assert export(find_result(folder), "npz")["files"] == ["new-line.npz"]


BIG = """
import resource, sys
from pathlib import Path
from tokenflock.records.exporting import export
from tokenflock.records.opening import find_result
result = find_result(sys.argv[1])
export(result, sys.argv[2], Path("small"), ["steps"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export(result, sys.argv[2], Path("big"), ["energy"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("to", ["csv", "parquet", "npz"])
def test_memory_is_flat(to, here):
    """A hundred times the memory of a piece passes through."""
    from tokenflock.sweeps.layout import BlockResult, Layout, Variable
    from tokenflock.sweeps.store import SweepStore

    few = SWEEP.replace("seeds = 3", "seeds = 2").replace("count = 5", "count = 100")
    sweep = parse_sweep(few)
    layout = Layout(
        (
            Variable("energy", ("time",), (20_000,), "float64", np.nan),
            Variable("steps", (), (), "int64", -1),
        ),
        {"time": np.arange(20_000.0)},
    )
    stored = SweepStore.create(here / "big.sweep", sweep, layout)
    draw = np.random.default_rng(0)
    with stored.lock():
        for block in map(sweep.grid.block, range(sweep.grid.block_count)):
            energy = draw.integers(0, 100, (block.size, 20_000)).astype(float)
            stored.write(
                block, BlockResult({"energy": energy, "steps": np.zeros(block.size, int)}, {})
            )
    command = [sys.executable, "-c", BIG, str(here / "big.sweep"), to]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Eight million rows of eight columns are 500 MB as arrays, and several times that as objects.
    assert int(done.stdout) < 200_000
