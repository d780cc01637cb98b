"""One name, one quantity: what a trace stores under the name of an observable is that observable.

The torch statistics and the engine read the same tokens. Names are not listed: every name that a trace
stores and the engine knows is compared, and one that cannot be compared fails.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from real_parts import tiny_bert, tiny_gpt2  # noqa: E402

import tokenflock as flock  # noqa: E402
from tokenflock.masks import ALiBi, Causal  # noqa: E402
from tokenflock.measure import Measure  # noqa: E402
from tokenflock.models import SA  # noqa: E402
from tokenflock.observables import OBSERVABLES, Observable, Snapshot  # noqa: E402
from tokenflock.observables.registry import IN_PYTHON_ONLY  # noqa: E402
from tokenflock.reduce import Dense  # noqa: E402
from tokenflock.space import Sphere  # noqa: E402
from tokenflock.tracing import Words, arrays  # noqa: E402
from tokenflock.tracing.arrays import details_of, engine_observable  # noqa: E402
from tokenflock.tracing.attention_statistics import attention_statistics  # noqa: E402
from tokenflock.tracing.state_statistics import state_statistics  # noqa: E402
from tokenflock.weights import Weights  # noqa: E402

BETA = 3.0
WORDS = [Words([(1 + 7 * i) % 97 for i in range(11)], [f"t{i}" for i in range(11)], "")]


@dataclass
class Case:
    """The same tokens twice: what torch read of them, and what the engine is given."""

    says: str
    row: dict
    snapshot: Snapshot


def lumps(n, d, seed):
    """Unit tokens in groups of unequal size around one side of the sphere, some of them close."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, d)) + 0.7
    tokens = centres[(4 * rng.random(n) ** 2).astype(int)] + 0.06 * rng.normal(size=(n, d))
    return tokens / np.linalg.norm(tokens, axis=1, keepdims=True)


def snapshot_of(tokens, model, masses=None):
    measure = Measure(Sphere(tokens.shape[1]), tokens, masses)
    return Snapshot(jnp.asarray(0.0), measure, model, Dense())


def state_case(n, d):
    tokens = lumps(n, d, seed=n + d)
    row = state_statistics(torch.as_tensor(tokens), reference_beta=BETA, rows=8)
    return Case(f"state ({n}, {d})", row, snapshot_of(tokens, SA(BETA)))


def masses_case(n=13, d=6):
    """A token of mass m/N for the engine is m equal tokens of N for torch."""
    times = 1 + np.random.default_rng(5).integers(0, 5, n)
    tokens = lumps(n, d, seed=3)
    repeated = torch.as_tensor(np.repeat(tokens, times, axis=0))
    row = state_statistics(repeated, reference_beta=BETA)
    return Case("masses", row, snapshot_of(tokens, SA(BETA), times / times.sum()))


def attention_case(n, heads, size, mask=None, added=None):
    """SA(beta) with Q and K per head; `added` is the engine's `mask` as models write it."""
    rng = np.random.default_rng(n)
    d, tokens = 7, lumps(n, 7, seed=n)
    Q, K = (2.0 * rng.normal(size=(heads, size, d)) + 0.3 for _ in range(2))
    query, key = (torch.as_tensor(np.einsum("hkd,nd->hnk", W, tokens)) for W in (Q, K))
    how = {"mask": added, "causal": False, "scaling": BETA, "width": d, "rank": True, "rows": 4}
    row = attention_statistics(query, key, **how)
    model = SA(BETA, Weights(Q=Q, K=K, V=1.0), mask=mask)
    return Case(f"attention ({heads}, {n}) {mask}", row, snapshot_of(tokens, model))


def made_cases():
    """Few and many tokens, few and many coordinates; with attention that hides and that biases."""
    below = torch.ones(9, 9, dtype=torch.bool).tril(-1)  # the first token sees nobody
    gap = torch.arange(14.0, dtype=torch.float64)[:, None] - torch.arange(14.0)
    alibi = torch.where(gap >= 0, -2.0 * gap / 14, -torch.inf)
    return [
        *(state_case(n, d) for n, d in ((37, 5), (21, 48), (3, 2))),
        masses_case(),
        attention_case(11, heads=3, size=4),
        attention_case(9, 2, 3, Causal(self_term=False), below),
        attention_case(14, 1, 5, ALiBi(2.0), alibi),
    ]


@pytest.fixture(scope="module")
def cases():
    return made_cases()


@pytest.fixture(scope="module")
def run():
    return flock.trace(tiny_gpt2().double(), words=WORDS, attention_rank=True, perturbation=True)


def shared(run):
    """What a trace stores, or says it may store, under the name of an observable."""
    tables = {*arrays.STATE_AXES, *arrays.LAYER_AXES, *arrays.WEIGHT_AXES}
    return sorted((tables | set(run.arrays)) & {*OBSERVABLES, *IN_PYTHON_ONLY})


def disagreements(names, cases):
    """What is wrong with each name; empty when torch and the engine read the same numbers."""
    wrong = {}
    for name in names:
        compared = [case for case in cases if name in case.row]
        if not compared:
            wrong[name] = "cannot be compared: give the trace's array another name, or a case"
        for case in compared:
            known = np.asarray(eqx.filter_jit(engine_observable(name))(case.snapshot))
            found = np.asarray(case.row[name])
            if found.shape != known.shape or not np.allclose(found, known, rtol=1e-10, atol=1e-13):
                wrong[name] = f"{case.says}: {found} in torch, {known} in the engine"
    return wrong


