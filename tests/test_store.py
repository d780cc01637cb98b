"""Stores: what is written comes back bit for bit, and what is damaged is refused with a sentence."""

import errno
import gc
import json
import os
import resource
import shutil
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import store
from tokenflock.errors import StoreError
from tokenflock.results.locking import only_writer, only_writer_of
from tokenflock.results.names import SEGMENTS
from tokenflock.serialise import describe, rebuild
from tokenflock.trajectory import Trajectory


@pytest.fixture(scope="module")
def run():
    x0 = flock.uniform(flock.Sphere(3), n=6, seed=3)
    save = flock.Save(every=0.5, observe=[flock.energy, flock.clusters(angle=0.2)], states=True)
    return flock.solve(flock.SA(beta=2.0), x0, t1=2.0, rtol=1e-6, atol=1e-8, save=save)


@pytest.fixture
def stored(run, tmp_path):
    return run.save(tmp_path / "run.zarr")


def same(first, second):
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(np.asarray(array), np.asarray(second.arrays[name]))
        assert np.asarray(array).dtype == np.asarray(second.arrays[name]).dtype
        assert tuple(first.axes[name]) == tuple(second.axes[name])
    for name, values in first.coords.items():
        np.testing.assert_array_equal(values, second.coords[name])


class TestRoundTrip:
    def test_arrays_axes_and_coordinates_come_back_bit_for_bit(self, run, stored):
        same(run, flock.open(stored))

    def test_attributes_come_back(self, run, stored):
        back = flock.open(stored)
        assert back.attributes == json.loads(json.dumps(run.attributes))
        assert back.details["clusters"]["angle"] == 0.2
        assert back.outcome == "finished"

    def test_the_model_can_be_used_again(self, run, stored):
        again = flock.open(stored).observe(flock.energy)
        np.testing.assert_allclose(again, run.array("energy"), rtol=1e-13)

    def test_zarr_three_with_plain_attributes_that_xarray_reads(self, stored):
        import xarray as xr

        header = json.loads((stored / "zarr.json").read_text())
        assert header["zarr_format"] == 3
        dataset = xr.open_zarr(stored, consolidated=False)
        assert dataset["energy"].dims == ("time",)
        assert dataset.attrs["dtype"] == "float64"
        assert dataset.attrs["numerics"]["reduction"]["class"] == "Dense"
        assert dataset.attrs["health"]["accepted_steps"] > 0
        assert {"jax", "diffrax", "tokenflock"} <= set(dataset.attrs["versions"])
        assert dataset.attrs["device"].startswith("cpu")

    def test_nan_and_infinity_in_attributes_survive_strict_json(self, tmp_path):
        odd = Trajectory(
            {"x": np.array([1.0, np.nan])},
            {"x": ("time",)},
            {"time": np.array([0.0, 1.0])},
            {"health": {"drift": float("nan"), "bound": float("inf"), "list": [1.0, -np.inf]}},
        )
        path = odd.save(tmp_path / "odd.zarr")
        json.loads((path / "zarr.json").read_text(), parse_constant=lambda word: pytest.fail(word))
        health = flock.open(path).attributes["health"]
        assert np.isnan(health["drift"])
        assert health["bound"] == np.inf
        assert health["list"] == [1.0, -np.inf]

    def test_an_empty_time_axis_is_stored(self, tmp_path):
        empty = Trajectory(
            {"x": np.zeros((0, 2))}, {"x": ("time", "token")}, {"time": np.zeros(0)}, {}
        )
        assert flock.open(empty.save(tmp_path / "empty.zarr")).arrays["x"].shape == (0, 2)


def chunk(path: Path, variable: str) -> Path:
    return next(file for file in (path / variable / "c").rglob("*") if file.is_file())


def truncate(file: Path):
    file.write_bytes(file.read_bytes()[:-5])


def garbage(file: Path):
    file.write_bytes(b"\x00\xffgarbage" * 7)


def flip(file: Path):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))


