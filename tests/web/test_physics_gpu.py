"""The WebGL2 simulation, in a real browser, against the engine and against the page's own JavaScript."""

from pathlib import Path

import numpy as np
import pytest
from physics_cases import FLOWS, LAYERS, spec, sphere

import tokenflock as flock
import tokenflock.web
from tokenflock.lab.job import Job
from tokenflock.lab.spec import RunSpec

BUNDLE = Path(tokenflock.web.__file__).parent / "static" / "tokenflock.js"
# Frames that compare other vectors than they carry stay in JavaScript, and say so.
ON_GPU = {
    name: case
    for name, case in {**FLOWS, **LAYERS}.items()
    if case["model"]["name"] != "RescaledSA"
}
SOLVED = ["sa-3d", "usa-perspective-2d", "causal-alibi-3d", "sa-given-b-2d"]
# Two tight clusters at beta = 12: their pull, about 1e-7, is lost where float32 holds the state.
PLATEAU = spec(
    {"name": "SA", "beta": 12.0},
    {
        "law": "arcs",
        "d": 2,
        "centres": [0.0, 1.9],
        "per_cluster": 8,
        "width": 1e-5,
        "seed": 2,
    },
    dt=0.1,
    t1=20.0,
)
BROWNIAN = spec(
    {"name": "SA", "beta": 3.0, "noise": {"kind": "brownian", "temperature": 0.1}}, sphere(3)
)
CROWD = spec({"name": "SA", "beta": 9.0}, sphere(3, 1000), dt=0.05)
# Keeps every context that the page opens, to take one away in the middle of a run.
WATCH = """() => {
  window.contexts = [];
  const plain = OffscreenCanvas.prototype.getContext;
  OffscreenCanvas.prototype.getContext = function (...wanted) {
    const found = plain.apply(this, wanted);
    window.contexts.push(found);
    return found;
  };
}"""
LOAD = """async (source) => {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  window.page = await import(address);
}"""


def steps_of(case):
    solve = case["solve"]
    return round(solve["t1"] / solve.get("dt", solve.get("step")))


@pytest.fixture
def probe(tab):
    """Runs cases with the bundle's own simulator."""
    if not BUNDLE.exists():
        pytest.skip("the page is not built: run `make page` or web/build.py")
    tab.goto("about:blank")
    tab.evaluate(WATCH)
    tab.evaluate(LOAD, BUNDLE.read_text(encoding="utf-8"))
    return lambda cases: tab.evaluate("cases => page.testing.runProbe(cases)", cases)


def both(probe, cases):
    """Every case on the GPU and in JavaScript."""
    results = {}
    for backend in ("webgl2", "js"):
        asked = [{"spec": c, "backend": backend, "steps": steps_of(c)} for c in cases.values()]
        results[backend] = dict(zip(cases, probe(asked), strict=True))
    return results["webgl2"], results["js"]


def distance(first, second):
    radii = (first["radii"] is None) == (second["radii"] is None)
    return np.max(np.abs(np.subtract(first["points"], second["points"]))) if radii else np.inf


@pytest.mark.slow
def test_every_model_is_the_same_on_the_gpu(probe):
    gpu, plain = both(probe, {**ON_GPU, "plateau": PLATEAU, "noise": BROWNIAN, "crowd": CROWD})
    assert {result["backend"] for result in gpu.values()} == {"webgl2"}
    assert {result["backend"] for result in plain.values()} == {"js"}
    apart = {name: distance(gpu[name], plain[name]) for name in gpu}
    assert {name: value for name, value in apart.items() if not value < 1e-6} == {}


def test_the_rescaled_frame_says_that_it_runs_in_javascript(probe):
    case = FLOWS["rescaled-2d"]
    assert probe([{"spec": case, "backend": "webgl2", "steps": 1}])[0]["backend"] == "js"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SOLVED[2:])) for name in SOLVED]
)
def test_the_gpu_follows_the_engine(probe, name):
    case = FLOWS[name]
    ready = Job(RunSpec.model_validate({**case, "save": {"every": 1.0, "observe": []}}))
    found = probe([{"spec": case, "backend": "webgl2", "steps": steps_of(case)}])[0]
    run = flock.solve(
        ready.model, ready.x0, t1=1.0, dt=case["solve"]["dt"], save=flock.Save(every=1.0)
    )
    expected = np.asarray(run.arrays["final_points"]).ravel()
    np.testing.assert_allclose(found["points"], expected, rtol=0, atol=1e-5)


def test_clusters_creep_on_the_gpu_as_they_should(probe):
    """The slow motion of a plateau keeps its digits: tokens are float64 around the shader's sums."""
    gpu, plain = both(probe, {"plateau": PLATEAU})
    first = np.reshape(gpu["plateau"]["points"], (16, 2))
    second = np.reshape(plain["plateau"]["points"], (16, 2))
    start = Job(
        RunSpec.model_validate({**PLATEAU, "save": {"every": 1.0, "observe": []}})
    ).x0.points
    angle = np.arctan2(*np.asarray(start)[:8].mean(0)[::-1])
    moved = [np.arctan2(*x[:8].mean(0)[::-1]) - angle for x in (first, second)]
    assert moved[1] > 1e-6
    assert moved[0] == pytest.approx(moved[1], rel=1e-3)


def test_a_lost_context_goes_on_in_javascript(probe, tab):
    case = FLOWS["sa-3d"]
    lost = tab.evaluate(
        """([spec, steps]) => {
          const between = () =>
            window.contexts.at(-1).getExtension("WEBGL_lose_context").loseContext();
          return page.testing.runProbe([{ spec, backend: "webgl2", steps, between }])[0];
        }""",
        [case, steps_of(case)],
    )
    plain = probe([{"spec": case, "backend": "js", "steps": steps_of(case)}])[0]
    assert lost["backend"] == "js"
    assert distance(lost, plain) < 1e-6


def test_auto_takes_javascript_for_few_tokens(probe):
    assert probe([{"spec": FLOWS["sa-3d"], "backend": "auto", "steps": 1}])[0]["backend"] == "js"
