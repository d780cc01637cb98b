"""One physics: the page's simulation in JavaScript against the engine, from the same spec and seed."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from browser_code import ask
from physics_cases import FLOWS, LAYERS, STARTS, spec, sphere

import tokenflock as flock
from tokenflock.dynamics import Particles
from tokenflock.integrate.steppers import Context, drift
from tokenflock.integrate.switches import FieldTimes
from tokenflock.lab.job import Job
from tokenflock.lab.spec import RunSpec
from tokenflock.reduce import Dense
from tokenflock.states.stepping import NoiseTerm, Retracted

SEEDS = [0, 1, 2**32 + 5, 2**53 - 1]
STEPS = 10
# These also run through the engine's own solver, steps and all.
SOLVED = [
    "sa-2d",
    "usa-perspective-3d",
    "causal-alibi-2d",
    "pre-2d",
]
NOISY = {
    f"noisy-{name}-{d}d": spec(
        {**model, "beta": 2.0, "noise": {"kind": "brownian", "temperature": 0.3}},
        sphere(d),
        **solve,
    )
    for d in (2, 3)
    for name, model, solve in (
        ("sa", {"name": "SA"}, {}),
        ("usa", {"name": "USA", "convention": "metastability"}, {"dt": 0.1}),
        ("pre", {"name": "SA", "normalisation": {"scheme": "pre"}}, {}),
    )
}
NOISY_LAYERS = {
    name: {**case, "solve": {"t1": 1.0, "method": "layers", "step": 0.1, "seed": 5}}
    for name, case in NOISY.items()
}


def increments(name):
    """One Brownian increment per token, for a case of NOISY."""
    tokens = NOISY[name]["tokens"]
    return 0.2 * np.random.default_rng(len(name)).normal(size=(tokens["n"], tokens["d"]))


@functools.cache
def answers():
    """What the page computes for every test of this file, in one run of Node."""
    requests = {("random", seed): {"do": "random", "seed": seed, "size": 30} for seed in SEEDS}
    requests["exp"] = {"do": "exp", "values": EXPONENTS}
    for name, case in STARTS.items():
        requests["start", name] = {"do": "start", "spec": case}
    for name, case in {**FLOWS, **LAYERS}.items():
        requests["model", name] = {"do": "model", "spec": case}
        requests["run", name] = {"do": "run", "spec": case, "steps": steps_of(case)}
    for name in ("sa-2d", "pre-3d", "sa-goe-3d"):
        requests["detour", name] = {"do": "detour", "spec": FLOWS[name], "steps": 6}
        requests["short", name] = {"do": "run", "spec": FLOWS[name], "steps": 6}
    for kind, cases in (("kick", NOISY), ("kick-layer", NOISY_LAYERS)):
        for name, case in cases.items():
            given = increments(name).ravel().tolist()
            requests[kind, name] = {"do": "run", "spec": case, "steps": 1, "increments": given}
    for name in ("sa-2d", "causal-3d", "hardmax-flat-layers-3d"):
        case = {**FLOWS, **LAYERS}[name]
        requests["hold", name] = {"do": "hold", "spec": case, "steps": 5, "index": 4}
    requests["noise"] = {"do": "run", "spec": BROWNIAN, "steps": 25}
    return ask(requests)


# Free tokens: attention at beta = 0 on many uniform tokens is weak beside the noise.
BROWNIAN = spec(
    {
        "name": "USA",
        "beta": 0.0,
        "convention": "metastability",
        "noise": {"kind": "brownian", "temperature": 0.5},
    },
    {"law": "cap", "d": 3, "n": 1024, "seed": 1, "radius": 0.001},
    dt=0.002,
)
EXPONENTS = [0.0, *np.linspace(-720, 720, 4001).tolist()]


def steps_of(case):
    solve = case["solve"]
    return round(solve["t1"] / (solve["dt"] if solve["method"] == "fixed" else solve["step"]))


def rows(values, like):
    return np.asarray(values).reshape(np.shape(like))


@functools.cache
def job(name):
    case = {**FLOWS, **LAYERS, **STARTS, **NOISY}[name]
    save = {"every": case["solve"]["t1"], "observe": []}
    return Job(RunSpec.model_validate({**case, "save": save}))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_numbers_are_the_engines(seed):
    found, key = answers()["random", seed], jr.key(seed)
    assert found["uniform"] == jr.uniform(key, (30,), dtype=jnp.float64).tolist()
    normal = jr.normal(key, (30,), dtype=jnp.float64)
    np.testing.assert_allclose(found["normal"], normal, rtol=2e-14, atol=1e-300)
    assert found["split"] == jr.key_data(jr.split(key, 3)).tolist()
    assert found["folded"] == jr.key_data(jr.fold_in(key, 86)).tolist()


def test_quick_exponential_has_all_digits():
    with np.errstate(over="ignore"):
        exact = np.exp(np.array(EXPONENTS))
    found = np.array([np.inf if value is None else float(value) for value in answers()["exp"]])
    np.testing.assert_allclose(found, exact, rtol=5e-16)


@pytest.mark.parametrize("name", STARTS)
def test_tokens_start_where_the_engine_starts_them(name):
    expected = job(name).x0.points
    found = answers()["start", name]
    np.testing.assert_allclose(rows(found["points"], expected), expected, rtol=0, atol=1e-14)


def test_gaussian_norms_become_radii():
    case = {**FLOWS["pre-3d"], "tokens": STARTS["gaussian-3d"]["tokens"]}
    tokens = Job(RunSpec.model_validate({**case, "save": {"every": 1.0, "observe": []}})).x0
    found = ask({"start": {"do": "start", "spec": case}})["start"]
    np.testing.assert_allclose(found["radii"], tokens.radii, rtol=1e-14)


@pytest.mark.parametrize("name", [n for n, c in FLOWS.items() if "weights" in c["model"]])
def test_matrices_are_the_engines(name):
    found, weights = answers()["model", name], job(name).model.attentions()[0].weights.at(0.0)
    for letter in "VB":
        expected = getattr(weights, letter)
        if expected is not None:
            np.testing.assert_allclose(
                rows(found[letter], expected), expected, rtol=0, atol=1e-14, err_msg=letter
            )
        else:
            assert found[letter] == {"V": 1, "B": None}[letter]


@pytest.mark.parametrize("name", [n for n, c in FLOWS.items() if "plus" in c["model"]])
def test_perceptrons_are_the_engines(name):
    found = answers()["model", name]["perceptron"]
    expected = job(name).model.terms.terms[1]
    for part in ("inner", "outer", "bias"):
        value = getattr(expected, part)
        np.testing.assert_allclose(rows(found[part], value), value, rtol=0, atol=1e-14)
    assert (found["omega"] is None) == (expected.omega is None)


@jax.jit
def slope(model, mu, t, points, radii):
    """The engine's velocity, in one compiled program."""
    rate = model.velocity(t, Particles(points, radii), mu, Dense())
    return rate.points, rate.radii


