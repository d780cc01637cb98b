"""Compiled programs: none calls back to Python, few are needed, and JAX is set up at the import."""

import subprocess
import sys

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.integrate.api import prepare
from tokenflock.integrate.core import integrate
from tokenflock.integrate.numerics import Accuracy
from tokenflock.integrate.save import FEWEST_ROWS, filled, filled_jumps
from tokenflock.integrate.unchecked import unchecked
from tokenflock.states import as_state

START = flock.uniform(flock.Sphere(2), n=3, seed=1)
ADAPTIVE = {"rtol": 1e-6, "atol": 1e-8}
WAYS = {
    "adaptive": (flock.SA(1.0), ADAPTIVE),
    "stiff": (flock.SA(1.0), {**ADAPTIVE, "method": flock.Stiff()}),
    "layers": (flock.SA(1.0), {"method": flock.Layers(0.5)}),
    "noise": (flock.NoisyUSA(1.0, temperature=0.1), {"dt": 0.5}),
    "stop": (flock.SA(1.0), {**ADAPTIVE, "stop": flock.at_diameter(0.1)}),
    "merge": (flock.SA(1.0), {**ADAPTIVE, "merge": flock.Merge(1e-3), "clock": flock.LogTime()}),
    "jumps": (
        flock.SA(
            1.0,
            flock.random_weights.RandomWeights(2, 0, V=flock.random_weights.Ginibre(), period=0.5),
        ),
        {"dt": 0.5, "method": diffrax.Heun()},
    ),
}


def program(model, start=START, merge=None, **given):
    accuracy = Accuracy(
        **{name: given.pop(name, None) for name in ("rtol", "atol", "dt", "method")}
    )
    state = as_state(start).with_options(merge, None)
    save = flock.Save(every=0.5)
    plan, state, times = prepare(
        model, state, 1.0, accuracy._replace(max_steps=64), save=save, **given
    )
    return integrate.lower(plan, plan.start(state), jnp.asarray(times)).as_text()


@pytest.mark.parametrize("way", WAYS)
def test_no_program_calls_back_to_python(way):
    model, given = WAYS[way]
    assert "callback" not in program(model, **given)


def test_a_bar_does():
    """The control: what the tests above look for is seen where there is one."""
    assert "callback" in program(flock.SA(1.0), **ADAPTIVE, progress=True)


def test_the_program_of_a_density_does_not_call_back_either():
    start = flock.Density.from_law(
        flock.meanfield.Fourier(modes=8), flock.laws.cosine(amplitude=0.2, mode=1)
    )
    assert "callback" not in program(flock.NoisyUSA(1.0, temperature=0.1), start, **ADAPTIVE)


def test_derivatives_do_not_call_back_either():
    def f(beta):
        return jnp.sum(flock.solve(flock.SA(beta), START, 1.0, dt=0.5, max_steps=4).states[-1])

    assert "callback" not in jax.jit(jax.grad(f)).lower(1.0).as_text()


@jax.jit
def strict(x):
    return eqx.error_if(x, jnp.any(x > 100.0), "too large")


def test_checks_of_others_are_heard_inside_a_solve_and_after():
    """Only those of the solver are left out; a trace made inside is what JAX uses outside, too."""

    def stop(snapshot):
        return 5.0 - strict(snapshot.measure.points)[0, 0]

    run = flock.solve(flock.SA(1.0), START, 0.5, dt=0.5, stop=flock.when(stop))
    assert run.outcome == "finished"
    with pytest.raises(Exception, match="too large"):
        jax.block_until_ready(strict(jnp.full(START.points.shape, 1e3)))
    late = flock.when(lambda s: eqx.error_if(5.0 - s.t, s.t > 0.2, "stop says no"))
    with pytest.raises(Exception, match="stop says no"):
        flock.solve(flock.SA(1.0), START, 0.5, dt=0.5, stop=late)


def test_an_observable_may_check_its_tokens():
    def first(s):
        return eqx.error_if(s.measure.points[0, 0], s.measure.points[0, 0] > 100.0, "never true")

    run = flock.solve(flock.SA(1.0), START, 0.5, dt=0.5, save=flock.Save(observe=[first]))
    assert run["first"][0] == START.points[0, 0]


