"""Ensembles: the fused kernels, interpreted here, against the general engine."""

import numpy as np
import pytest

import tokenflock as flock

BETAS = [0.0, 1.0, 4.0]


def start(d, n=9, samples=5):
    return flock.uniform(flock.Sphere(d), n, seed=3, samples=samples)


def both(model, x0, t1, **options):
    exact = flock.ensemble(model, x0, t1, engine="solve", **options)
    fused = flock.ensemble(model, x0, t1, engine="fused", interpret=True, **options)
    assert (exact.attrs["engine"], fused.attrs["engine"]) == ("solve", "fused")
    return exact, fused


def agree(exact, fused, tolerance):
    for name in (
        "order_parameter",
        "order_parameter_error",
        "pair_fraction",
        "pair_fraction_error",
    ):
        np.testing.assert_allclose(fused[name], exact[name], atol=tolerance, err_msg=name)
    np.testing.assert_allclose(fused.time, exact.time)
    np.testing.assert_allclose(fused.beta, BETAS)
    # Something happened: systems at different beta end in different places.
    assert float(exact.order_parameter[:, -1].std()) > 1e-3


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
    np.testing.assert_allclose(fused.order_parameter, exact.order_parameter, atol=3e-4)


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
    run = flock.ensemble(flock.SA([4.0]), start(d, n=3, samples=1), 2.0, max_steps=3, **options)
    assert np.isfinite(run.order_parameter[0, 0])
    assert np.all(np.isnan(run.order_parameter[0, 1:]))


@pytest.mark.slow
def test_the_general_engine_takes_fine_tolerances():
    options = {"rtol": 1e-8, "atol": 1e-9, "every": 1.0, "interpret": True}
    run = flock.ensemble(flock.SA([1.0]), start(2, n=3, samples=1), 1.0, **options)
    assert run.attrs["engine"] == "solve"


def test_refusals():
    x0, layers = start(3), flock.Layers(0.1)
    for model, options, sentence in (
        (flock.CausalSA(1.0), {}, "every token visible"),
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
        with pytest.raises(flock.InputError, match=sentence):
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
    spec = found.attrs["spec"]
    spec["model"]["beta"] = 2.0
    job = Job(RunSpec.model_validate(spec))
    run = flock.solve(job.model, job.x0, 1.0, rtol=1e-9, atol=1e-11) if "rtol" in numerics else (
        flock.solve(job.model, job.x0, 1.0, **numerics)
    )  # fmt: skip
    expected = np.linalg.norm(np.mean(run.final.points, axis=0))
    assert float(found.order_parameter.sel(beta=2.0)[-1]) == pytest.approx(expected, abs=1e-6)
