"""Every benchmark at a tiny size: the JSON contract, and errors that are what they must be."""

import sys

import jax
import numpy as np
import pytest
from contract import check_result

from tokenflock.applications.benchmarks import all_benchmarks, find_benchmark, peers
from tokenflock.applications.benchmarks.gpu_phase import (
    checkpoints,
    published_panel,
    scan_panel,
    torch_panel,
)
from tokenflock.applications.benchmarks.meanfield import jax_stepper, numpy_stepper, start
from tokenflock.applications.benchmarks.sums import (
    chosen_rows,
    direct_rows,
    relative_error,
    sphere_tokens,
)
from tokenflock.errors import InputError

NAMES = [
    "dense-cpu",
    "spectral-circle",
    "spectral-sphere",
    "causal",
    "kinetic",
    "memory",
    "solve",
    "meanfield",
    "random-depth",
    "startup",
    "trace",
    "sentiment",
    "play",
    "sweep",
    "gpu-dense",
    "gpu-phase",
]
STEPS = ("dt = 0.02 dx", "largest stable dt")
FEW = {"repeats": 2, "budget": 0.5}
SERIES = {"sizes": (1500, 3000), "pairs_n": 512, "rows": 20, **FEW}
TINY = {
    "dense-cpu": {
        "n": 400,
        "dimensions": (3,),
        "keops_rows": {3: 400},
        "rest": 0.0,
        "sample": 0.0,
        **FEW,
    },
    "spectral-circle": SERIES,
    "spectral-sphere": SERIES,
    "causal": {
        "n": 3000,
        "pairs_n": {"Tiled": 512, "NumPy": 512, "torch": 512},
        "rows": 20,
        **FEW,
    },
    "kinetic": {"n": 3000, "t1": 0.5, "pairs_n": 512, "rows": 20, **FEW},
    "memory": {"cases": (("forward", 4000, ()),)},
    "solve": {
        "n": 6,
        "t1": 1.0,
        "tolerances": (1e-3, 1e-5, 1e-7),
        "errors": (1e-5,),
        "diffrax": ("Tsit5",),
        **FEW,
    },
    "sentiment": {
        "batch": 4,
        "length": 12,
        "depth": 2,
        "vocabulary": 50,
        "dimensions": (2,),
        "tau": 0.1,
        **FEW,
    },
    "meanfield": {
        "modes": 24,
        "points": 128,
        "t1": 2.0,
        "stretch": None,
        **FEW,
    },
    "random-depth": {"sizes": ((2, 4, 400, 10, (2, 5), (400, 5)),), **FEW},
    "startup": {"others": (), "run": False, **FEW},
    "play": {"pages": 3, "tokens": 8, "seconds": 0.5},
    "gpu-dense": {
        "n": 512,
        "dimensions": (3,),
        "rows": 32,
        "reduction": "Tiled",
        "calls": 1,
        **FEW,
    },
    "gpu-phase": {
        "batch": 4,
        "n": 8,
        "dimensions": (2,),
        "betas": 3,
        "t1": 3.0,
        "timed_betas": 2,
        **FEW,
    },
}


@pytest.fixture(autouse=True)
def without_keops(monkeypatch):
    """KeOps compiles for ten seconds."""
    monkeypatch.setitem(sys.modules, "pykeops", None)
    monkeypatch.setitem(sys.modules, "pykeops.torch", None)


def tiny(name):
    heard = []
    changes = TINY[name]
    result = find_benchmark(name).run("quick", lambda done, note: heard.append(done), **changes)
    check_result(result)
    assert result["name"] == name
    assert heard == sorted(heard)
    assert all(0 <= done <= 1 for done in heard)
    return result["rows"]


@pytest.mark.slow
def test_play_times_a_busy_server_beside_its_idle_self():
    rows = tiny("play")
    assert [row["case"].split(",")[0] for row in rows] == [
        "a ping over the WebSocket",
        "GET /api/ping",
    ]
    for row in rows:
        assert 0 < row["ours"] < 5
        assert list(row["peers"]) == ["the same server, no page open"]
        assert row["bars"][0]["says"] == "at most 0.1 s"


