"""What the page measures and predicts, against the engine's observables and theory."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from browser_code import ask
from named_kinds import named_kind
from physics_cases import FLOWS, LAYERS, spec, sphere

import tokenflock as flock
from tokenflock import theory
from tokenflock.lab.job import Job
from tokenflock.lab.spec import RunSpec
from tokenflock.observables import make
from tokenflock.observables.base import Snapshot
from tokenflock.reduce import Dense
from tokenflock.theory import noise as noise_theory
from tokenflock.theory import uniform as uniform_theory

# More tokens than the cases have, so that the circle's energy goes by its Fourier series too.
CROWD = {
    f"crowd-{d}d": spec({"name": "USA", "beta": 9.0, "convention": "metastability"}, sphere(d, 300))
    for d in (2, 3)
}
KINDS = ["sa", "sa-flat", "sa-given-b", "usa-perspective", "causal", "causal-no-self"]
OBSERVED = {
    **CROWD,
    **{f"{kind}-{d}d": FLOWS[f"{kind}-{d}d"] for kind in KINDS for d in (2, 3)},
    **{name: FLOWS[name] for name in ("causal-alibi-2d", "perceptron-gelu-3d", "rescaled-2d")},
    "hardmax-b-layers-3d": LAYERS["hardmax-b-layers-3d"],
}
BINS = 16
TIMES = [0.0, 0.01, 0.3, 1.0, 4.0, 30.0]
SA, FAST, SLOW = (
    {"softmax": True, "speed": 1.0},
    {"softmax": False, "speed": None},
    {"softmax": False, "speed": 1.0},
)
ENGINE = {
    "sa": ("SA", "perspective"),
    "fast": ("USA", "perspective"),
    "slow": ("USA", "metastability"),
}
PULLS = {"sa": SA, "fast": FAST, "slow": SLOW}
BETAS = [0.0, 0.5, 3.0, 9.0]


def pull(name, beta):
    chosen = {**PULLS[name], "beta": beta}
    return {**chosen, "speed": float(np.exp(beta)) if name == "fast" else 1.0}


def cloud(seed, n, d, tight):
    """Unit tokens around a few centres, so that clusters of many sizes exist."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, d))
    x = centres[rng.integers(0, 12, n)] + tight * rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


CLOUDS = {
    f"{d}d-{n}-{tight}": (cloud(n + d, n, d, tight), d)
    for d in (2, 3)
    for n, tight in ((40, 0.3), (400, 0.03), (700, 0.6))
}


@functools.cache
def answers():
    requests = {}
    for name, case in OBSERVED.items():
        points = np.asarray(tokens(name).points).ravel().tolist()
        requests["observe", name] = {
            "do": "observe",
            "spec": case,
            "points": points,
            "time": 0.4,
            "bins": BINS,
            "index": 5,
        }
    for name, (points, d) in CLOUDS.items():
        given = {"d": d, "points": points.ravel().tolist()}
        requests["clusters", name] = {"do": "clusters", "space": "sphere", **given}
        flat = {"d": d, "points": (7 * points).ravel().tolist()}
        requests["flat", name] = {"do": "clusters", "space": "euclidean", **flat}
        requests["centres", name] = {"do": "centres", "distance": 0.4, **given}
    points = CLOUDS["2d-400-0.03"][0].ravel().tolist()
    requests["density"] = {"do": "density", "points": points, "bins": 720}
    for name in PULLS:
        for beta in BETAS:
            shared = {"attraction": pull(name, beta), "times": TIMES}
            requests["equiangular", name, beta] = {
                "do": "equiangular", "n": 7, "start": -0.1, **shared,
            }  # fmt: skip
            requests["angle", name, beta] = {
                "do": "clusterAngle", "p": 0.7, "q": 0.3, "start": 1.7, **shared,
            }  # fmt: skip
            requests["lifetime", name, beta] = {
                "do": "lifetime", "p": 0.7, "q": 0.3, "from": 1.7, "to": 0.1, **shared,
            }  # fmt: skip
    for d in (2, 3):
        for beta in (0.0, 0.3, 4.0, 30.0, 150.0):
            requests["mode", d, beta] = {"do": "mode", "d": d, "beta": beta}
            requests["critical", d, beta] = {
                "do": "critical", "d": d, "beta": beta, "softmax": True, "speed": 1.0,
            }  # fmt: skip
        requests["critical-usa", d] = {
            "do": "critical", "d": d, "beta": 3.0, "softmax": False, "speed": float(np.exp(3.0)),
        }  # fmt: skip
        requests["uniform", d] = {"do": "uniformEnergy", "d": d, "beta": 6.0}
        for temperature in (0.1, 0.25, 0.9):
            requests["equilibrium", d, temperature] = {
                "do": "equilibrium", "d": d, "beta": 0.0, "speed": 1.0, "temperature": temperature,
            }  # fmt: skip
    for name, case in PREDICTED.items():
        requests["curves", name] = {"do": "curves", "spec": case, "times": TIMES}
    return ask(requests)