def flow(ready, t1, count=80):
    """The engine's velocity followed by fourth-order steps, half as long as the page's."""
    dt, start = t1 / count, ready.start().moving
    state = (np.asarray(start.points), start.radii)

    def at(t, change, scale):
        moved = jax.tree.map(lambda y, k: y + scale * k, state, change)
        return jax.tree.map(np.asarray, slope(ready.model, ready.x0, t, *moved))

    rest = jax.tree.map(np.zeros_like, state)
    for index in range(count):
        t = index * dt
        k1 = at(t, rest, 0.0)
        k2 = at(t + dt / 2, k1, dt / 2)
        k3 = at(t + dt / 2, k2, dt / 2)
        k4 = at(t + dt, k3, dt)
        points, radii = jax.tree.map(
            lambda y, a, b, c, d: y + dt / 6 * (a + 2 * b + 2 * c + d), state, k1, k2, k3, k4
        )
        on_sphere = isinstance(ready.x0.space, flock.Sphere)
        length = np.linalg.norm(points, axis=-1, keepdims=True) if on_sphere else 1.0
        state = (points / length, radii)
    return state


def compare(found, points, radii, tolerance):
    np.testing.assert_allclose(rows(found["points"], points), points, rtol=0, atol=tolerance)
    assert (found["radii"] is None) == (radii is None)
    if radii is not None:
        np.testing.assert_allclose(found["radii"], radii, rtol=tolerance)