def test_the_names_are_those_that_were_promised():
    assert [benchmark.name for benchmark in all_benchmarks()] == NAMES
    assert {one.name for one in all_benchmarks() if one.device == "gpu"} == {
        "gpu-dense",
        "gpu-phase",
    }


def test_dense_cpu_counts_pairs_and_measures_errors():
    (row,) = tiny("dense-cpu")
    assert row["unit"] == "pairs/s"
    assert row["error"] < 2e-5
    assert row["peer_errors"]["NumPy float64, as published"] < 1e-13
    assert all(error < 1e-4 for error in row["peer_errors"].values())
    assert "KeOps: not installed" in row["missing"]


def test_a_peer_that_is_not_installed_is_named_as_missing(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"] + ["torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    (row,) = tiny("dense-cpu")
    assert {"torch SDPA: not installed", "torch naive: not installed"} <= set(row["missing"])
    assert not any("torch" in name for name in row["peers"])
    assert row["bars"][0] == {"says": "at least 1.8 x torch SDPA", "measured": None, "met": None}


@pytest.mark.parametrize(
    "name", ["spectral-circle", pytest.param("spectral-sphere", marks=pytest.mark.slow)]
)
def test_spectral_is_held_to_its_bound_and_its_growth_is_fitted(name):
    *rows, growth = tiny(name)
    for row in rows:
        assert row["error"] <= row["bound"]
        assert "Tiled (extrapolated from n=512)" in row["peers"]
        assert row["bars"][0]["met"]
    assert growth["unit"] == "exponent"
    assert growth["ratio"] is None


def test_causal_scales_the_peers_by_the_number_of_pairs():
    (row,) = tiny("causal")
    assert row["error"] < 1e-9
    assert "NumPy in blocks of rows (extrapolated from n=512)" in row["peers"]


@pytest.mark.slow
def test_kinetic_agrees_with_all_pairs_and_with_a_linear_filter():
    field, run = tiny("kinetic")
    assert field["error"] < 1e-8
    assert field["peer_errors"]["scipy lfilter of the moments"] < 1e-8
    assert "NumPy in blocks of rows (extrapolated from n=512)" in field["peers"]
    assert run["unit"] == "s"
    assert run["bars"][0]["met"]


def test_memory_is_measured_in_a_fresh_process():
    (row,) = tiny("memory")
    assert row["unit"] == "GB"
    assert 0 <= row["ours"] < 0.5
    assert row["peers"]["the n x n matrix in float32 (computed)"] == pytest.approx(0.064)


@pytest.mark.slow
def test_solve_compares_at_equal_error():
    (row,) = tiny("solve")
    assert row["unit"] == "s"
    assert row["error"] == 1e-5
    assert "diffrax Tsit5" in row["peers"]


@pytest.mark.slow
def test_meanfield_is_compared_with_a_grid_scheme_that_converges():
    (row,) = tiny("meanfield")
    assert row["error"] < 1e-8
    published, largest = (row["peer_errors"][f"Lax-Friedrichs, {step}"] for step in STEPS)
    # At 128 points the published step flattens what has grown: 2 times 0.01 e^{0.7 t}.
    assert row["error"] < largest < published < 0.02 * np.exp(0.7 * 2.0)


def test_the_grid_scheme_is_of_first_order_and_the_same_in_numpy_and_jax():
    density = start(2 * np.pi * np.arange(200) / 200)
    steps = [make(200, 9.0, 0.05)(density, 20) for make in (numpy_stepper, jax_stepper)]
    np.testing.assert_allclose(*steps, atol=1e-13)
    assert np.mean(steps[0]) == pytest.approx(1, abs=1e-14)

    def at(points):
        angles = 2 * np.pi * np.arange(points) / points
        return numpy_stepper(points, 9.0, 8.0 / points)(start(angles), points // 8)

    coarse, middle, fine = at(400), at(800)[::2], at(1600)[::4]
    ratio = np.abs(coarse - middle).max() / np.abs(middle - fine).max()
    assert ratio == pytest.approx(2, abs=0.15)


def test_sentiment_has_the_loss_of_torch_and_of_float64():
    """float32 carries 7 digits; a sum of 12 words loses one."""
    (row,) = tiny("sentiment")
    assert row["error"] < 1e-6
    assert not row["peers"] or max(row["peer_errors"].values()) < 1e-6


def test_random_depth_agrees_with_numpy_and_says_what_it_extrapolates():
    (row,) = tiny("random-depth")
    assert row["error"] < row["bound"]
    assert all("extrapolated from" in name for name in row["peers"])


def test_startup_starts_fresh_processes():
    rows = tiny("startup")
    assert rows[0]["case"] == "import tokenflock"
    assert all(0 < row["ours"] < 30 for row in rows)


def test_gpu_dense_runs_its_peers_anywhere():
    (row,) = tiny("gpu-dense")
    assert row["error"] < 1e-5
    assert row["peer_errors"]["jnp in row tiles"] < 1e-5


@pytest.mark.slow
def test_gpu_phase_finds_the_same_statistic_as_the_scan():
    (row,) = tiny("gpu-phase")
    assert row["error"] < 1e-3
    assert "one jnp scan, float32" in row["peers"]


def test_all_ways_to_the_phase_diagram_agree():
    pytest.importorskip("torch")
    betas = np.array([0.5, 3.0, 8.0])
    x0 = sphere_tokens(6 * 10, 2, "float64", seed=3).reshape(6, 10, 2)
    steps, step = 60, 0.1
    exact = np.asarray(scan_panel(betas, x0, steps, step)())
    assert exact.shape == (3, steps + 1)
    # Clusters form, at different times.
    assert exact[:, 0].max() < 0.2 < exact[0, -1]
    np.testing.assert_allclose(torch_panel(betas, x0, steps, step)(), exact, atol=1e-12)
    looks = checkpoints(steps)
    assert looks[0] == 1
    assert looks[-1] == steps
    published = published_panel(betas, x0, steps, step)()
    np.testing.assert_allclose(published, exact[:, looks], atol=1e-12)


def test_the_peers_evaluate_the_same_sum():
    x = sphere_tokens(300, 3, "float64", seed=5)
    everyone = np.arange(300)
    exact = direct_rows(x, 4.0, everyone)
    weights = np.exp(4.0 * x @ x.T)
    np.testing.assert_allclose(exact, weights @ x / weights.sum(1, keepdims=True), atol=1e-14)
    assert relative_error(peers.numpy_matrix(x, 4.0)(), exact) < 1e-13
    assert relative_error(peers.plain_jnp(x, 4.0)(), exact) < 1e-13
    seen = direct_rows(x, 4.0, everyone, causal=True)
    np.testing.assert_array_equal(seen[0], x[0])
    assert relative_error(peers.numpy_causal(x, 4.0, block=64)(), seen) < 1e-13
    some = chosen_rows(300, 20)
    assert some[-1] == 299
    assert len(set(some.tolist())) == 20


def test_finufft_by_hand_is_a_fair_peer():
    pytest.importorskip("jax_finufft")
    x = sphere_tokens(500, 2, "float64", seed=6)
    exact = direct_rows(x, 9.0, np.arange(500))
    assert relative_error(peers.finufft_circle(x, 9.0, 1e-10)(), exact) < 1e-8


def test_unknown_settings_and_a_missing_gpu_are_sentences():
    with pytest.raises(InputError, match="dense-cpu has no setting m; it has n, dimensions"):
        find_benchmark("dense-cpu").run(m=3)
    if jax.default_backend() == "cpu":
        with pytest.raises(InputError, match="gpu-dense measures an NVIDIA GPU and JAX sees none"):
            find_benchmark("gpu-dense").require_device()
