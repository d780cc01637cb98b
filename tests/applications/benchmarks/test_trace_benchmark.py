"""The benchmark of trace at tiny sizes: its contract, its contestants, and what it does without a peer."""

import sys

import numpy as np
import pytest
from contract import check_result

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenflock.applications.benchmarks import find_benchmark, lenses
from tokenflock.applications.benchmarks.trace import PROBES, peak

TINY = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
FEW = {"texts": 2, "repeats": 2, "budget": 0.5, "rest": 0.0}


@pytest.fixture
def tiny(monkeypatch):
    """A Llama that costs nothing, under the name of a known shape."""
    settings, head, shape = lenses.SHAPES["a small Llama"]
    small = {**shape, **TINY, "num_key_value_heads": 2, "intermediate_size": 48}
    monkeypatch.setitem(lenses.SHAPES, "tiny", (settings, head, small))
    return "tiny"


def without_lens(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "transformer_lens"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformer_lens", None)


def test_times_and_memory_obey_the_contract(tiny, monkeypatch):
    without_lens(monkeypatch)
    taken = {256: 1e-3, 512: 2e-3}
    seen = []
    monkeypatch.setattr(
        "tokenflock.applications.benchmarks.trace.peak", lambda who, model, n: taken.get(n, 0.5)
    )
    changes = {"models": ((tiny, 24),), "memory_of": ((tiny, 24),), "growing": tiny, **FEW}
    run = find_benchmark("trace").run
    result = run("quick", lambda done, note: seen.append(done), sizes=tuple(taken), **changes)
    check_result(result)
    assert seen == sorted(seen)
    one, several, memory, *sizes, growth = result["rows"]
    assert one["missing"] == [f"{lenses.LENS}: not installed"]
    for row in (one, several):
        assert row["unit"] == "s"
        assert set(row["peers"]) == {lenses.HIDDEN}
    assert one["bars"][0]["says"] == f"at least 0.5 x {lenses.HIDDEN}"
    assert several["bars"] == []
    # The same hidden states as the plain forward, read by another formula.
    assert one["error"] < 1e-12
    assert memory["unit"] == "GB"
    assert len(sizes) == 2
    # Two layers of four heads, in float32.
    assert next(iter(sizes[1]["peers"].values())) == pytest.approx(8 * 4e-9 * 512**2, rel=1e-3)
    assert growth["ours"] == pytest.approx(1.0)


def test_memory_that_grows_like_pairs_misses_its_bar(tiny, monkeypatch):
    monkeypatch.setattr(
        "tokenflock.applications.benchmarks.trace.peak", lambda who, model, n: 1e-9 * n * n
    )
    changes = {"models": (), "memory_of": (), "growing": tiny, "sizes": (256, 512)}
    *_, growth = find_benchmark("trace").run("quick", **changes)["rows"]
    assert growth["ours"] == pytest.approx(2.0)
    assert growth["bars"][0]["met"] is False


def test_every_way_to_look_runs_on_the_same_model(tiny):
    words = lenses.random_words(12)
    assert lenses.random_words(12).ids == words.ids
    direct = lenses.mean_cosines(lenses.with_hidden_states(lenses.checkpoint_of(tiny), words))
    for look in (lenses.with_statistics, lenses.with_trace):
        found = look(lenses.checkpoint_of(tiny), words)
        np.testing.assert_allclose(found, direct, atol=1e-12)
    seen = PROBES[lenses.ATTENTIONS](lenses.checkpoint_of(tiny))(words)
    assert [each.shape for each in seen.attentions] == [(1, 4, 12, 12)] * 2
    np.testing.assert_allclose(
        lenses.mean_cosines([state[0] for state in seen.hidden_states]), direct, atol=1e-5
    )


def test_the_lens_sees_the_same_model(tiny):
    pytest.importorskip("transformer_lens")
    words = lenses.random_words(12)
    states = lenses.with_hidden_states(lenses.checkpoint_of(tiny), words)
    _, cache = PROBES[lenses.LENS](lenses.checkpoint_of(tiny))(words)
    first = cache["blocks.0.hook_out"][0]
    np.testing.assert_allclose(first.numpy(force=True), states[1].numpy(force=True), atol=1e-5)


@pytest.mark.slow
def test_memory_is_measured_in_a_fresh_process():
    ours = peak("ours", "a small Llama", 512)
    every = peak(lenses.ATTENTIONS, "a small Llama", 512)
    assert 0 <= ours < every
    # Six layers of eight 512 x 512 matrices in float32.
    assert every > 4e-9 * 48 * 512**2
