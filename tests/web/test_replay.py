"""Stored results as the page shows them: the numbers themselves, and honest notes on what is left out."""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from packed import unpack
from pydantic import TypeAdapter
from serving import small_run

import tokenflock as flock
from tokenflock import store
from tokenflock.errors import InputError
from tokenflock.states import TokenState
from tokenflock.trajectory import Trajectory
from tokenflock.web import stores
from tokenflock.web.projection import project, spread
from tokenflock.web.replay import read_replay, run_replay
from tokenflock.web.shapes import Replay

sys.path.append(str(Path(__file__).parent.parent / "tracing"))
RNG = np.random.default_rng(6)


def on_sphere(*shape):
    x = RNG.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def made(states, axes=("time", "token", "coordinate"), coords=None, times=None, **more):
    """A run that holds these tokens."""
    n, d = states.shape[-2:]
    frames = states.shape[axes.index("time")]
    times = np.arange(frames) / 4 if times is None else times
    arrays = {"states": states, "final_time": np.asarray(times[-1]), **more}
    names = {name: ("time",) for name in more}
    attributes = {"label": "SA", "outcome": "finished", "advice": "reached t1"}
    measure = flock.Measure(flock.Sphere(d), on_sphere(n, d))
    return Trajectory(
        arrays,
        {"states": axes, "final_time": (), **names},
        {"time": times, **(coords or {})},
        attributes,
        state=TokenState(measure),
    )


def is_a_replay(replay):
    """It is what the page expects, key by key."""
    found = TypeAdapter(Replay).validate_python(replay)
    assert found.model_dump().keys() == replay.keys()


