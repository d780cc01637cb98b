"""The page's description of a run: its TOML is the engine's, its checks refuse what the engine would."""

import copy
import functools
import math
import random
import tomllib

import pytest
from browser_code import ask
from physics_cases import FLOWS, LAYERS, STARTS, spec, sphere

from tokenflock.lab.files import identity
from tokenflock.lab.job import Job
from tokenflock.lab.spec import RunSpec


def start_model(case):
    """Hardmax attention is at home on the sphere and in R^d."""
    return (
        {"name": "HardmaxFlow"} if case["tokens"]["law"] in ("box", "gaussian") else case["model"]
    )


WRITTEN = {
    **FLOWS,
    **{name: LAYERS[name] for name in ("sa-layers-2d", "hardmax-b-flat-layers-3d")},
    **{name: {**case, "model": start_model(case)} for name, case in STARTS.items()},
    "noise": spec(
        {"name": "SA", "beta": 4, "noise": {"kind": "brownian", "temperature": 0.1}}, sphere(2)
    ),
    "long": spec({"name": "SA", "beta": 1 / 3}, sphere(3), t1=3e4, dt=0.1),
    "quotes": {**FLOWS["sa-2d"], "title": 'a "b" \\ c', "says": "two\nlines, tab\t and \u00e9"},
    "whole-numbers": spec({"name": "SA", "beta": 2, "weights": {"V": -1}}, sphere(2), t1=2),
}

# What a hostile or broken link may hold, and a word of the sentence that must answer it.
BROKEN = {
    "nothing": (lambda s: None, "object"),
    "a list": (lambda s: [], "object"),
    "no model": (lambda s: {**s, "model": None}, "tables"),
    "an unknown model": (lambda s: put(s, "model.name", "GPT"), "model.name"),
    "text for beta": (lambda s: put(s, "model.beta", "4"), "beta"),
    "negative beta": (lambda s: put(s, "model.beta", -1), "beta"),
    "no beta": (lambda s: put(s, "model.beta", None), "beta"),
    "NaN": (lambda s: put(s, "model.beta", math.nan), "beta"),
    "an extra field": (lambda s: put(s, "model.heads", 4), "heads"),
    "prototype": (lambda s: put(s, "model.name", "__proto__"), "model.name"),
    "too many tokens": (lambda s: put(s, "tokens.n", 5000), "tokens.n"),
    "half a token": (lambda s: put(s, "tokens.n", 3.5), "whole"),
    "four dimensions": (lambda s: put(s, "tokens.d", 4), "tokens.d"),
    "a huge seed": (lambda s: put(s, "tokens.seed", 2**60), "seed"),
    "zero steps": (lambda s: put(s, "solve.dt", 0), "dt"),
    "a wild step": (lambda s: put(s, "solve.dt", 0.45), "rates"),
    "a step that is too long": (lambda s: put(s, "solve.t1", 1e-5), "at least one"),
    "half a layer": (
        lambda s: {**s, "solve": {"t1": 3.25, "method": "layers", "step": 0.5, "seed": 0}},
        "whole number of layers",
    ),
    "both steps": (lambda s: put(s, "solve.step", 0.1), "step"),
    "R^d": (lambda s: {**s, "tokens": {**STARTS["box-2d"]["tokens"]}}, "sphere"),
    "a matrix of another size": (lambda s: put(s, "model.weights", {"V": [[1.0]]}), "rows"),
    "an unknown law": (
        lambda s: put(s, "model.weights", {"V": {"law": "Cauchy", "scale": 1.0}}),
        "law",
    ),
    "a law beside a matrix": (
        lambda s: put(
            s,
            "model.weights",
            {"V": {"law": "GOE", "scale": 1.0}, "B": [[1.0, 0.0], [0.0, 1.0]]},
        ),
        "law",
    ),
    "tau without mix": (
        lambda s: put(s, "model.normalisation", {"scheme": "pre", "tau": 1.0}),
        "tau",
    ),
    "mix without tau": (lambda s: put(s, "model.normalisation", {"scheme": "mix"}), "tau"),
    "a wide perceptron": (
        lambda s: put(
            s, "model.plus", {**FLOWS["perceptron-relu-2d"]["model"]["plus"], "width": 1e6}
        ),
        "width",
    ),
    "points off the sphere": (
        lambda s: {**s, "tokens": {"law": "points", "d": 2, "points": [[1.0, 1.0], [1.0, 0.0]]}},
        "length 1",
    ),
    "ragged points": (
        lambda s: {**s, "tokens": {"law": "points", "d": 2, "points": [[1.0], [1.0, 0.0]]}},
        "rows",
    ),
    "equiangular in a crowd": (
        lambda s: {**s, "tokens": {"law": "equiangular", "d": 2, "n": 5, "correlation": 0.0}},
        "n <= d",
    ),
    "arcs on the sphere": (
        lambda s: {**s, "tokens": {**STARTS["arcs-2d"]["tokens"], "d": 3}},
        "circle",
    ),
    "a rescaled run that overflows": (
        lambda s: put(put(FLOWS["rescaled-2d"], "solve.t1", 400.0), "solve.seed", 1),
        "t1",
    ),
    "perspective at beta = 50": (
        lambda s: {**s, "model": {"name": "USA", "beta": 50.0, "convention": "perspective"}},
        "beta",
    ),
}

