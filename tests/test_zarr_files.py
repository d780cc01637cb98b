"""Stores made by hand, as a stranger would: only format 3 with our own codecs is opened."""

import contextlib
import json
import pickle
import shutil

import numcodecs.pickles
import numpy as np
import pytest
import xarray as xr
import zarr
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.records.axes import _read
from tokenflock.records.opening import find_result
from tokenflock.results import zarr_format as zarr_files
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