def test_a_run_is_shown_as_it_is():
    states, energy = on_sphere(5, 7, 3), RNG.normal(size=5)
    replay = run_replay(made(states, energy=energy))
    is_a_replay(replay)
    np.testing.assert_allclose(unpack(replay["points"]), states, atol=1e-6)
    assert replay["times"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert (replay["kind"], replay["space"], replay["clock"]) == ("run", "sphere", "time")
    assert replay["projection"] is None
    assert replay["series"] == [{"name": "energy", "values": energy.tolist()}]
    assert replay["notes"] == ["finished: reached t1"]


def test_what_is_not_a_number_becomes_null():
    energy = np.asarray([1.0, np.nan, np.inf])
    replay = run_replay(made(on_sphere(3, 4, 2), energy=energy))
    assert replay["series"][0]["values"] == [1.0, None, None]


def test_long_and_large_runs_are_thinned_and_say_so():
    states = np.broadcast_to(on_sphere(1, 5000, 2), (1500, 5000, 2))
    clusters = np.arange(1500.0)
    replay = run_replay(made(states, clusters=clusters))
    points = unpack(replay["points"])
    assert points.shape == (600, 4096, 2)
    assert replay["times"][0] == 0.0
    assert replay["times"][-1] == 1499 / 4
    np.testing.assert_allclose(replay["series"][0]["values"], 4 * np.asarray(replay["times"]))
    assert "600 of 1500 saved times are shown" in replay["notes"]
    assert "4096 of 5000 tokens are shown" in replay["notes"]


def test_of_a_batch_the_first_is_shown_and_noted():
    states = on_sphere(2, 3, 4, 6, 3)
    run = made(
        states,
        ("beta", "sample", "time", "token", "coordinate"),
        {"beta": np.asarray([1.0, 9.0]), "sample": np.arange(3)},
    )
    replay = run_replay(run)
    np.testing.assert_allclose(unpack(replay["points"]), states[0, 0], atol=1e-6)
    assert "the first of 2 along beta (beta = 1) is shown" in replay["notes"]
    assert "the first of 3 along sample is shown" in replay["notes"]


def test_frames_without_finite_tokens_are_left_out():
    states = on_sphere(4, 3, 2)
    states[2] = np.nan
    replay = run_replay(made(states, energy=np.arange(4.0)))
    assert replay["times"] == [0.0, 0.25, 0.75]
    assert replay["series"][0]["values"] == [0.0, 1.0, 3.0]
    assert any("left out" in note for note in replay["notes"])


def test_a_run_without_states_shows_its_ends(tmp_path):
    run = small_run()
    arrays = {name: value for name, value in run.arrays.items() if name != "states"}
    axes = {name: run.axes[name] for name in arrays}
    Trajectory(arrays, axes, run.coords, run.attributes, run.details).save(tmp_path / "run")
    replay = read_replay(tmp_path / "run")
    is_a_replay(replay)
    points = unpack(replay["points"])
    np.testing.assert_allclose(points[0], run.initial.points, atol=1e-6)
    np.testing.assert_allclose(points[1], run.final.points, atol=1e-6)
    assert replay["times"] == [0.0, 1.0]
    assert any("first and the last" in note for note in replay["notes"])


def test_nothing_to_show_is_a_sentence():
    run = made(on_sphere(2, 3, 2))
    del run.arrays["states"]
    with pytest.raises(InputError, match="kept no tokens"):
        run_replay(run)


# --- high dimension ---


def test_directions_in_a_plane_survive_the_projection():
    """Tokens that lie in three of fifty dimensions keep all their angles."""
    flat = on_sphere(4, 9, 3)
    axes = np.linalg.qr(RNG.normal(size=(50, 3)))[0]
    shown, says = project(flat @ axes.T, on_sphere=True)
    gram = np.einsum("fid,fjd->fij", flat, flat)
    np.testing.assert_allclose(np.einsum("fid,fjd->fij", shown, shown), gram, atol=1e-12)
    assert "100%" in says
    assert "sphere" in says


def test_the_share_kept_is_the_share_stated():
    cloud = RNG.normal(size=(3, 400, 10)) * np.asarray([3, 2, 2, *[0.5] * 7]) + 7.0
    shown, says = project(cloud, on_sphere=False)
    kept = shown.var(axis=(0, 1)).sum() / cloud.var(axis=(0, 1)).sum()
    assert f"{kept:.0%} of the variance" in says
    assert 0.88 < kept < 0.94


def test_clusters_are_those_of_the_tokens_not_of_their_picture():
    """Two tight groups in d = 8 that differ in a direction the picture does not show."""
    states = np.zeros((2, 9, 8))
    states[0] = on_sphere(9, 8)
    states[1, :, 0] = 1.0
    states[1, 4:, 7] = 0.3
    states[1] += 1e-3 * RNG.normal(size=(9, 8))
    states[1] /= np.linalg.norm(states[1], axis=-1, keepdims=True)
    replay = run_replay(made(states))
    is_a_replay(replay)
    found = unpack(replay["clusters"])
    for k, frame in enumerate(states):
        measure = flock.Measure(flock.Sphere(8), frame)
        snapshot = flock.observables.Snapshot(jnp.zeros(()), measure, flock.SA(1.0), flock.Dense())
        assert len(np.unique(found[k])) == int(flock.clusters(link="spacing")(snapshot))
    np.testing.assert_array_equal(found[1], [0, 0, 0, 0, 1, 1, 1, 1, 1])
    assert run_replay(made(on_sphere(2, 5, 3)))["clusters"] is None


def test_projected_tokens_lie_on_the_sphere_and_repeat():
    states = on_sphere(3, 40, 20)
    shown, _ = project(states, on_sphere=True)
    np.testing.assert_allclose(np.linalg.norm(shown, axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(project(states.copy(), on_sphere=True)[0], shown)


def test_two_tokens_in_many_dimensions():
    shown, _ = project(on_sphere(1, 2, 30), on_sphere=True)
    assert shown.shape == (1, 2, 3)
    assert np.all(np.isfinite(shown))


def test_spread_keeps_both_ends():
    assert spread(5, 10).tolist() == [0, 1, 2, 3, 4]
    chosen = spread(1001, 11)
    assert chosen.tolist() == list(range(0, 1001, 100))


# --- traces ---


def test_a_trace_has_its_texts_and_its_layers(tmp_path):
    torch_made = pytest.importorskip("made_runs")
    labels = [f"<b>{i}</b>" for i in range(6)]
    run = torch_made.with_heads(torch_made.made_run(RNG.normal(size=(4, 6, 12)), labels=labels))
    run.attributes["trace"]["notes"] = ["outside the training regime"]
    run._state = TokenState(flock.Measure(flock.Sphere(12), on_sphere(6, 12)))
    run.arrays["final_time"], run.axes["final_time"] = np.asarray(3.0), ()
    replay = run_replay(run)
    is_a_replay(replay)
    assert (replay["kind"], replay["clock"], replay["labels"]) == ("trace", "layer", labels)
    assert replay["times"] == [0.0, 1.0, 2.0, 3.0]
    assert replay["dimension"] == 12
    assert "12 dimensions" in replay["projection"]
    assert "outside the training regime" in replay["notes"]
    series = {each["name"]: each["values"] for each in replay["series"]}
    np.testing.assert_allclose(series["sphere_cosine"], run.array("sphere_cosine"))
    turned = series["turning_angle"]
    assert turned[0] is None
    np.testing.assert_allclose(turned[1:], run.array("turning_angle"))


# --- sweeps ---


def sweep_store(path, dataset):
    dataset.to_zarr(path, zarr_format=3, consolidated=False)
    return path


@pytest.mark.slow
def test_a_saved_ensemble_is_shown_as_a_sweep(tmp_path):
    x0 = flock.uniform(flock.Sphere(2), 6, 0, samples=2)
    found = flock.ensemble(
        flock.SA(np.asarray([1.0, 4.0])),
        x0,
        1.0,
        every=0.5,
        method=flock.Layers(0.5),
        engine="solve",
    )
    path = found.save(tmp_path / "phase.zarr")
    (entry,) = stores.find([tmp_path])
    assert (entry.kind, entry.title) == ("sweep", "phase")
    assert entry.detail == "SA, sweep over beta and time"
    replay = read_replay(path)
    is_a_replay(replay)
    assert replay["rows"] == {"name": "beta", "values": [1.0, 4.0]}
    assert replay["columns"] == {"name": "time", "values": [0.0, 0.5, 1.0]}
    tables = {each["name"]: unpack(each["values"]) for each in replay["statistics"]}
    mean = found["order_parameter"].mean("sample")
    np.testing.assert_allclose(tables["order_parameter"], mean, rtol=1e-6)
    np.testing.assert_allclose(replay["spec"]["tokens"]["points"], x0.points[0], rtol=1e-12)


def test_a_setting_beside_time_is_a_sweep(tmp_path):
    """The form of many results: means of a phase diagram."""
    values = RNG.normal(size=(2, 3))
    values[1, 2] = np.nan
    dataset = xr.Dataset(
        {"order": (("beta", "time"), values)},
        coords={"beta": [1.0, 4.0], "time": [0.0, 0.5, 1.0]},
    )
    replay = read_replay(sweep_store(tmp_path / "phase.zarr", dataset))
    is_a_replay(replay)
    assert (replay["rows"]["name"], replay["columns"]["name"]) == ("beta", "time")
    np.testing.assert_allclose(unpack(replay["statistics"][0]["values"]), values, rtol=1e-6)
    assert replay["title"] == "phase"
    assert replay["spec"] is None


@pytest.mark.filterwarnings("ignore:The data type")
def test_settings_come_before_time_and_samples_are_averaged(tmp_path):
    values = RNG.normal(size=(2, 3, 5, 4))
    dataset = xr.Dataset(
        {
            "energy": (("beta", "n", "time", "sample"), values),
            "wall": (("n", "beta"), np.arange(6.0).reshape(3, 2)),
            "tokens": (("beta", "token", "coordinate"), np.zeros((2, 4, 2))),
            "name": (("beta",), np.asarray(["a", "b"])),
        },
        coords={"beta": [1.0, 2.0], "n": [4, 8, 16], "time": np.arange(5.0)},
        attrs={"title": "two settings", "says": "watch", "spec": {"title": "base"}},
    )
    replay = read_replay(sweep_store(tmp_path / "sweep.zarr", dataset))
    is_a_replay(replay)
    assert (replay["rows"]["name"], replay["columns"]["name"]) == ("beta", "n")
    tables = {each["name"]: unpack(each["values"]) for each in replay["statistics"]}
    np.testing.assert_allclose(tables["energy"], values[:, :, -1].mean(axis=-1), rtol=1e-6)
    np.testing.assert_allclose(tables["wall"], np.arange(6.0).reshape(3, 2).T)
    assert set(tables) == {"energy", "wall"}
    assert replay["spec"] == {"title": "base"}


def test_a_store_of_something_else_is_no_sweep(tmp_path):
    other = xr.Dataset({"x": (("row", "column"), np.zeros((2, 2)))})
    assert stores.describe(sweep_store(tmp_path / "other.zarr", other)) is None
    with pytest.raises(store.StoreError, match="not a readable"):
        read_replay(tmp_path / "other.zarr")


def test_an_interrupted_run_is_listed_and_shown(tmp_path):
    small_run().save(tmp_path / "cut" / "segments" / "000000-000003.zarr")
    (entry,) = stores.find([tmp_path])
    assert (entry.kind, entry.path) == ("run", tmp_path / "cut")
    replay = read_replay(entry.path)
    assert replay["notes"][0].startswith("interrupted")