@functools.cache
def job(name):
    return Job(RunSpec.model_validate({**OBSERVED[name], "save": {"every": 1.0, "observe": []}}))


def tokens(name):
    return job(name).x0


def engine(name, observable, **parameters):
    snapshot = Snapshot(jnp.asarray(0.4), tokens(name), job(name).model, Dense())
    return np.asarray(make(observable, **parameters)(snapshot))


@pytest.mark.parametrize("name", OBSERVED)
def test_energy_and_order_are_the_engines(name):
    found = answers()["observe", name]["measured"]
    assert found["order"] == pytest.approx(float(engine(name, "order_parameter")), abs=1e-14)
    if "rescaled" in name or "hardmax" in name:
        assert found["energy"] is None
    else:
        assert found["energy"] == pytest.approx(float(engine(name, "energy")), rel=1e-13)


@pytest.mark.parametrize("name", OBSERVED)
def test_attention_and_cosines_are_the_engines(name):
    found = answers()["observe", name]
    matrix = engine(name, "attention_matrix")[0]
    np.testing.assert_allclose(
        np.reshape(found["attention"], matrix.shape), matrix, atol=2e-7 * matrix.max()
    )
    np.testing.assert_allclose(found["row"], matrix[5], atol=2e-7 * matrix.max())
    x = np.asarray(tokens(name).points)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    gram = (x @ x.T)[~np.eye(len(x), dtype=bool)]
    assert found["measured"]["cosine"] == pytest.approx(gram.mean(), abs=1e-14)
    density, _ = np.histogram(gram, BINS, (-1, 1), density=True)
    if "rescaled" not in name:
        np.testing.assert_allclose(found["histogram"], density, atol=1e-12)


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("space", ["sphere", "flat"])
def test_clusters_are_the_engines(name, space):
    points, d = CLOUDS[name]
    flat = space == "flat"
    mu = flock.from_array(
        flock.Euclidean(d) if flat else flock.Sphere(d), 7 * points if flat else points
    )
    threshold = {"distance": 0.1} if flat else {"link": "spacing"}
    snapshot = Snapshot(jnp.asarray(0.0), mu, flock.SA(1.0), Dense())
    found = answers()["flat" if flat else "clusters", name]
    count = int(make("clusters", **threshold)(snapshot))
    sizes = np.asarray(make("cluster_sizes", largest=count, **threshold)(snapshot))
    labels = np.asarray(make("cluster_labels", **threshold)(snapshot))
    assert found["clusters"] == count
    assert found["sizes"] == sizes.tolist()
    # The same partition, whatever the numbers: pairs of labels match one to one.
    assert len(set(zip(found["labels"], labels.tolist(), strict=True))) == count
    assert np.bincount(found["labels"]).tolist() == found["sizes"]


