"""Runs of a [density] from a spec: the same numbers as solve, resumed, and refused with a sentence."""

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.lab.density import build_density
from tokenflock.lab.files import parse, render
from tokenflock.lab.job import Job
from tokenflock.lab.run import run_spec
from tokenflock.models import USA
from tokenflock.observables import entropy

SPEC = """
title = "small"
[model]
name = "USA"
beta = 2.0
[density]
on = "fourier"
modes = 24
law = { name = "cosine", amplitude = 0.1, mode = 2, phase = 0.3 }
[solve]
t1 = 0.4
rtol = 1e-9
atol = 1e-12
[save]
every = 0.1
observe = ["entropy"]
"""


def silent(done, t, values):
    """A report that says nothing."""


@pytest.fixture
def few_parts(monkeypatch):
    monkeypatch.setattr("tokenflock.lab.parts.PARTS", 4)


def test_a_run_from_a_file_is_what_solve_gives(tmp_path, few_parts):
    spec = parse(SPEC)
    run = run_spec(spec, tmp_path / "run", False, False, silent)
    direct = flock.solve(
        USA(2.0),
        build_density(spec.density),
        0.4,
        rtol=1e-9,
        atol=1e-12,
        save=flock.Save(every=0.1, observe=[entropy], states=True),
    )
    assert np.allclose(run.time, direct.time)
    assert np.max(np.abs(run.array("entropy") - direct.array("entropy"))) < 1e-9
    assert np.max(np.abs(run.final.state - direct.final.state)) < 1e-8
    # The work is carried over the cuts, so the identity holds for the whole run.
    assert run.health["dissipation_defect"] < 1e-7
    stored = flock.open(tmp_path / "run")
    assert np.array_equal(np.asarray(stored.final.state), np.asarray(run.final.state))
    assert stored.is_density
    with pytest.raises(InputError, match="only tokens are animated"):
        stored.animate(tmp_path / "film.mp4")


def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path, few_parts, monkeypatch):
    spec = parse(SPEC)
    whole = run_spec(spec, tmp_path / "whole", False, False, silent)
    calls = []

    def interrupt(done, t, values):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_spec(spec, tmp_path / "cut", False, False, interrupt)
    halfway = flock.open(tmp_path / "cut")
    assert halfway.outcome == "interrupted"
    assert 0 < halfway.reached < 0.4
    again = run_spec(spec, tmp_path / "cut", True, False, silent)
    assert np.array_equal(np.asarray(again.states), np.asarray(whole.states))
    assert again.health == whole.health


def test_what_is_printed_reads_back():
    spec = parse(SPEC)
    assert parse(render(spec)) == spec


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["density.on=fourrier"], "there is no density.on 'fourrier'; did you mean 'fourier'"),
        (["density.law.name=cosin"], "there is no density.law.name 'cosin'; did you mean 'cosine'"),
        (["density.modez=3"], "unknown key density.modez; did you mean 'modes'"),
        (
            ["density.law.amplitud=0.2"],
            "unknown key density.law.amplitud; did you mean 'amplitude'",
        ),
        (["modes=0"], "density.modes must be at least 1, got 0"),
        (["tokens.n=8"], r"has \[tokens\] and \[density\]"),
        (["save.observe=[64]"], "save.observe.0 must be a text in quotes or a table, got 64"),
        (["save.observe=[2024-01-01]"], "save.observe.0 must be a text in quotes or a table"),
        (["save.observe=[['energy']]"], "save.observe.0 must be a text in quotes or a table"),
        (["save.observe=[{name='peaks', above={}}]"], "save.observe.0.above must be"),
    ],
)
def test_wrong_tables_get_a_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        parse(SPEC, change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["amplitude=3.0"], "the amplitude must lie in"),
        (["density={on='zonal', d=8, degree=20, law={name='cosine', amplitude=0.1}}"], "circle"),
    ],
)
def test_wrong_laws_get_a_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        Job(parse(SPEC, change))


@pytest.mark.parametrize(
    "table",
    [
        "{on='quantiles', n=40, law={name='cosine', amplitude=0.5}}",
        "{on='layered', positions=6, modes=8, law={name='cosine', amplitude=0.5}}",
        "{on='zonal', d=8, degree=20, law={name='zonal_mode', amplitude=0.1, degree=2}}",
        "{on='harmonics', degree=8, law={name='von_mises', concentration=1.0, direction=[0.0, 1.0, 1.0]}}",
    ],
)
def test_every_discretisation_has_a_table(table):
    spec = parse(SPEC, [f"density={table}"])
    density = build_density(spec.density)
    assert float(density.mass) == pytest.approx(1.0, abs=1e-12)
    assert parse(render(spec)) == spec


def test_gaussian_measures_have_a_table():
    spec = parse(
        SPEC.replace("USA", "SA"),
        [
            "density={on='moments', mean=[1.0, 0.0], covariance=[[1.0, 0.3], [0.3, 0.5]]}",
            "observe=[]",
        ],
    )
    assert build_density(spec.density).space.d == 2
