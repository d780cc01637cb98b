"""Stores made by hand, as a stranger would: only format 3 with our own codecs is opened."""

import contextlib
import json
import os
import pickle
import shutil

import numcodecs
import numcodecs.pickles
import numpy as np
import pytest
import xarray as xr
import zarr
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.errors import StoreError
from tokenflock.records.axes import _read
from tokenflock.records.opening import find_result
from tokenflock.results import bounds
from tokenflock.results import zarr_format as zarr_files
from tokenflock.results.checksums import damage_of
from tokenflock.results.zarr_format import open_zarr, require_own_format
from tokenflock.trajectory import Trajectory
from tokenflock.web.replay import read_replay


class Trap:
    """What a pickle may do when it is decoded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def store(tmp_path):
    run = Trajectory(
        {"energy": np.arange(3.0), "states": np.ones((3, 2, 2))},
        {"energy": ("time",), "states": ("time", "token", "coordinate")},
        {"time": np.arange(3.0)},
        {"label": "SA"},
    )
    return run.save(tmp_path / "run.zarr")


def changed(path, **entries):
    """The zarr.json of an array with other entries."""
    file = path / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def pickled(array, trap):
    """An object array of format 2 whose only chunk is a pickle."""
    array.mkdir(parents=True)
    described = {
        "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "compressor": None,
        "fill_value": None, "order": "C", 
        "filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}],
    }  # fmt: skip
    (array / ".zarray").write_text(json.dumps(described))
    (array / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["x"]}))
    (array / "0").write_bytes(pickle.dumps(Trap(trap)))


def all_of_format_2(store, trap):
    shutil.rmtree(store)
    pickled(store / "a", trap)
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / ".zattrs").write_text(json.dumps({"format": "tokenflock-trajectory-1"}))


def one_array_of_format_2(store, trap):
    pickled(store / "a", trap)


def both_formats(store, trap):
    pickled(store / "energy" / "c2", trap)
    shutil.copy(store / "energy" / "c2" / ".zarray", store / "energy" / ".zarray")


def unknown_codec(store, trap):
    changed(store / "energy", codecs=[{"name": "bytes"}, {"name": "evil", "configuration": {}}])


def codec_of_numcodecs(store, trap):
    changed(store / "energy", codecs=[{"name": "bytes"}, {"name": "numcodecs.zlib"}])


def codec_by_a_bare_name(store, trap):
    changed(store / "energy", codecs=["numcodecs.pickle"])


def sharded(store, trap):
    inner = {"chunk_shape": [1], "codecs": [{"name": "numcodecs.zlib"}]}
    changed(store / "energy", codecs=[{"name": "sharding_indexed", "configuration": inner}])


def no_codec(store, trap):
    changed(store / "energy", codecs=[])


def objects(store, trap):
    changed(store / "energy", data_type="object")


def objects_by_an_extension(store, trap):
    changed(store / "energy", data_type={"name": "numpy.object", "configuration": {}})


def transformed(store, trap):
    changed(store / "energy", storage_transformers=[{"name": "evil"}])


HOSTILE = {
    all_of_format_2: "Zarr store of format 2 .*only format 3",
    one_array_of_format_2: "a is a Zarr store of format 2",
    both_formats: "energy is a Zarr store of format 2",
    unknown_codec: "energy is written with 'evil', and only the codecs bytes, crc32c, vlen-utf8, zstd",
    codec_of_numcodecs: "written with 'numcodecs.zlib'",
    codec_by_a_bare_name: "written with 'numcodecs.pickle'",
    sharded: "written with 'sharding_indexed'",
    no_codec: "written with no codec",
    objects: "energy holds 'object', and only numbers and texts",
    objects_by_an_extension: "energy holds 'numpy.object'",
    transformed: "storage transformers",
}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_what_we_could_not_have_written_is_refused_before_zarr_reads_it(
    store, tmp_path, monkeypatch, make
):
    make(store, tmp_path / "trap")
    monkeypatch.setattr(xr, "open_zarr", lambda *a, **k: pytest.fail("it was opened"))
    for reader in (require_own_format, open_zarr, flock.open, read_replay):
        with pytest.raises(flock.errors.StoreError, match=HOSTILE[make]):
            reader(store)
    assert not (tmp_path / "trap").exists()


def test_a_pickle_is_not_decoded_even_where_numcodecs_would(store, tmp_path, monkeypatch):
    """Its own guard is the last one, and anybody may have switched it off."""
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    all_of_format_2(store, tmp_path / "trap")
    with pytest.raises(flock.errors.StoreError, match="format 2"):
        flock.open(store)
    assert not (tmp_path / "trap").exists()
    # The trap is one: Zarr itself springs it.
    with contextlib.suppress(Exception):
        zarr.open_group(store, mode="r")["a"][:]
    assert (tmp_path / "trap").exists()


def test_a_sweep_of_a_stranger_on_the_page(tmp_path):
    """The page shows any dataset over two settings, if it is one that we could have written."""
    place = tmp_path / "map.zarr"
    values = xr.Dataset(
        {"mean": (("beta", "n"), np.ones((2, 3)))}, {"beta": [1.0, 2.0], "n": [1, 2, 3]}
    )
    values.to_zarr(place, zarr_format=3, consolidated=False)
    assert read_replay(place)["kind"] == "sweep"
    changed(place / "mean", codecs=[{"name": "bytes"}, {"name": "numcodecs.zlib"}])
    with pytest.raises(flock.errors.StoreError, match=r"written with 'numcodecs.zlib'"):
        read_replay(place)


def test_the_coordinate_of_a_list_of_results(store):
    assert _read(store, "energy") == [0.0, 1.0, 2.0]
    changed(store / "energy", codecs=[{"name": "bytes"}, {"name": "numcodecs.zlib"}])
    assert _read(store, "energy") == []


def test_an_export_says_it_with_exit_code_2(store, tmp_path):
    codec_of_numcodecs(store, None)
    with pytest.raises(flock.errors.StoreError, match="numcodecs"):
        find_result(store).dataset()
    out = CliRunner().invoke(
        app, ["export", str(store), "--to", "csv", "--out", str(tmp_path / "x")]
    )
    assert out.exit_code == 2
    assert "only the codecs bytes, crc32c, vlen-utf8, zstd are opened" in " ".join(
        out.output.split()
    )
    assert "Traceback" not in out.output


def test_everything_that_is_written_is_accepted(tmp_path):
    kinds = "?bhilBHILefdFD"
    data = {kind: np.zeros(2, dtype=kind) for kind in kinds}
    texts = {"text": np.array(["a", "bé"]), "long": np.array(["a", "b"], object)}
    arrays = {name: zarr_files.Labelled(("x",), v, {}) for name, v in (data | texts).items()}
    zarr_files.write_zarr(zarr_files.Content(arrays, frozenset(), {}), tmp_path / "all.zarr")
    back = open_zarr(tmp_path / "all.zarr")
    assert {name: back[name].dtype.char for name in kinds} == {
        name: np.dtype(name).char for name in kinds
    }
    assert back["text"].values.tolist() == ["a", "bé"]


def test_a_pipe_in_the_place_of_metadata_is_not_waited_for(store):
    import os

    (store / "energy" / "zarr.json").unlink()
    os.mkfifo(store / "energy" / "zarr.json")
    with pytest.raises(flock.errors.StoreError):
        flock.open(store)


def grid(*chunk):
    return {"name": "regular", "configuration": {"chunk_shape": [*chunk]}}


class TestBounds:
    """What a store states is looked at before a byte of its numbers is read."""

    @pytest.fixture(autouse=True)
    def nothing_is_read(self, monkeypatch):
        monkeypatch.delenv("TOKENFLOCK_MEMORY_GIB", raising=False)
        monkeypatch.setattr(zarr_files, "files_of", lambda path: pytest.fail("it was read"))

    @pytest.mark.parametrize(
        ("entries", "words"),
        [
            (
                {"shape": [2**29]},
                r"energy|run\.zarr states 4 GiB .* allow so much memory with TOKEN",
            ),
            ({"shape": [2**33], "chunk_grid": grid(2**20)}, "states 64 GiB"),
            ({"shape": [2**62]}, "more than 1,000,000 chunks"),
            ({"shape": [10**30], "chunk_grid": grid(10**30)}, "far too many bytes"),
            ({"chunk_grid": grid(2**40)}, "states 8.19e.03 GiB"),
            ({"shape": [3_000_000], "chunk_grid": grid(1)}, "more than 1,000,000 chunks"),
            ({"shape": [300_000], "chunk_grid": grid(1)}, "into 300,00. chunks"),
            ({"shape": [1] * 300, "chunk_grid": grid(*[1] * 300)}, "300 axes"),
            ({"shape": [-1]}, "in whole numbers"),
            ({"shape": 3}, "in whole numbers"),
            ({"shape": [True]}, "in whole numbers"),
            ({"chunk_grid": grid(0)}, "in whole numbers"),
            ({"chunk_grid": {"name": "rectilinear"}}, "in whole numbers"),
        ],
    )
    def test_absurd_shapes_and_chunks_are_refused(self, store, entries, words, monkeypatch):
        monkeypatch.setattr(bounds, "host_bytes", lambda: 16 * bounds.GIB)
        entries = {"chunk_grid": grid(2**20), **entries}
        changed(store / "energy", **entries)
        with pytest.raises(StoreError, match=words):
            flock.open(store)
        with pytest.raises(StoreError, match=words):
            zarr_files.open_array(store / "energy")

    def test_a_limit_that_the_user_sets_opens_what_grows(self, tmp_path, monkeypatch):
        large = [bounds.Stated(4 * 2**30, 4)]
        with pytest.raises(StoreError, match=r"if you trust it.*TOKENFLOCK_MEMORY_GIB=4"):
            bounds.require_readable(tmp_path, large)
        monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "4")
        bounds.require_readable(tmp_path, large)

    def test_types_have_their_sizes(self):
        sizes = {"bool": 1, "int8": 1, "float16": 2, "uint64": 8, "complex128": 16}
        assert {name: bounds.item_bytes(name) for name in sizes} == sizes
        text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 40}}
        assert bounds.item_bytes(text) == 40


def test_a_constant_array_still_opens(tmp_path):
    """8 MB from a few hundred bytes: nothing but fill values is not even written."""
    arrays = {"energy": np.full(500_000, np.nan), "power": np.full(500_000, 2.0)}
    run = Trajectory(
        arrays, dict.fromkeys(arrays, ("time",)), {"time": np.zeros(500_000)}, {"label": "SA"}
    )
    path = run.save(tmp_path / "run.zarr")
    assert bounds.bytes_below(path) < 20_000
    assert flock.open(path).arrays["power"][-1] == 2.0


@pytest.mark.parametrize("how", ["pipe", "link"])
@pytest.mark.parametrize("name", ["energy/c/0", "states/zarr.json"])
def test_a_pipe_or_a_link_in_the_place_of_a_file_is_refused(store, tmp_path, name, how):
    (store / name).rename(tmp_path / "elsewhere")
    if how == "pipe":
        os.mkfifo(store / name)
    else:
        os.symlink(tmp_path / "elsewhere", store / name)
    with pytest.raises(StoreError, match=r"not a plain file|not that of a Zarr array"):
        flock.open(store)
    assert damage_of(store)


def test_a_chunk_that_would_grow_is_refused_before_it_does(store):
    """A store may state few numbers, and hold a chunk that is decompressed to any size."""
    chunk = store / "energy" / "c" / "0"
    for count in (30, 100, 10_000, 1_000_000):  # heads of every length
        chunk.write_bytes(numcodecs.Zstd(level=1).encode(np.zeros(count)))
        with pytest.raises(
            StoreError, match=f"would grow to {8 * count:,} bytes, and a chunk .* 24"
        ):
            flock.open(store)
        assert "would grow" in str(damage_of(store))


def test_what_the_head_of_a_chunk_says():
    for level in (-1, 0, 1, 22):
        for count in (1, 31, 32, 100, 8192, 2**15):
            frame = numcodecs.Zstd(level=level).encode(np.arange(count, dtype="float64"))
            assert bounds.zstd_size(frame) == 8 * count
    assert bounds.zstd_size(b"") is None
    assert bounds.zstd_size(bytes(100)) is None