@pytest.mark.parametrize("name", CLOUDS)
def test_renyi_centres_are_the_engines(name):
    points, d = CLOUDS[name]
    mu = flock.from_array(flock.Sphere(d), points)
    snapshot = Snapshot(jnp.asarray(0.0), mu, flock.SA(1.0), Dense())
    mask = np.asarray(make("renyi_centre_mask", distance=0.4)(snapshot))
    assert answers()["centres", name] == np.flatnonzero(mask).tolist()


def test_density_is_a_von_mises_estimate_and_its_modes_are_its_maxima():
    found, x = answers()["density"], CLOUDS["2d-400-0.03"][0]
    angles, theta = np.array(found["angles"]), np.arctan2(x[:, 1], x[:, 0])
    concentration = 0.15**-2
    kernel = np.exp(concentration * (np.cos(angles[:, None] - theta) - 1))
    exact = kernel.mean(1) / (2 * np.pi * np.i0(concentration) * np.exp(-concentration))
    np.testing.assert_allclose(found["density"], exact, atol=1e-12)
    high = (exact > np.roll(exact, 1)) & (exact > np.roll(exact, -1)) & (exact > 0.02 * exact.max())
    modes = angles[high][np.argsort(-exact[high])]
    np.testing.assert_allclose(found["modes"], modes, atol=2 * np.pi / 720)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", PULLS)
def test_equiangular_ode(name, beta):
    model, convention = ENGINE[name]
    expected = theory.equiangular_gamma(TIMES, 7, beta, -0.1, named_kind(model, convention))
    np.testing.assert_allclose(answers()["equiangular", name, beta], expected, atol=1e-9)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", PULLS)
def test_two_clusters(name, beta):
    model, convention = ENGINE[name]
    life = theory.two_cluster_lifetime(1.7, 0.1, 0.7, 0.3, beta, named_kind(model, convention))
    assert answers()["lifetime", name, beta] == pytest.approx(float(life), rel=1e-9)
    for time, angle in zip(TIMES, answers()["angle", name, beta], strict=True):
        if 1e-6 < angle < 1.7 - 1e-9:
            needed = theory.two_cluster_lifetime(
                1.7, angle, 0.7, 0.3, beta, named_kind(model, convention)
            )
            assert float(needed) == pytest.approx(time, rel=1e-7)


@pytest.mark.parametrize("beta", [0.0, 0.3, 4.0, 30.0, 150.0])
@pytest.mark.parametrize("d", [2, 3])
def test_modes_and_critical_temperatures(d, beta):
    assert answers()["mode", d, beta] == uniform_theory.dominant_mode(d, beta)
    expected = noise_theory.critical_temperature(1, d, beta, named_kind("SA"))
    assert answers()["critical", d, beta] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_uniform_energy_and_equilibrium_order(d):
    assert answers()["uniform", d] == pytest.approx(float(theory.energy_uniform(d, 6.0)), rel=1e-12)
    critical = float(noise_theory.critical_temperature(1, d, 3.0, named_kind("USA")))
    assert answers()["critical-usa", d] == pytest.approx(critical, rel=1e-12)
    for temperature in (0.1, 0.25, 0.9):
        expected = float(noise_theory.order_parameter(1 / temperature, d))
        assert answers()["equilibrium", d, temperature] == pytest.approx(expected, abs=1e-8)


ARCS = {"law": "arcs", "d": 2, "centres": [0.0, 2.0], "per_cluster": 8, "width": 0.002, "seed": 1}
NOISE = {"kind": "brownian", "temperature": 0.05}
USA = {"name": "USA", "beta": 2.0, "convention": "metastability"}
PREDICTED = {
    "orthogonal": spec(
        {"name": "SA", "beta": 3.0}, {"law": "equiangular", "d": 3, "n": 3, "correlation": 0.0}
    ),
    "circle": spec({"name": "SA", "beta": 9.0}, sphere(2, 40)),
    "arcs": spec({"name": "SA", "beta": 3.0}, ARCS),
    "causal": spec({"name": "CausalSA", "beta": 64.0}, sphere(2, 40)),
    "noise": spec({**USA, "noise": NOISE}, sphere(2, 40)),
    "repulsive": spec({"name": "SA", "beta": 3.0, "weights": {"V": -1.0}}, sphere(3)),
    "perceptron": FLOWS["perceptron-relu-2d"],
    "flat": FLOWS["rescaled-2d"],
}


