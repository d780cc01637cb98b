"""flock.trace: a Trajectory whose clock is the layer, equal to what the model and the engine say."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from real_parts import TINY, tiny_albert, tiny_bert, tiny_gpt2, tiny_llama, tiny_vit  # noqa: E402

import tokenflock as flock  # noqa: E402
from tokenflock.tracing.perturbation import Growth  # noqa: E402
from tokenflock.tracing.tokenise import Words  # noqa: E402


def words(n=11, start=1):
    ids = [(start + 7 * i) % 97 for i in range(n)]
    return Words(ids, [f"t{i}" for i in ids], "")


def hidden_states(model, given):
    with torch.no_grad():
        return model(torch.tensor([given.ids]), output_hidden_states=True).hidden_states


@pytest.fixture(scope="module")
def bert():
    model = tiny_bert()
    return model, flock.trace(model, words=[words()], attention_rank=True, perturbation=True)


def test_the_clock_is_the_layer(bert):
    run = bert[1]
    assert run.time.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert run.states.shape == (4, 11, 32)
    assert run.outcome == "finished"
    assert run.attributes["trace"]["tokens"] == [words().labels]
    assert run["attention_entropy"].dims == ("layer", "head")
    first = run["attention_entropy"].sel(layer=1, head=1)
    assert first == run.array("attention_entropy")[0, 0]
    assert run.coords["head"][0] == run.coords["layer"][0] == 1
    assert run["attention_entropy"].layer.values.tolist() == [1, 2, 3]


def test_statistics_are_of_the_models_own_hidden_states(bert):
    model, run = bert
    for index, state in enumerate(hidden_states(model, words())):
        x = state[0].double().numpy()
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        pairs = (unit @ unit.T)[np.triu_indices(11, 1)]
        assert run.array("mean_cosine")[index] == pytest.approx(pairs.mean(), abs=1e-12)
        np.testing.assert_allclose(run.array("norms")[index], np.linalg.norm(x, axis=1), rtol=1e-12)


def test_turning_angles_are_angles_between_states(bert):
    run = bert[1]
    inner = np.sum(run.states[1:] * run.states[:-1], axis=-1)
    expected = np.arccos(np.clip(inner, -1, 1)).mean(axis=1)
    np.testing.assert_allclose(run.array("turning_angle"), expected, atol=1e-9)


def test_the_theory_beside_it_is_the_closed_system_of_the_scheme(bert):
    run = bert[1]
    trace = run.attributes["trace"]
    rho, beta = run.array("sphere_cosine"), trace["reference_beta"]
    assert beta == pytest.approx(np.median(run.array("beta_weights")))
    expected = flock.theory.equiangular_rate(rho[:-1], 11, beta)
    np.testing.assert_allclose(run.array("cosine_rate_predicted"), expected, rtol=1e-6)
    assert run.array("equiangular_cosine")[0] == pytest.approx(rho[0])


def test_small_updates_turn_tokens_as_the_flow_says():
    """2510.22026 in the limit of small layers: angle = |P a|/|x|, for pre-LN with r = |x|."""
    model = tiny_gpt2()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".c_proj." in name:
                parameter.mul_(1e-3)
    run = flock.trace(model, words=[words()])
    np.testing.assert_allclose(
        run.array("turning_angle")[:-1], run.array("turning_angle_predicted")[:-1], rtol=5e-3
    )
    # The final norm of GPT-2 takes the mean out of a token, which the flow knows nothing of.
    assert run.array("turning_angle")[-1] > 2 * run.array("turning_angle_predicted")[-1]
    measured = run.array("turning_angle_attention")
    np.testing.assert_allclose(measured, run.array("turning_angle_attention_predicted"), rtol=5e-3)


def test_perturbations_grow_linearly():
    """Perturbations of 1e-10 and of 1e-5 in the same direction grow alike."""
    small = flock.trace(tiny_gpt2().double(), words=[words()], perturbation=True)
    large = flock.trace(tiny_gpt2(), words=[words()], perturbation=True)
    found = small.array("perturbation_growth")
    assert small.attributes["trace"]["rounding"]["perturbation"] == pytest.approx(1e-10, rel=1e-3)
    assert found[0] == 1.0
    np.testing.assert_allclose(large.array("perturbation_growth"), found, rtol=0.02)


def test_float32_inside_a_float64_model_is_noticed():
    """The RMSNorm of Llama computes in float32 whatever its input is."""
    run = flock.trace(tiny_llama().double(), words=[words()], perturbation=True)
    rounding = run.attributes["trace"]["rounding"]
    assert rounding["precision"] == "float32"
    assert rounding["perturbation"] == pytest.approx(1e-5, rel=1e-3)
    assert run.array("perturbation_growth")[1] > 2


def test_where_rounding_decides():
    """Errors of 2e-16 that grow tenfold a layer reach a thousandth at the thirteenth."""
    growing = Growth()
    direction = torch.ones(2, 3, dtype=torch.float64)
    for layer in range(16):
        hidden = torch.stack([direction, direction * (1 + 1e-14 * 10.0**layer)])
        growing.state(layer, hidden, None)
    found = growing.rounding("float64")
    assert found["decides_from_layer"] == 13
    assert growing.growth()[3] == pytest.approx(1e3, rel=0.05)
    assert growing.rounding("float32")["decides_from_layer"] == 4


def test_several_texts_share_the_layers():
    run = flock.trace(tiny_bert(), words=[words(), words(8, 3), words(20, 2)])
    assert run["mean_cosine"].dims == ("sample", "time")
    assert run.array("cosine_histogram").shape == (3, 4, 64)
    assert "norms" not in run
    assert "states" not in run
    alone = flock.trace(tiny_bert(), words=[words(8, 3)])
    np.testing.assert_array_equal(run.array("mean_cosine")[1], alone.array("mean_cosine"))


def test_the_first_token_can_be_left_out():
    model = tiny_llama()
    whole = flock.trace(model, words=[words()])
    rest = flock.trace(model, words=[words()], without_first=True)
    assert rest.states.shape[1] == 10
    np.testing.assert_allclose(
        rest.array("mean_cosine"), whole.array("mean_cosine_rest"), atol=1e-12
    )
    np.testing.assert_array_equal(rest.array("first_mass"), whole.array("first_mass"))
    assert "mean_cosine_rest" not in rest
    with pytest.raises(flock.errors.InputError, match="at least two must be left"):
        flock.trace(model, words=[words(2)], without_first=True)


def test_pictures_are_read_by_keywords():
    pixels = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    run = flock.trace(tiny_vit(), inputs={"pixel_values": pixels})
    assert run.states.shape == (3, 17, 32)
    assert run.attributes["trace"]["tokens"][0][:2] == ["0", "1"]


def test_a_shared_layer_shows_at_every_pass():
    run = flock.trace(tiny_albert(), words=[words()], change=flock.tracing.Interventions(repeat=2))
    passes = len(run.array("turning_angle"))
    assert run.attributes["trace"]["model"]["layers"] * 2 == passes
    assert np.all(run.array("beta_weights") == run.array("beta_weights")[0])
    assert any("2 times over" in note for note in run.attributes["trace"]["notes"])


def test_permuted_tokens_keep_their_frame():
    text = Words([5, 1, 2, 3, 4, 6], list("[abcd]"), "", prefix=1, suffix=1)
    change = flock.tracing.Interventions(start="permuted", seed=4)
    labels = flock.trace(tiny_bert(), words=[text], change=change).attributes["trace"]["tokens"][0]
    assert labels[0] + labels[-1] == "[]"
    assert sorted(labels) == sorted("[abcd]")
    assert labels != list("[abcd]")


def test_a_model_in_training_keeps_its_mode():
    model = tiny_bert(hidden_dropout_prob=0.5).train()
    model.bert.encoder.layer[0].eval()
    found = flock.trace(model, words=[words()]).array("mean_cosine")
    assert model.training
    assert not model.bert.encoder.layer[0].training
    calm = flock.trace(tiny_bert(), words=[words()]).array("mean_cosine")
    np.testing.assert_array_equal(found, calm)


def neox():
    settings = {**TINY, "num_hidden_layers": 2, "max_position_embeddings": 64}
    torch.manual_seed(0)
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**settings)).eval()


def test_an_unknown_family_gives_what_its_hidden_states_give():
    model = neox()
    run = flock.trace(model, words=[words()])
    for index, state in enumerate(hidden_states(model, words())):
        unit = torch.nn.functional.normalize(state[0].double(), dim=-1).numpy()
        np.testing.assert_allclose(run.states[index], unit, atol=1e-12)
    assert "attention_entropy" in run
    assert "ov_real" not in run
    assert "turning_angle_predicted" not in run
    assert "gpt_neox is not one of the families" in run.attributes["trace"]["missing"][0]
    with pytest.raises(flock.errors.InputError, match="--no-mlp need to know the parts"):
        flock.trace(model, words=[words()], change=flock.tracing.Interventions(mlp=False))


def test_a_trace_is_stored_and_opened_like_a_run(bert, tmp_path):
    run = bert[1]
    found = flock.open(run.save(tmp_path / "trace.zarr"))
    np.testing.assert_array_equal(found.states, run.states)
    assert found.attributes["trace"]["tokens"] == run.attributes["trace"]["tokens"]
    rank = run.array("effective_rank")
    np.testing.assert_allclose(found.observe(flock.effective_rank), rank, rtol=1e-5)
    assert found.plot("gram") is not None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "give one of text, words or inputs"),
        ({"words": []}, "there is no text"),
        ({"text": "hello"}, "has no tokenizer"),
        ({"words": [words(70)]}, "--truncate"),
        ({"words": [words(1)]}, "has 1 token"),
        ({"words": [words()], "reference_beta": -1.0}, "reference_beta must be >= 0"),
    ],
)
def test_bad_requests_are_sentences(arguments, sentence):
    with pytest.raises(flock.errors.InputError, match=sentence):
        flock.trace(tiny_bert(), **arguments)


def test_only_models_of_transformers_are_read():
    with pytest.raises(flock.errors.InputError, match="transformers"):
        flock.trace(torch.nn.Linear(2, 2), words=[words()])
