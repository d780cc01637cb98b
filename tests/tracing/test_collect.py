"""Layers that wait and are read together give the rows of layers read one by one."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from real_parts import TINY, tiny_albert, tiny_bert, tiny_gpt2, tiny_llama, tiny_vit  # noqa: E402

from tokenflock.errors import InputError  # noqa: E402
from tokenflock.tracing import collect  # noqa: E402
from tokenflock.tracing.architecture import Architecture  # noqa: E402
from tokenflock.tracing.collect import Collector, split, unit_angles  # noqa: E402
from tokenflock.tracing.hooks import AttentionCall, watching  # noqa: E402

TEXT = {"input_ids": torch.tensor([[(1 + 7 * i) % 97 for i in range(13)]])}
PICTURE = {"pixel_values": torch.linspace(-1, 1, 3 * 32 * 32).sin().reshape(1, 3, 32, 32)}
PADDED = {**TEXT, "attention_mask": (torch.arange(13) < 11).long()[None]}


def tiny_distilbert():
    sizes = {"vocab_size": 97, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
    torch.manual_seed(0)
    return transformers.DistilBertModel(transformers.DistilBertConfig(**sizes)).eval()


def tiny_neox():
    """A family whose parts are not known: its states come when the pass has ended."""
    settings = {**TINY, "num_hidden_layers": 3, "max_position_embeddings": 64}
    torch.manual_seed(0)
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**settings)).eval()


CASES = {
    "albert": (tiny_albert, TEXT),
    "bert": (tiny_bert, TEXT),
    "bert, padded": (tiny_bert, PADDED),
    "distilbert": (tiny_distilbert, TEXT),
    "llama": (tiny_llama, TEXT),
    "llama, padded": (tiny_llama, PADDED),
    "gpt2": (tiny_gpt2, TEXT),
    "vit": (tiny_vit, PICTURE),
    "unknown": (tiny_neox, TEXT),
}


def collected(model, inputs, buffer_bytes, **settings):
    architecture = Architecture.of(model)
    heard = Collector(architecture.width, 3.0, buffer_bytes=buffer_bytes, **settings)
    wanted = {"output_hidden_states": True} if architecture.family is None else {}
    with torch.no_grad(), watching(architecture, heard):
        architecture.backbone(**inputs, **wanted)
    return heard


def agree(one, other, rtol):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in mine.items():
            whole = name in ("clusters", "clusters_at", "outlier_dimension", "sink_token")
            close = {"rtol": 0.0} if whole else {"rtol": rtol, "atol": rtol}
            np.testing.assert_allclose(theirs[name], value, **close, err_msg=name)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("settings", [{}, {"without_first": True, "attention_rank": True}], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_the_size_of_the_buffer_changes_no_number(case, settings, kind):
    """Nothing waits, about two layers wait, everything waits."""
    make, inputs = CASES[case]
    model = make().to(getattr(torch, kind))
    inputs = {name: x.to(model.dtype) if x.is_floating_point() else x for name, x in inputs.items()}
    state = 13 * 32 * model.dtype.itemsize
    alone, few, whole = (
        collected(model, inputs, buffer_bytes, keep_states=True, **settings)
        for buffer_bytes in (0, 6 * state, 2**30)
    )
    for other in (few, whole):
        agree(alone.states, other.states, 1e-12 if kind == "float64" else 1e-6)
        agree(alone.layers, other.layers, 1e-12 if kind == "float64" else 1e-6)
        np.testing.assert_array_equal(np.stack(alone.tokens), np.stack(other.tokens))
    names = {"turning_angle", "attention_entropy"} | ({"attention_rank"} if settings else set())
    assert all(names <= row.keys() for row in whole.layers)
    assert ("turning_angle_predicted" in whole.layers[0]) == (case != "unknown")


@pytest.mark.parametrize("case", ["bert", "unknown"])
def test_what_waits_is_read_when_it_reaches_its_size(case, monkeypatch):
    sizes = {"batched_state_statistics": [], "batched_attention_statistics": []}
    for name, kept in sizes.items():
        read = getattr(collect, name)

        def spied(first, *rest, read=read, kept=kept, **keywords):
            kept.append(len(first))
            return read(first, *rest, **keywords)

        monkeypatch.setattr(collect, name, spied)
    model = CASES[case][0]()
    collected(model, TEXT, buffer_bytes=0)
    assert sizes == {"batched_state_statistics": [1] * 4, "batched_attention_statistics": [1] * 3}
    sizes["batched_state_statistics"].clear(), sizes["batched_attention_statistics"].clear()
    state = 13 * 32 * 4
    collected(model, TEXT, buffer_bytes=4 * state)
    assert sizes == {
        "batched_state_statistics": [4] if case == "unknown" else [2, 2],
        "batched_attention_statistics": [2, 1],
    }
    sizes["batched_state_statistics"].clear(), sizes["batched_attention_statistics"].clear()
    collected(model, TEXT, buffer_bytes=2**20)
    assert sizes == {"batched_state_statistics": [4], "batched_attention_statistics": [3]}


def test_every_state_is_announced_when_it_is_heard():
    told = []
    heard = collected(tiny_gpt2(), TEXT, buffer_bytes=2**30, progress=told.append)
    assert told == [0, 1, 2, 3]
    assert heard.count == 13
    assert [points.shape for points in heard.ends] == [(13, 32)] * 2


def attention_call(mask, causal, scaling, n=5):
    generator = torch.Generator().manual_seed(n)
    query, key = (torch.randn(1, heads, n, 4, generator=generator) for heads in (4, 2))
    return AttentionCall(query, key, key, mask, causal, scaling)


def test_calls_with_another_mask_length_or_scaling_are_read_apart():
    shown = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril(2)
    calls = [
        attention_call(None, True, 0.5),
        attention_call(None, True, 0.5),
        attention_call(None, False, 0.5),
        attention_call(shown, False, 0.5),
        attention_call(torch.zeros(1, 4, 5, 5), False, 0.5),
        attention_call(None, False, 0.7),
        attention_call(None, False, 0.7, n=8),
    ]
    rows = []
    for buffer_bytes in (0, 2**30):
        heard = Collector(8, 1.0, buffer_bytes=buffer_bytes)
        for layer, call in enumerate(calls, 1):
            heard.attention(layer, call)
        heard.finish()
        rows.append(heard.layers)
    agree(*rows, rtol=1e-6)
    assert rows[0][2]["attention_entropy"] == pytest.approx(rows[0][4]["attention_entropy"])
    assert rows[0][2]["attention_entropy"] != pytest.approx(rows[0][3]["attention_entropy"])


def test_states_of_another_length_are_read_apart():
    """Texts one after the other: nothing is stacked across them."""
    short, long = torch.randn(1, 4, 6), torch.randn(1, 7, 6)
    heard = Collector(6, 1.0, buffer_bytes=2**30)
    for index, state in ((0, short), (1, short + 1), (0, long), (1, long + 1)):
        heard.state(index, state, None)
    heard.finish()
    assert [len(row["norms"]) for row in heard.states] == [4, 4, 7, 7]


def test_an_overflow_that_waited_is_still_a_sentence():
    heard = Collector(6, 1.0, buffer_bytes=2**30)
    heard.state(0, torch.ones(1, 4, 6), None)
    heard.state(1, torch.full((1, 4, 6), float("nan")), None)
    with pytest.raises(InputError, match="overflowed"):
        heard.finish()


def test_a_push_is_split_along_and_across():
    x = torch.tensor([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    push = torch.tensor([[4.0, -3.0], [0.0, -5.0], [1.0, 0.0]], dtype=torch.float64)
    size, across, along = split(x, push)
    np.testing.assert_allclose(size, [5.0, 2.0, 0.0], atol=1e-100)
    np.testing.assert_allclose(across, [5.0, 0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(along, [0.0, -5.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 2.0, 3.14, np.pi])
def test_angles_between_unit_rows(angle):
    u = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    v = torch.tensor([[np.cos(angle), np.sin(angle)]], dtype=torch.float64)
    accuracy = 1e-8 if angle > 3.1 else 1e-14
    np.testing.assert_allclose(unit_angles(u, v), [angle], rtol=1e-12, atol=accuracy)