def predicted(name):
    return {
        (curve["quantity"], curve["label"].split()[0]): curve for curve in answers()["curves", name]
    }


def test_predictions_appear_where_their_hypotheses_hold():
    quantities = {
        name: {curve["quantity"] for curve in answers()["curves", name]} for name in PREDICTED
    }
    assert quantities == {
        "orthogonal": {"cosine", "energy"},
        "circle": {"clusters", "energy"},
        "arcs": {"cosine", "clusters", "energy"},
        "causal": {"clusters", "energy"},
        "noise": {"order", "energy"},
        "repulsive": {"energy"},
        "perceptron": set(),
        "flat": set(),
    }
    for name in PREDICTED:
        assert all(c["note"] and c["source"] and c["label"] for c in answers()["curves", name])


def test_predictions_have_the_values_of_theory():
    orthogonal = predicted("orthogonal")["cosine", "equiangular"]["values"]
    np.testing.assert_allclose(orthogonal, theory.equiangular_gamma(TIMES, 3, 3.0), atol=1e-9)
    assert predicted("circle")["clusters", "dominant"]["values"][0] == theory.dominant_mode(2, 9.0)
    energy = predicted("circle")["energy", "all"]["values"]
    np.testing.assert_allclose(energy, theory.energy_dirac(9.0))
    np.testing.assert_allclose(
        predicted("repulsive")["energy", "uniform"]["values"], theory.energy_uniform(3, 3.0)
    )


def test_two_arcs_follow_their_prediction():
    """The engine's own run of the arcs stays close to the curve of two points."""
    ready = Job(
        RunSpec.model_validate({**PREDICTED["arcs"], "save": {"every": 1.0, "observe": []}})
    )
    run = flock.solve(
        ready.model,
        ready.x0,
        t1=4.0,
        dt=0.05,
        save=flock.Save(at=[0.0, 0.3, 1.0, 4.0], states=True),
    )
    x = np.asarray(run.arrays["states"])
    n = x.shape[-2]
    cosine = (np.sum(np.sum(x, axis=1) ** 2, axis=-1) - n) / (n * (n - 1))
    curve = dict(zip(TIMES, predicted("arcs")["cosine", "two"]["values"], strict=True))
    np.testing.assert_allclose(cosine, [curve[t] for t in (0.0, 0.3, 1.0, 4.0)], atol=2e-3)


def test_the_end_of_a_plateau_is_predicted():
    """Wide arcs collapse first; the page's own run then merges within 2% of the predicted time."""
    wide = {**ARCS, "centres": [0.0, 2.0], "per_cluster": 16, "width": 0.5, "seed": 11}
    case = spec({"name": "SA", "beta": 5.0}, wide, dt=0.05, t1=300.0)
    times = np.arange(0.0, 300.0, 0.25).tolist()
    curves = ask({"curves": {"do": "curves", "spec": case, "times": times}})["curves"]
    counts = next(c["values"] for c in curves if c["label"].startswith("two until"))
    end = times[counts.index(1)]
    steps = {side: round(side * end / 0.05) for side in (0.98, 1.02)}
    runs = ask({side: {"do": "run", "spec": case, "steps": count} for side, count in steps.items()})
    order = [np.linalg.norm(np.reshape(runs[s]["points"], (-1, 2)).mean(0)) for s in steps]
    assert order[0] < 0.99
    assert order[1] > 0.999


def test_noise_prediction_is_below_one_and_above_zero():
    value = predicted("noise")["order", "ordered"]["values"][0]
    assert 0.8 < value < 1.0
