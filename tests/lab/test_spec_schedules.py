"""Numbers that change with depth in a spec: the same model as in Python, back from disk, and refusals."""

import typing

import equinox as eqx
import numpy as np
import pytest
from small_runs import same, silent

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.lab.catalogue import example_text
from tokenflock.lab.files import identity, parse, render
from tokenflock.lab.job import Job
from tokenflock.lab.run import run_spec
from tokenflock.lab.spec import MODEL_SPECS, build_model
from tokenflock.models import MODELS
from tokenflock.schedule import Piecewise, Schedule

TABLE = "{times=[1.0, 2.0], values=[1.0, 0.25, 0.5]}"
VALUES = Piecewise([1.0, 2.0], [1.0, 0.25, 0.5])
ATTENTION = flock.Attention(beta=9.0)
NEURONS = [flock.Perceptron.random(3, 4, seed=seed).neurons for seed in (1, 2)]
MATRICES = "{inner=[[1.0, 2.0, 3.0]], outer=[[1.0], [0.0], [2.0]], activation='gelu'}"
GELU = flock.Perceptron([[1.0, 2.0, 3.0]], [[1.0], [0.0], [2.0]])

# (example, setting, the same model in Python)
WRITTEN = {
    "beta": ("sphere", f"beta={TABLE}", flock.SA(VALUES)),
    "temperature": ("noise", f"temperature={TABLE}", flock.NoisyUSA(2.0, VALUES)),
    "scale": ("stochastic", f"scale={TABLE}", flock.StochasticSA(1.0, VALUES)),
    "alpha": (
        "sphere",
        f"model.normalisation={{scheme='ngpt', alpha={TABLE}}}",
        flock.SA(9.0, normalisation=flock.normalisation.NGPT(VALUES)),
    ),
    "brownian": (
        "sphere",
        f"model.noise={{kind='brownian', temperature={TABLE}}}",
        flock.SA(9.0, noise=flock.Brownian(VALUES)),
    ),
    "common": (
        "sphere",
        f"model.noise={{kind='common', scale={TABLE}, beta={TABLE}}}",
        flock.SA(9.0, noise=flock.noise.CommonNoise(flock.Attention(beta=VALUES), VALUES)),
    ),
    "perceptron": (
        "sphere",
        "model.plus={times=[0.7], pieces=[{width=4, seed=1}, {width=4, seed=2}]}",
        flock.SA(9.0, plus=flock.Perceptron(weights=Piecewise([0.7], NEURONS))),
    ),
    "matrices": (
        "sphere",
        f"model.plus={{times=[0.7], pieces=[{MATRICES}, {MATRICES}]}}",
        flock.SA(
            9.0,
            plus=flock.Perceptron(
                weights=Piecewise([0.7], [GELU.neurons, GELU.neurons]),
                activation=flock.terms.perceptron.GELU,
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_is_the_schedule_of_python(name):
    example, setting, model = WRITTEN[name]
    spec = parse(example_text(example), [setting])
    built = build_model(spec.model, 3)
    assert eqx.tree_equal(built, model)
    assert built.jumps(100.0) == model.jumps(100.0) != []


@pytest.mark.parametrize("name", WRITTEN)
def test_the_printed_spec_is_the_same_spec(name):
    example, setting, _ = WRITTEN[name]
    spec = parse(example_text(example), [setting])
    again = parse(render(spec))
    assert again == spec
    assert identity(again) == identity(spec) != identity(parse(example_text(example)))


def test_every_number_that_python_takes_as_a_schedule_may_be_a_table():
    table = {"times": [1.0], "values": [1.0, 2.0]}
    tried = []
    for name, model in MODELS.items():
        hints = typing.get_type_hints(model)
        for parameter, hint in hints.items():
            # Weights are schedules alone and have pieces of their own.
            numbers = set(typing.get_args(hint)) - {type(None)}
            if Schedule not in numbers or numbers == {Schedule}:
                continue
            rest = {"beta": 1.0, "temperature": 0.1, "scale": 0.1}
            given = {k: v for k, v in rest.items() if k in hints} | {parameter: table}
            spec = MODEL_SPECS[name].model_validate({"name": name, **given})
            assert build_model(spec, 2).jumps(2.0) == [1.0]
            tried.append((name, parameter))
    assert {("SA", "beta"), ("NoisyUSA", "temperature"), ("StochasticSA", "scale")} <= {*tried}
    assert len(tried) >= 12


ANNEALED = """
title = "annealed"
[model]
name = "SA"
beta = { times = [0.7, 1.1], values = [0.5, 4.0, 1.0] }
[tokens]
law = "uniform"
d = 3
n = 5
seed = 4
[solve]
t1 = 1.5
rtol = 1e-10
atol = 1e-12
[save]
every = 0.5
observe = ["energy"]
"""


def test_a_run_by_a_spec_is_the_run_of_python_and_comes_back_from_disk(tmp_path):
    spec = parse(ANNEALED)
    run = run_spec(spec, tmp_path / "run", False, False, silent)
    model = flock.SA(Piecewise([0.7, 1.1], [0.5, 4.0, 1.0]))
    start = flock.uniform(flock.Sphere(3), n=5, seed=4)
    exact = flock.solve(model, start, 1.5, rtol=1e-10, atol=1e-12)
    constant = flock.solve(flock.SA(4.0), start, 1.5, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.states[-1], exact.states[-1], rtol=0, atol=1e-9)
    assert np.abs(run.states[-1] - constant.states[-1]).max() > 1e-3
    opened = flock.open(tmp_path / "run")
    assert parse(render(spec)) == spec
    assert opened.attributes["spec"]["model"]["beta"] == {
        "times": [0.7, 1.1],
        "values": [0.5, 4.0, 1.0],
    }
    np.testing.assert_allclose(opened.observe(flock.energy), run.array("energy"), rtol=1e-12)
    same(run_spec(spec, tmp_path / "run", True, False, silent), run)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("model.beta.values.1=7", lambda beta: beta.values == [0.5, 7.0, 1.0]),
        ("beta.values.1=7", lambda beta: beta.values == [0.5, 7.0, 1.0]),
        ("beta.times.0=0.2", lambda beta: beta.times == [0.2, 1.1]),
        ("beta.values=[1.0, 2.0, 3.0]", lambda beta: beta.values == [1.0, 2.0, 3.0]),
    ],
)
def test_one_value_is_set_by_its_place(path, read):
    assert read(parse(ANNEALED, [path]).model.beta)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("beta={times=[1.0], values=[1.0]}", "model.beta.values: list should have at least 2"),
        ("beta={times=[], values=[1.0, 2.0]}", "model.beta.times: list should have at least 1"),
        ("beta={times=[1.0, 2.0], values=[1.0, 4.0]}", "model.beta: 2 switching times need 3"),
        ("beta={times=[2.0, 1.0], values=[1.0, 4.0, 9.0]}", "model.beta: switching times must be"),
        ("beta={times=[0.0], values=[1.0, 4.0]}", "positive and increasing, got [0.0]"),
        ("beta={times=[1.0], value=[1.0, 4.0]}", "unknown key model.beta.value; did you mean"),
        ("beta={times=[1.0], value=[1.0, 4.0]}", "model.beta.values is missing"),
        ("beta={times=[1.0], values=[1.0, true]}", "model.beta.values.1 must be a number, got"),
        ("beta={times=[nan], values=[1.0, 2.0]}", "model.beta.times.0 must be a finite number"),
        ("beta={times=[1.0], values=[1.0, -2.0]}", "beta must be finite and >= 0, got -2.0"),
        ("beta={times=[1.0], values=[[1.0], [2.0]]}", "model.beta.values.0 must be a number"),
        ("beta={}", "model.beta.times is missing"),
        ("model.beta.values.3=1.0", "values is a list of 3, counted from 0, so it has no 3"),
        ("model.beta.values.last=1.0", "so it has no last"),
        ("model.beta.values.1.x=1.0", "1 is not a table, so it has no x"),
        ("beta.values." + "9" * 5000 + "=1.0", "so it has no 999"),
        ("model.noise={kind='brownian', temperature=-1.0}", "temperature must be at least 0"),
        (
            "model.noise={kind='brownian', temperature={times=[1.0], values=[1.0, -1.0]}}",
            "temperature must be >= 0, got -1.0",
        ),
        (
            "model.normalisation={scheme='mix', tau={times=[1.0], values=[1.0, 2.0]}}",
            "model.normalisation.tau must be a number",
        ),
        ("model.plus={times=[1.0]}", "times are switching times: give pieces"),
        ("model.plus={times=[1.0], pieces=[]}", "1 switching times need 2 values, got 0"),
        ("model.plus={width=4, times=[1.0], pieces=[{}, {}]}", "plus.width belongs to each piece"),
        ("model.plus={times=[1.0], pieces=[{}, {width=4}]}", "same arrays with the same shapes"),
        ("model.plus={times=[1.0], pieces=[{}, {period=0.5}]}", "with constant weights"),
        ("model.plus={times=[1.0], pieces=[{}, {activation='gelu'}]}", "need one activation"),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_key(setting, words):
    with pytest.raises(InputError) as caught:
        Job(parse(ANNEALED, [setting]))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
