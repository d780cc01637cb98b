"""Where a model hides something, the trace says so; where it is shared, traces keep apart."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from real_parts import tiny_albert, tiny_bert, tiny_gpt2, tiny_llama  # noqa: E402

import tokenflock as flock  # noqa: E402
from tokenflock.tracing.tokenise import Words  # noqa: E402

SIZES = {"vocab_size": 97, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}


def words(n=11):
    ids = [(1 + 7 * i) % 97 for i in range(n)]
    return Words(ids, [f"t{i}" for i in ids], "")


def random_model(name, head="Model", **sizes):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **sizes})
    return getattr(transformers, f"{name}{head}")(config).eval()


def trace(model, **change):
    return flock.trace(model, words=[words()], change=flock.tracing.Interventions(**change))


def test_traces_in_threads_keep_apart():
    """The registry of attention functions is one for the process; two models at once, many times."""
    models = {"bert": tiny_bert(), "gpt2": tiny_gpt2()}
    expected = {name: trace(model).array("attention_entropy") for name, model in models.items()}
    wrong = []

    def repeat(name):
        for _ in range(6):
            found = trace(models[name])
            same = "attention_entropy" in found and np.array_equal(
                found.array("attention_entropy"), expected[name]
            )
            wrong.extend([] if same else [name])

    threads = [threading.Thread(target=repeat, args=(name,)) for name in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    registry = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS
    assert "get_interface" not in vars(registry)


def test_a_random_start_is_perturbed_like_any_other():
    change = flock.tracing.Interventions(start="random")
    run = flock.trace(tiny_gpt2(), words=[words()], change=change, perturbation=True)
    assert run.attributes["trace"]["rounding"]["perturbation"] == pytest.approx(1e-5, rel=1e-2)


def test_attention_that_bypasses_the_registry_is_reported():
    model = random_model("Bloom", "ForCausalLM", n_head=4, n_layer=2)
    run = trace(model)
    assert "attention_entropy" not in run
    assert any(
        "computes its attention itself" in each for each in run.attributes["trace"]["missing"]
    )
    with pytest.raises(flock.errors.InputError, match="--beta-scale reaches attention"):
        trace(model, beta_scale=2.0)


def test_scores_with_hidden_inputs_are_not_read():
    """The position bias of T5 is added inside the attention function."""
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    torch.manual_seed(0)
    encoder = transformers.T5EncoderModel(transformers.T5Config(vocab_size=97, **sizes)).eval()
    run = trace(encoder.get_encoder())
    assert "attention_entropy" not in run
    assert any("left out" in sentence for sentence in run.attributes["trace"]["missing"])


def test_an_unknown_decoder_is_known_to_be_causal():
    model = random_model("Qwen3", "ForCausalLM", num_key_value_heads=2, intermediate_size=48)
    run = trace(model, repeat=2)
    assert run.attributes["trace"]["causal"]
    assert len(run.array("turning_angle")) == 4
    assert not trace(tiny_bert()).attributes["trace"]["causal"]


def test_grouped_shared_layers_are_looped_as_one_or_not_at_all():
    """Three passes of a group of two layers, twice; the user's config is left as it was."""
    model = tiny_albert(inner_group_num=1, num_hidden_groups=2, num_hidden_layers=4)
    with pytest.raises(flock.errors.InputError, match="--repeat loops one list of layers"):
        trace(model, repeat=2)
    assert model.config.num_hidden_layers == 4
    inner = tiny_albert(inner_group_num=2, num_hidden_layers=3)
    before = trace(inner).array("mean_cosine")
    with pytest.raises(flock.errors.InputError, match="layers in groups"):
        trace(inner, repeat=2)
    assert inner.config.num_hidden_layers == 3
    np.testing.assert_array_equal(trace(inner).array("mean_cosine"), before)


def test_the_reference_temperature_follows_the_scores():
    model = tiny_llama()
    plain, hot = trace(model), trace(model, beta_scale=0.5)
    ratio = hot.attributes["trace"]["reference_beta"] / plain.attributes["trace"]["reference_beta"]
    assert ratio == pytest.approx(0.5)
    assert hot.array("beta_logits")[0] == pytest.approx(
        0.5 * plain.array("beta_logits")[0], rel=1e-4
    )


@pytest.mark.parametrize("seed", [-1, 2**70])
def test_seeds_are_checked(seed):
    with pytest.raises(flock.errors.InputError, match="seed must be a whole number"):
        flock.tracing.Interventions(start="permuted", seed=seed)
