"""Ensembles: the fused kernels, interpreted here, against the general engine."""

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.ensembles import mean_and_error

BETAS = [0.0, 1.0, 4.0]


def start(d, n=9, samples=5):
    return flock.uniform(flock.Sphere(d), n, seed=3, samples=samples)


def both(model, x0, t1, **options):
    exact = flock.ensemble(model, x0, t1, engine="solve", **options)
    fused = flock.ensemble(model, x0, t1, engine="fused", interpret=True, **options)
    engines = [run.attributes["numerics"]["engine"] for run in (exact, fused)]
    assert engines == ["solve", "fused"]
    return exact, fused


def agree(exact, fused, tolerance):
    for name in ("order_parameter", "pair_fraction", "final_points", "initial_points"):
        assert fused[name].dims == exact[name].dims
        np.testing.assert_allclose(fused[name], exact[name], atol=tolerance, err_msg=name)
    np.testing.assert_allclose(fused.time, exact.time)
    np.testing.assert_allclose(fused["order_parameter"].beta, BETAS)
    # Something happened: systems at different beta end in different places.
    assert float(exact["final_order_parameter"].mean("sample").std()) > 1e-3


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow), 20])
def test_layers(d):
    options = {"method": flock.Layers(0.1), "every": 0.5, "delta": 0.05}
    agree(*both(flock.SA(BETAS), start(d), 2.0, **options), 2e-5)