PERCEPTRON = {"width": 8, "seed": 1, "scale": 1.0, "gradient": True, "activation": "relu"}
EDITS = [
    *(["withModel", [name]] for name in ("SA", "USA", "CausalSA", "HardmaxFlow", "RescaledSA")),
    *(["withBeta", [beta]] for beta in (0, 1.5, 30, 1e9, None)),
    *(["withCount", [n]] for n in (1, 7, 50, 1e6)),
    *(["withDimension", [d]] for d in (2, 3)),
    ["withSeed", [2**53 - 1]],
    ["withSeed", [12]],
    *(
        ["withStart", [STARTS[n]["tokens"]]]
        for n in ("arcs-2d", "mixture-3d", "box-2d", "points-3d")
    ),
    ["withStart", [STARTS["perturbed-2d"]["tokens"]]],
    *(["withValues", [kind]] for kind in ("identity", "minus", "diagonal", "random")),
    ["withValues", ["random", {"law": "Ginibre", "scale": 2.0, "seed": 9}]],
    ["withPerceptron", [PERCEPTRON]],
    ["withPerceptron", [None]],
    ["withNoise", [0.3]],
    ["withNoise", [None]],
    *(["withStep", [length]] for length in (1e-3, 0.1, 100)),
    *(["withEnd", [t1]] for t1 in (3.25, 1e6)),
    *(["withMethod", [method]] for method in ("fixed", "layers")),
    *(["withNormalisation", [{"scheme": s}]] for s in ("pre", "mix", "ngpt", "sqrt")),
    ["withNormalisation", [None]],
    ["withConvention", ["perspective"]],
    ["withConvention", ["metastability"]],
]


def put(given, path, value):
    """A copy with one field changed; None takes it away."""
    changed = copy.deepcopy(given)
    table, field = path.split(".")
    if value is None:
        del changed[table][field]
    else:
        changed[table][field] = value
    return changed


WALKS = range(6)
# Long enough to overflow a rescaled frame, and to make an endless run of short steps.
LONG = put(FLOWS["sa-2d"], "solve.t1", 1000.0)


def walk(seed):
    """Thirty edits in random order."""
    return random.Random(seed).choices(EDITS, k=30)


@functools.cache
def answers():
    requests = {("toml", name): {"do": "toml", "spec": case} for name, case in WRITTEN.items()}
    for name, case in WRITTEN.items():
        requests["good", name] = {"do": "validate", "value": case}
    for name, (change, _) in BROKEN.items():
        # JSON has no NaN; the page meets null in its place.
        value = change(spec({"name": "SA", "beta": 4.0}, sphere(2)))
        requests["bad", name] = {"do": "validate", "value": without_nan(value)}
    for seed in WALKS:
        requests["walk", seed] = {"do": "edit", "spec": LONG, "changes": walk(seed)}
    return ask(requests)


def without_nan(value):
    if isinstance(value, dict):
        return {name: without_nan(entry) for name, entry in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def parsed(text):
    return RunSpec.model_validate(tomllib.loads(text))


@pytest.mark.parametrize("name", WRITTEN)
def test_toml_is_the_same_run(name):
    case, found = WRITTEN[name], parsed(answers()["toml", name])
    direct = RunSpec.model_validate({**case, "save": found.save.model_dump(exclude_none=True)})
    shown = {"max_steps", "says", "title"}
    assert found.model == direct.model
    assert found.tokens == direct.tokens
    assert found.solve.model_dump(exclude=shown) == direct.solve.model_dump(exclude=shown)
    assert (found.title, found.says) == (case["title"], case["says"])
    if name != "long":
        assert identity(found) == identity(direct)
    assert Job(found).times[-1] == pytest.approx(case["solve"]["t1"])
    assert answers()["good", name] == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_specs_are_answered_with_a_sentence(name):
    sentences = answers()["bad", name]
    assert sentences
    assert any(BROKEN[name][1] in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 1)) for seed in WALKS]
)
def test_any_order_of_edits_leaves_a_run_that_the_engine_accepts(seed):
    for edit, found in zip(walk(seed), answers()["walk", seed], strict=True):
        assert found["wrong"] == [], (edit, found["spec"])
        found_spec = parsed(found["toml"])
        assert found_spec.model.name == found["spec"]["model"]["name"]
        Job(found_spec)
