"""Every preset of the page, simulated by the page and by the engine from the same seed."""

import functools

import numpy as np
import pytest
from browser_code import ask

import tokenflock as flock
from tokenflock.lab.job import Job
from tokenflock.lab.spec import RunSpec

LONGEST = 20.0


@functools.cache
def presets():
    """Presets without noise (its paths differ by design), cut to a length that a test can wait for."""
    found = ask({"presets": {"do": "presets"}})["presets"]
    quiet = {entry["id"]: entry["spec"] for entry in found if "noise" not in entry["spec"]["model"]}
    return {name: shortened(spec) for name, spec in quiet.items()}


def shortened(spec):
    solve = spec["solve"]
    step = solve.get("dt", solve.get("step"))
    return {**spec, "solve": {**solve, "t1": round(min(solve["t1"], LONGEST) / step) * step}}


@functools.cache
def simulated():
    requests = {}
    for name, spec in presets().items():
        solve = spec["solve"]
        steps = round(solve["t1"] / solve.get("dt", solve.get("step")))
        requests[name] = {"do": "run", "spec": spec, "steps": steps}
    return ask(requests)


def test_every_preset_is_accepted_by_page_and_engine():
    found = ask({name: {"do": "validate", "value": s} for name, s in presets().items()})
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    for spec in presets().values():
        Job(RunSpec.model_validate({**spec, "save": {"every": spec["solve"]["t1"], "observe": []}}))


@pytest.mark.slow
@pytest.mark.parametrize("space", ["sphere", "euclidean"])
def test_presets_end_where_the_engine_ends(space):
    for name, spec in presets().items():
        on_sphere = (
            spec["tokens"].get("space", "sphere") == "sphere" and spec["tokens"]["law"] != "box"
        )
        if on_sphere == (space == "sphere"):
            compare(
                name, spec, flock.clusters(angle=0.1) if on_sphere else flock.clusters(distance=0.1)
            )


def compare(name, spec, clusters):
    solve = spec["solve"]
    ready = Job(RunSpec.model_validate({**spec, "save": {"every": solve["t1"], "observe": []}}))
    steps = {"dt": solve["dt"]} if "dt" in solve else {"method": flock.Layers(solve["step"])}
    save = flock.Save(every=solve["t1"], observe=[clusters])
    run = flock.solve(ready.model, ready.x0, t1=solve["t1"], save=save, **steps)
    expected = np.asarray(run.arrays["final_points"])
    found = np.reshape(simulated()[name]["points"], expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=name)
    labels = ask(
        {
            "c": {
                "do": "clusters",
                "space": ready.x0.space.label,
                "d": ready.x0.d,
                "points": found.ravel().tolist(),
            }
        }
    )["c"]
    assert labels["clusters"] == int(run.arrays["clusters"][-1]), name