def test_shared_names_are_one_quantity(run, cases):
    names = shared(run)
    assert {"effective_rank", "clusters", "attention_entropy", "attention_rank"} <= set(names)
    assert disagreements(names, cases) == {}
    counts = [int(case.row["clusters"]) for case in cases if "clusters" in case.row]
    assert all(count > 1 for count in counts[:3])  # not the trivial count


def test_shared_names_have_the_text_and_the_axes_of_the_engine(run):
    assert not {*arrays.LONG_NAMES, *arrays.UNITS} & set(OBSERVABLES)
    for name in shared(run):
        known = engine_observable(name)
        assert run.axes[name][1:] == known.axes, name
        assert run[name].attrs["units"] == known.units, name
        assert run[name].attrs["long_name"] == known.says, name
    assert run["clusters"].attrs["angle"] == 0.1415
    assert run["scaled_energy"].attrs["beta"] == run.model.attentions()[0].beta


def test_every_array_of_a_trace_says_what_it_is(run):
    tables = {*arrays.STATE_AXES, *arrays.LAYER_AXES, *arrays.WEIGHT_AXES}
    for name in tables - set(shared(run)):
        assert details_of(name, 1.0)["long_name"] != name


@pytest.mark.parametrize("make", [tiny_bert, lambda: tiny_gpt2().double()], ids=["bert", "gpt2"])
def test_the_engine_reads_the_states_of_a_trace_as_the_trace_does(make):
    """Of a whole trace, whose model for the engine is SA at the reference beta."""
    model = make()
    run = flock.trace(model, words=WORDS)
    rtol = 1e-10 if model.dtype == torch.float64 else 1e-5
    names = [name for name in shared(run) if name in arrays.STATE_AXES]
    assert len(names) >= 4
    for name in names:
        found = run.observe(engine_observable(name))
        np.testing.assert_allclose(found, run.array(name), rtol=rtol, err_msg=name)


# --- what would be noticed ---


def observable(name, value):
    return Observable(name, "1", value, says="made up")


def mean_pair_cosine(snapshot):
    mu = snapshot.measure
    off = 1.0 - jnp.eye(mu.n)
    weights = mu.weights[:, None] * mu.weights[None] * off
    return jnp.sum(weights * (mu.points @ mu.points.T)) / jnp.sum(weights)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("norm_max", lambda s: jnp.max(s.measure.points), "in the engine"),
        ("order_parameter", lambda s: jnp.linalg.norm(s.measure.points.mean(0)), "masses"),
        ("attention_entropy", lambda s: jnp.zeros(s.measure.n), "in the engine"),
        ("turning_angle", lambda s: jnp.zeros(()), "cannot be compared"),
        ("beta_weights", lambda s: jnp.zeros(()), "cannot be compared"),
    ],
)
def test_an_observable_of_another_definition_is_noticed(run, cases, monkeypatch, name, value, says):
    monkeypatch.setitem(OBSERVABLES, name, observable(name, value))
    assert name in shared(run)
    assert says in disagreements(shared(run), cases)[name]


def test_an_array_of_a_trace_with_the_name_of_another_quantity_is_noticed(run, cases, monkeypatch):
    monkeypatch.setitem(arrays.LAYER_AXES, "speed", ())
    assert "cannot be compared" in disagreements(shared(run), cases)["speed"]


@pytest.mark.parametrize("name", ["effective_rank", "scaled_energy", "attention_rank"])
def test_a_statistic_that_is_off_by_a_millionth_is_noticed(run, cases, name):
    moved = [
        Case(case.says, {name: case.row[name] * (1.0 + 1e-6)}, case.snapshot)
        for case in cases
        if name in case.row
    ]
    assert name in disagreements([name], moved)


def test_an_observable_of_the_same_definition_is_welcome(run, cases, monkeypatch):
    """A new one needs no entry here: it is compared as it comes."""
    monkeypatch.setitem(OBSERVABLES, "sphere_cosine", observable("sphere_cosine", mean_pair_cosine))
    equal = [case for case in cases if case.says != "masses"]  # pairs of copies count in torch
    assert disagreements(["sphere_cosine"], equal) == {}


def test_traces_of_0_1_open_under_the_new_names(run, tmp_path):
    """They called turning angles `speed`; a run of the engine keeps its own observable."""
    old = {"turning_angle": "speed", "turning_angle_predicted": "speed_predicted"}
    stored = flock.trace(tiny_gpt2().double(), words=WORDS)
    for table in (stored.arrays, stored.axes, stored.details):
        for new, name in old.items():
            table[name] = table.pop(new)
    opened = flock.open(stored.save(tmp_path / "old.zarr"))
    for new, name in old.items():
        assert name not in opened
        np.testing.assert_array_equal(opened.array(new), run.array(new))
    assert opened["turning_angle"].attrs["units"] == "rad/layer"
    save = flock.Save(every=1.0, observe=[flock.speed])
    x0 = flock.uniform(flock.Sphere(3), n=5, seed=0)
    engine = flock.solve(flock.SA(1.0), x0, t1=1.0, rtol=1e-6, atol=1e-8, save=save)
    assert "speed" in flock.open(engine.save(tmp_path / "engine.zarr"))