@pytest.mark.parametrize("d", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_adaptive_flow(d):
    options = {"rtol": 1e-4, "atol": 1e-5, "every": 1.0, "delta": 0.05}
    exact, fused = both(flock.SA(BETAS), start(d), 2.0, **options)
    for name in ("order_parameter", "pair_fraction"):
        np.testing.assert_allclose(fused[name], exact[name], atol=2e-3)
    name = "order_parameter"
    np.testing.assert_allclose(
        mean_and_error(fused, name)[0], mean_and_error(exact, name)[0], atol=3e-4
    )
    assert "steps" in exact.health
    # The kernels do not count the steps of a flow, and say nothing rather than a guess.
    assert "steps" not in fused.health


@pytest.mark.slow
def test_every_layer_can_be_a_save_and_tokens_need_not_fill_a_block():
    options = {"method": flock.Layers(0.25), "every": 0.25, "delta": 0.05}
    agree(*both(flock.SA(BETAS), start(2, n=11, samples=33), 1.0, **options), 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model", [flock.USA, lambda beta: flock.SA(beta, flock.Weights(V=-0.5))])
def test_other_models(model):
    options = {"method": flock.Layers(0.1), "every": 0.2, "delta": 0.05}
    agree(*both(model(BETAS), start(3), 0.4, **options), 2e-5)


@pytest.mark.parametrize("d", [2, 20])
def test_a_flow_that_gets_nowhere_is_lost_and_says_so(d):
    """Far too few steps for the tolerance: later saves are NaN, and the loop ends."""
    options = {"rtol": 1e-6, "atol": 1e-7, "every": 1.0, "engine": "fused", "interpret": True}
    x0 = start(d, n=3, samples=2)
    run = flock.ensemble(flock.SA([4.0]), x0, 2.0, max_steps=3, throw=False, **options)
    assert run.outcome == "step-limit"
    assert "max_steps" in run.advice
    assert not run.health["finite"]
    np.testing.assert_array_equal(run.reached, 0.0)
    # As with `solve`: rows nobody reached are left out, and the last one is where they ended.
    np.testing.assert_array_equal(run.time, [0.0, 0.0])
    assert np.all(np.isfinite(run["order_parameter"]))
    assert np.all(np.isnan(run["final_points"]))
    with pytest.raises(flock.errors.SolveError, match="2 of the 2 runs of this batch broke off"):
        flock.ensemble(flock.SA([4.0]), x0, 2.0, max_steps=3, **options)
    # One system alone.
    alone = flock.from_array(x0.space, x0.points[0])
    one = flock.ensemble(flock.SA(4.0), alone, 2.0, max_steps=3, throw=False, **options)
    assert (one.outcome, one.reached, one.batch_axes) == ("step-limit", 0.0, ())


@pytest.mark.parametrize("d", [pytest.param(2, marks=pytest.mark.slow), 20])
def test_one_lost_system_leaves_the_others_alone(d):
    """25 steps to a save are enough at beta = 0, and not at beta = 8, where tokens move e^8 times faster."""
    options = {"rtol": 1e-5, "atol": 1e-6, "every": 0.5, "engine": "fused", "interpret": True}
    x0, model = start(d, n=4, samples=2), flock.USA([0.0, 8.0])
    run = flock.ensemble(model, x0, 1.0, max_steps=25, throw=False, **options)
    assert run.outcome == "2 step-limit, 2 finished"
    np.testing.assert_array_equal(run.outcomes.sel(beta=0.0), "finished")
    fine = flock.ensemble(flock.USA([0.0]), x0, 1.0, **options)
    for name in ("pair_fraction", "final_points"):
        np.testing.assert_array_equal(run[name].sel(beta=0.0), fine[name].sel(beta=0.0))
    lost = run["order_parameter"].sel(beta=8.0)
    assert np.all(np.isnan(lost.where(lost.time > run.reached.sel(beta=8.0))))
    mean, _ = mean_and_error(run, "order_parameter")
    assert np.isnan(mean.sel(beta=8.0)[-1])
    assert np.all(np.isfinite(mean.sel(beta=0.0)))


@pytest.mark.parametrize("engine", ["solve", "fused"])
def test_an_ensemble_is_a_run_like_any_other(engine, tmp_path):
    x0 = start(2, n=5, samples=(2, 3)) if engine == "solve" else start(2, n=5, samples=3)
    options = {"engine": engine, "interpret": engine == "fused", "delta": 0.05}
    run = flock.ensemble(flock.SA(BETAS), x0, 1.0, every=0.5, method=flock.Layers(0.25), **options)
    assert run.outcome == "finished"
    assert run.attributes["label"] == "SA"
    assert run.attributes["numerics"]["method"] == "Layers"
    assert run.health["steps"] == 4 * np.prod(run["final_time"].shape)
    assert run.health["norm_drift"] < 1e-6
    assert run["pair_fraction"].attrs["delta"] == 0.05
    np.testing.assert_array_equal(run.initial.points, x0.points)
    assert run.final.points.shape == (3, *x0.points.shape)
    again = flock.open(run.save(tmp_path / "run.zarr"))
    for name in run.arrays:
        np.testing.assert_array_equal(again[name], run[name], err_msg=name)
    assert again.attributes["numerics"]["engine"] == engine
    np.testing.assert_array_equal(again.model.terms.beta, BETAS)
    np.testing.assert_array_equal(again.outcomes, "finished")
    assert (
        flock.ensemble(flock.SA(1.0), x0, 1.0, every=0.5, method=flock.Layers(0.25), **options)[
            "order_parameter"
        ].dims
        == run["order_parameter"].dims[1:]
    )


def test_mean_and_error_of_the_samples():
    x0 = start(3, n=4, samples=7)
    run = flock.ensemble(flock.SA(BETAS), x0, 1.0, every=0.5, method=flock.Layers(0.25))
    values = run.array("order_parameter")
    mean, error = mean_and_error(run, "order_parameter")
    assert (mean.dims, mean.name, error.name) == (
        ("beta", "time"),
        "order_parameter",
        "order_parameter_error",
    )
    np.testing.assert_allclose(mean, values.mean(axis=1))
    np.testing.assert_allclose(error**2, values.var(axis=1, ddof=1) / 7)
    with pytest.raises(flock.errors.InputError, match="no 'prompt' to average over"):
        mean_and_error(run, "order_parameter", over="prompt")
    assert np.all(mean_and_error(run, "order_parameter", over="beta")[1] >= 0)


@pytest.mark.slow
def test_the_general_engine_takes_fine_tolerances():
    options = {"rtol": 1e-8, "atol": 1e-9, "every": 1.0, "interpret": True}
    run = flock.ensemble(flock.SA([1.0]), start(2, n=3, samples=1), 1.0, **options)
    assert run.attributes["numerics"]["engine"] == "solve"


def test_refusals():
    x0, layers = start(3), flock.Layers(0.1)
    for model, options, sentence in (
        (flock.CausalSA(1.0), {}, "every token visible"),
        (flock.SA(flock.Piecewise([0.5], [1.0, 4.0])), {}, "the same at every depth"),
        (flock.SA(1.0), {"every": 0.3}, "multiple of every"),
        (flock.SA(1.0), {"every": 0.25}, "multiple of the layers' step"),
        (flock.SA(1.0), {"method": None}, "state how to integrate"),
        (flock.SA(1.0), {"engine": "fused"}, "needs an NVIDIA GPU"),
        (flock.SA(1.0), {"engine": "fast"}, "auto, fused or solve"),
        (flock.SA(1.0), {"delta": 1e-9}, "float32 cannot tell"),
        (flock.SA(1.0), {"method": None, "rtol": 1e-4, "atol": -1e-4}, "must be positive"),
        (
            flock.SA(1.0),
            {"method": None, "rtol": 1e-8, "atol": 1e-8, "engine": "fused", "interpret": True},
            "at least 1e-06",
        ),
    ):
        with pytest.raises(flock.errors.InputError, match=sentence):
            flock.ensemble(model, x0, 1.0, **{"every": 0.5, "method": layers, **options})


@pytest.mark.parametrize(
    "numerics",
    [
        {"method": flock.Layers(0.1)},
        pytest.param({"rtol": 1e-7, "atol": 1e-9}, marks=pytest.mark.slow),
    ],
)
def test_the_spec_it_carries_is_the_run_of_its_first_sample(numerics):
    from tokenflock.lab.job import Job
    from tokenflock.lab.spec import RunSpec

    model = flock.USA([0.5, 2.0], "metastability", flock.Weights(V=-1.0))
    found = flock.ensemble(model, start(3, samples=1), 1.0, every=0.5, engine="solve", **numerics)
    spec = found.attributes["cell_spec"]
    assert spec["model"]["beta"] == 0.5
    spec["model"]["beta"] = 2.0
    job = Job(RunSpec.model_validate(spec))
    run = flock.solve(job.model, job.x0, 1.0, rtol=1e-9, atol=1e-11) if "rtol" in numerics else (
        flock.solve(job.model, job.x0, 1.0, **numerics)
    )  # fmt: skip
    expected = np.linalg.norm(np.mean(run.final.points, axis=0))
    last = found["final_order_parameter"].sel(beta=2.0, sample=0)
    assert float(last) == pytest.approx(expected, abs=1e-6)