class TestDamage:
    @pytest.mark.parametrize("damage", [truncate, garbage, flip, Path.unlink])
    @pytest.mark.parametrize("variable", ["states", "energy", "time"])
    def test_a_damaged_chunk_is_refused(self, stored, damage, variable):
        damage(chunk(stored, variable))
        with pytest.raises(flock.errors.StoreError, match="not a readable tokenflock store"):
            flock.open(stored)

    @pytest.mark.parametrize("damage", [truncate, garbage, Path.unlink])
    @pytest.mark.parametrize("place", ["zarr.json", "states/zarr.json"])
    def test_a_damaged_header_is_refused(self, stored, damage, place):
        damage(stored / place)
        with pytest.raises(flock.errors.StoreError, match="not a readable tokenflock store"):
            flock.open(stored)

    def test_a_missing_array_is_named(self, stored):
        shutil.rmtree(stored / "energy")
        with pytest.raises(flock.errors.StoreError, match="changed in energy"):
            flock.open(stored)

    def test_another_programs_store_is_refused(self, tmp_path):
        import xarray as xr

        xr.Dataset({"a": ("x", np.arange(3.0))}).to_zarr(
            tmp_path / "other.zarr", zarr_format=3, consolidated=False
        )
        with pytest.raises(flock.errors.StoreError, match="its format is None"):
            flock.open(tmp_path / "other.zarr")

    def test_what_is_not_there_or_not_a_store(self, tmp_path):
        (tmp_path / "file").write_text("hello")
        (tmp_path / "folder").mkdir()
        for name, words in (("nothing", "does not exist"), ("file", "not a"), ("folder", "not a")):
            with pytest.raises(flock.errors.StoreError, match=words):
                flock.open(tmp_path / name)
        with pytest.raises(flock.errors.StoreError, match="cannot open"):
            flock.open("a" * 5000)


class TestWriting:
    def test_an_existing_store_is_kept_unless_asked(self, run, stored):
        before = (stored / "zarr.json").stat().st_mtime_ns
        with pytest.raises(flock.errors.StoreError, match="exists"):
            run.save(stored)
        assert (stored / "zarr.json").stat().st_mtime_ns == before
        run.save(stored, overwrite=True)
        same(run, flock.open(stored))

    def test_under_a_file(self, run, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(flock.errors.StoreError, match="cannot write"):
            run.save(tmp_path / "file" / "run.zarr")

    @pytest.mark.parametrize("name", ["fsync", "replace"])
    def test_a_full_disk_leaves_nothing(self, run, tmp_path, monkeypatch, name):
        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, name, full)
        with pytest.raises(flock.errors.StoreError, match="No space left on device"):
            run.save(tmp_path / "run.zarr")
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_keeps_the_old_store(self, run, stored, monkeypatch):
        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(flock.errors.StoreError):
                run.save(stored, overwrite=True)
        same(run, flock.open(stored))
        assert [item.name for item in stored.parent.iterdir()] == ["run.zarr"]

    def test_a_disk_that_fills_up_in_the_middle_of_many_files(self, tmp_path, monkeypatch, caplog):
        """Zarr writes chunks at once: none may go on in the background, and none be told of later."""
        numbers = np.random.default_rng(0).normal(size=(2000, 100, 3))
        large = Trajectory(
            {"states": numbers},
            {"states": ("time", "token", "coordinate")},
            {"time": np.arange(2000.0)},
            {},
        )
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        # No file may grow beyond this, as if the disk were full by then.
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
        try:
            with pytest.raises(flock.errors.StoreError, match="cannot write") as told:
                large.save(tmp_path / "run.zarr")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert told.value.exit_code == 1
        del told
        gc.collect()
        assert not [record for record in caplog.records if record.name == "asyncio"]
        assert list(tmp_path.iterdir()) == []

    def test_two_that_save_together(self, run, stored):
        with (
            only_writer_of(stored),
            pytest.raises(flock.errors.StoreError, match="is being written by"),
        ):
            run.save(stored, overwrite=True)
        same(run, flock.open(stored))


class TestSegments:
    def write(self, run, folder, *ranges):
        for name in ranges:
            store.write(run, folder / SEGMENTS / f"{name}.zarr")

    def test_only_parts_without_a_gap_count(self, run, tmp_path):
        self.write(run, tmp_path, "000000-000003", "000004-000004", "000006-000009")
        names = [path.stem for path in store.segment_paths(tmp_path)]
        assert names == ["000000-000003", "000004-000004"]

    def test_without_the_first_part_nothing_counts(self, run, tmp_path):
        self.write(run, tmp_path, "000001-000003")
        assert store.segment_paths(tmp_path) == []

    def test_an_interrupted_run_says_so_and_adds_up_its_steps(self, run, tmp_path):
        self.write(run, tmp_path, "000000-000003", "000004-000004")
        whole = flock.open(tmp_path)
        assert whole.outcome == "interrupted"
        assert f"--resume --out {tmp_path}" in whole.advice
        assert whole.health["accepted_steps"] == 2 * run.health["accepted_steps"]
        assert len(whole.time) == 2 * len(run.time)


