"""Auto: what it takes where, why, and that its prices are the measured ones."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.kinds import Hardmax, Softmax
from tokenflock.masks import Full
from tokenflock.reduce import Auto, Dense, GpuKernel, Spectral, Task, Tiled
from tokenflock.reduce.costs import PAIRS, TERMS

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def task(n, d=3, beta=9.0, kind=None, platform="cpu", **facts):
    return Task(
        n=n, d=d, kind=kind or Softmax(), mask=Full(), beta=beta, reach=1.0, unit_keys=True,
        platform=platform, **facts,
    )  # fmt: skip


def taken(tol, *tasks):
    return Auto(tol).settle(tasks).inner


def test_few_tokens_are_dense():
    assert isinstance(taken(1e-10, task(64)), Dense)


def test_many_tokens_on_small_spheres_take_the_series():
    assert isinstance(taken(1e-10, task(100_000)), Spectral)
    assert isinstance(taken(1e-10, task(100_000, d=2)), Spectral)


def test_where_no_series_serves_it_tiles():
    assert taken(1e-10, task(20_000, d=64)) == Tiled()
    assert taken(1e-10, task(20_000, kind=Hardmax())) == Tiled()
    assert taken(1e-16, task(100, d=64)) == Dense()


def test_single_precision_needs_leave():
    assert taken(1e-3, task(20_000, d=64)).precision == "float32"
    assert taken(1e-7, task(20_000, d=64)).precision is None


def test_every_task_counts():
    assert isinstance(taken(1e-10, task(20_000), task(20_000, kind=Hardmax())), Tiled)


def test_on_a_gpu_the_kernel_wins_when_its_accuracy_suffices():
    assert isinstance(taken(1e-4, task(100_000, d=64, platform="gpu")), GpuKernel)
    assert isinstance(taken(1e-10, task(100_000, d=64, platform="gpu")), Tiled)


def test_a_run_records_the_choice_and_its_reason():
    tokens = flock.uniform(flock.Sphere(3), 40, seed=1)
    options = {"t1": 1.0, "dt": 0.25}
    run = flock.solve(flock.SA(2.0), tokens, reduction=flock.reduce.Auto(), **options)
    exact = flock.solve(flock.SA(2.0), tokens, **options)
    np.testing.assert_allclose(run.final.points, exact.final.points, atol=1e-12)
    record = run.attributes["numerics"]["reduction"]
    assert record["inner"]["class"] == "Dense"
    assert "instead of Spectral" in record["why"]


def test_it_can_be_called_without_solve():
    tokens = flock.uniform(flock.Sphere(3), 30, seed=1)
    model = flock.SA(2.0)
    exact = model.field(0.0, tokens.points, tokens)
    np.testing.assert_allclose(
        model.field(0.0, tokens.points, tokens, flock.reduce.Auto(1e-8)), exact, atol=1e-12
    )


def test_an_impossible_tolerance_is_a_sentence():
    with pytest.raises(flock.errors.InputError, match="no reduction reaches"):
        Auto(1e-16).settle([task(50_000, d=64)])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_prices_are_the_measured_ones(platform):
    """Within a factor of three: enough for a choice, and no number from nowhere."""
    (file,) = [
        p for p in RESULTS.glob("crossovers-*.json") if ("h200" in p.name) == (platform == "gpu")
    ]
    measured = json.loads(file.read_text())
    for name, cost in PAIRS[platform].items():
        found = measured["pairs"][name]
        for d in (3, 64):
            price, seen = cost.pair + cost.coordinate * d, found["pair"] + found["coordinate"] * d
            assert 1 / 3 < price / seen < 3, (name, d, price, seen)
    for d, cost in TERMS[platform].items():
        assert 1 / 3 < cost.term / measured["terms"][f"d={d}"]["term"] < 3, d


def test_prices_see_heads_and_samples():
    one, many = (
        PAIRS["cpu"]["Tiled"].seconds(task(1000, heads=h, samples=s)) for h, s in ((1, 1), (2, 3))
    )
    fixed = PAIRS["cpu"]["Tiled"].fixed
    assert (many - fixed) == pytest.approx(6 * (one - fixed))


def test_the_choice_needs_no_device(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = Auto(1e-4).settle([task(100_000, d=200, platform="gpu")])
    assert isinstance(found.inner, GpuKernel)
    assert found.why.startswith("GpuKernel (about")