def test_unchecked_is_of_the_solver_alone():
    def f(x):
        return eqx.error_if(x, x < 0, "x is negative")

    with unchecked(), pytest.raises(RuntimeError, match="x is negative"):
        eqx.filter_jit(f)(jnp.asarray(-1.0))


@pytest.fixture
def compiled():
    """Names of the programs compiled while a test runs, small ones included."""
    names = []

    def listen(event, duration, **details):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(details.get("fun_name", "?"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("samples", [None, 2])
def test_another_time_number_of_saves_beta_or_tolerance_compiles_nothing(compiled, samples):
    x0 = flock.uniform(flock.Sphere(2), n=3, seed=1, samples=samples)

    def run(beta, t1, every, rtol):
        save = flock.Save(
            every=every, states=True, observe=[flock.energy, flock.clusters(angle=0.1)]
        )
        return flock.solve(flock.SA(beta), x0, t1, rtol=rtol, atol=1e-8, save=save)

    run(1.0, 1.0, 0.1, 1e-6)
    assert any("integrate" in name for name in compiled)
    compiled.clear()
    again = [run(1.0, 2.0, 0.2, 1e-6), run(3.0, 1.0, 0.08, 1e-6), run(1.0, 0.7, 0.05, 1e-4)]
    assert compiled == []
    assert [len(each.time) for each in again] == [11, 14, 15]
    assert all(np.all(np.isfinite(each.array("states"))) for each in again)


def test_more_switches_of_the_weights_compile_nothing(compiled):
    weights = flock.random_weights.RandomWeights(2, 0, V=flock.random_weights.Ginibre(), period=0.1)

    def run(t1):
        return flock.solve(flock.SA(1.0, weights), START, t1, method=flock.Layers(0.1))

    run(0.6)
    compiled.clear()
    assert run(0.9).outcome == "finished"
    assert compiled == []


def test_rows_are_filled_where_that_is_cheap_and_only_there():
    times = np.linspace(0.0, 1.0, 21)
    assert len(filled(times, 8.0, batched=False)) == 32
    assert len(filled(times[:2], 8.0, batched=False)) == FEWEST_ROWS
    assert len(filled(times[:2], 8.0, batched=True)) == 2
    assert len(filled(times, 1e8, batched=False)) == 21
    assert np.all(np.isinf(filled(times, 8.0, batched=True)[21:]))
    assert filled_jumps([], 4.0).size == 0
    np.testing.assert_array_equal(filled_jumps([1.0, 2.0, 3.0], 4.0), [1.0, 2.0, 3.0, np.inf])


PRECISION = """
import sys
{first}
import tokenflock
loaded = "jax" in sys.modules
import jax.numpy as jnp
print(loaded, jnp.ones(3).dtype, sys.modules["jax"].config.jax_default_matmul_precision)
tokenflock.SA
print(jnp.ones(3).dtype)
"""


ASKED = "import tokenflock, importlib.util; importlib.util.find_spec('jax')"


@pytest.mark.parametrize(
    ("first", "loaded"), [("", "False"), ("import jax", "True"), (ASKED, "False")]
)
def test_float64_from_the_import_on(first, loaded):
    script = PRECISION.format(first=first)
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == [loaded, "float64", "highest", "float64"]


@pytest.mark.slow
def test_a_second_process_finds_the_solver_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_CACHE", str(tmp_path))
    script = (
        "import tokenflock as flock\n"
        "from tokenflock.cli.doctor import SOLVER, listening\n"
        "x0 = flock.uniform(flock.Sphere(3), n=8, seed=0)\n"
        "with listening() as heard:\n"
        "    flock.solve(flock.SA(1.0), x0, t1=1.0, rtol=1e-6, atol=1e-8)\n"
        "print([found for name, found in heard if name == SOLVER])\n"
    )

    def found():
        answer = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        return answer.stdout.strip()

    assert [found(), found()] == ["[False]", "[True]"]