MODELS = [
    flock.SA(beta=2.0),
    flock.SA(np.array([1.0, 2.0]), flock.Weights.gaussian(d=3, seed=1, heads=2)),
    flock.USA(3.0, "metastability", noise=flock.Brownian(0.1)),
    flock.CausalSA(4.0, slope=1.0),
    flock.SinkhornSA(2.0),
    flock.HardmaxFlow(flock.Weights(B=np.diag([1.0, 2.0, 3.0]))),
    flock.RescaledSA(1.0),
    flock.KernelFlow([0.0, 1.0, 0.5]),
    flock.StochasticSA(1.0, 0.5),
    flock.SA(1.0, plus=flock.Perceptron.random(d=3, width=4, seed=2)),
    flock.SA(1.0, plus=flock.Perceptron.random(d=3, width=4, seed=2, period=0.1, per="sample")),
    flock.SA(
        1.0,
        flock.random_weights.RandomWeights(
            d=3, seed=1, heads=2, Q=flock.random_weights.GOE(), V=-1.0, period=0.5
        ),
    ),
    flock.SA(1.0, normalisation=flock.normalisation.MixLN(2.0)),
    flock.SA(1.0, flock.Piecewise([1.0], [flock.Weights(V=1.0), flock.Weights(V=-1.0)])),
]


class TestDescriptions:
    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model.label)
    def test_a_model_is_rebuilt_from_json(self, model):
        text = json.dumps(describe(model))
        again = rebuild(json.loads(text))
        assert json.dumps(describe(again)) == text
        mu = flock.uniform(flock.Sphere(3), n=5, seed=0)
        if model.label not in ("RescaledSA",) and not any(p.beta.ndim for p in model.attentions()):
            expected, found = model.field(0.2, mu.points, mu), again.field(0.2, mu.points, mu)
            np.testing.assert_array_equal(np.asarray(expected), np.asarray(found))

    def test_perceptrons_of_release_0_1_are_read(self):
        """Their weights stood beside the activation, not in a schedule."""
        own = flock.Perceptron.gradient([0.5, -0.3], [[1.0, 0.2], [-0.4, 0.9]])
        new = describe(own)
        matrices = {name: new["weights"][name] for name in ("inner", "outer", "bias", "omega")}
        old = {"class": "Perceptron", "activation": new["activation"], **matrices}
        assert eqx.tree_equal(rebuild(json.loads(json.dumps(old))), own)

    def test_a_users_function_is_named_but_not_rebuilt(self):
        model = flock.KernelFlow(lambda u: u**3)
        with pytest.raises(flock.errors.StoreError, match="lambda"):
            rebuild(json.loads(json.dumps(describe(model))))

    def test_an_unknown_class_is_not_instantiated(self):
        with pytest.raises(flock.errors.StoreError, match="class 'Popen', which is not part"):
            rebuild({"class": "Popen", "args": "true"})

    def test_measures_keep_their_weights(self):
        mu = flock.Measure(flock.Sphere(2), [[1.0, 0.0], [0.0, 1.0]], [1.0, 3.0], ordered=False)
        assert eqx.tree_equal(rebuild(json.loads(json.dumps(describe(mu)))), mu)


class TestWhatIsReplaced:
    """`save(overwrite=True)` replaces runs that were saved, and nothing else."""

    def test_a_saved_run_is(self, tmp_path):
        run = small()
        run.save(tmp_path / "run")
        run.save(tmp_path / "run", overwrite=True)
        assert flock.open(tmp_path / "run").outcome == "finished"

    def test_a_folder_of_other_files_is_not(self, tmp_path):
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "thesis.tex").write_text("thesis")
        with pytest.raises(StoreError, match=r"no run saved by run\.save, so it is not replaced"):
            small().save(tmp_path / "docs", overwrite=True)
        assert (tmp_path / "docs" / "thesis.tex").read_text() == "thesis"

    def test_what_another_process_writes_is_not(self, tmp_path):
        """Neither the folder of a run that is going on, nor anything in it."""
        live = tmp_path / "live"
        live.mkdir()
        (live / "spec.toml").write_text("spec")
        with only_writer(live):
            for place in (live, live / "trajectory.zarr", live / "segments"):
                with pytest.raises(StoreError, match="is being written by process"):
                    small().save(place, overwrite=True)
        assert [item.name for item in live.iterdir()] == ["spec.toml"]


def small():
    tokens = flock.uniform(flock.Sphere(3), n=4, seed=0)
    return flock.solve(flock.SA(1.0), tokens, t1=0.1, dt=0.1)