@pytest.mark.parametrize("name", FLOWS)
def test_flows_agree(name):
    points, radii = flow(job(name), FLOWS[name]["solve"]["t1"])
    # The mix scheme switches inside the first step of both.
    tolerance = 2e-3 if name.startswith("mix-after") else 5e-6
    compare(answers()["run", name], points, radii, tolerance)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SOLVED[2:])) for name in SOLVED]
)
def test_flows_agree_with_the_engines_own_steps(name):
    ready, solve = job(name), FLOWS[name]["solve"]
    end = flock.solve(
        ready.model, ready.x0, t1=solve["t1"], dt=solve["dt"], save=flock.Save(every=1.0)
    )
    radii = end.arrays.get("final_radii")
    compare(answers()["run", name], end.arrays["final_points"], radii, 5e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_to_the_last_digits(name):
    ready, step = job(name), LAYERS[name]["solve"]["step"]
    end = ready.start().moving
    for index in range(STEPS):
        end = ready.model.layer(index * step, end, ready.x0, step, Dense())
    compare(answers()["run", name], end.points, end.radii, 1e-11)


class GivenPath(diffrax.AbstractBrownianPath):
    """A Brownian path whose every increment is the same array."""

    increment: jax.Array
    t0: float = 0.0
    t1: float = 1.0
    levy_area: type = diffrax.BrownianIncrement

    def evaluate(self, t0, t1=None, left=True, use_levy=False):
        return self.increment


@pytest.mark.parametrize("name", NOISY)
def test_one_step_with_given_noise_agrees(name):
    ready, dt = job(name), NOISY[name]["solve"]["dt"]
    start = ready.start()
    times = FieldTimes(ready.plan.clock, jnp.asarray(1.0), jnp.asarray(dt))
    context = Context(ready.plan.state, ready.model, times)
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(drift), NoiseTerm(GivenPath(jnp.asarray(increments(name))))
    )
    end = Retracted(diffrax.Euler()).step(terms, 0.0, dt, start, context, None, False)[0].moving
    compare(answers()["kick", name], end.points, end.radii, 1e-13)


@pytest.mark.parametrize("name", NOISY_LAYERS)
def test_one_layer_with_given_noise_agrees(name):
    ready, step = job(name), NOISY_LAYERS[name]["solve"]["step"]
    mu, model = ready.x0, ready.model
    middle = model.layer(0.0, ready.start().moving, mu, step, Dense())
    kick = model.displacement(0.0, middle, mu, jnp.asarray(increments(name)), Dense())
    points = mu.space.retract(middle.points + kick.points)
    compare(answers()["kick-layer", name], points, middle.radii, 1e-13)


def test_seeded_noise_spreads_as_brownian_motion_does():
    """E<X_t, X_0> = e^{-(d-1) t T} without drift; the pull of the cluster itself changes it by t T/2."""
    found = rows(answers()["noise"]["points"], np.zeros((1024, 3)))
    expected = flock.theory.brownian_correlation(0.05, 3, 0.5)
    assert np.mean(found[:, 0]) == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize("name", ["sa-2d", "pre-3d", "sa-goe-3d"])
def test_going_back_and_through_another_model_gives_the_same_end(name):
    first, second = answers()["short", name], answers()["detour", name]
    assert first == second
    assert second["steps"] == 6


@pytest.mark.parametrize("name", ["sa-2d", "causal-3d", "hardmax-flat-layers-3d"])
def test_a_held_token_rests_and_the_others_move(name):
    found = rows(answers()["hold", name]["points"], job(name).x0.points)
    start = np.asarray(job(name).x0.points)
    moved = np.linalg.norm(found - start, axis=-1)
    assert moved[4] < 1e-15
    assert np.median(moved) > 1e-3
