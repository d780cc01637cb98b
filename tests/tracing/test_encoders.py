"""Encoder-decoders are traced by their encoder: the states of transformers' own encoder, exactly."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tokenflock as flock  # noqa: E402
from tokenflock.cli import app  # noqa: E402
from tokenflock.tracing.tokenise import Words  # noqa: E402

IDS = [(3 + 7 * i) % 97 for i in range(12)]
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
}
BART = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
LED = {
    **{name: size for name, size in BART.items() if name != "max_position_embeddings"},
    "max_encoder_position_embeddings": 64,
    "max_decoder_position_embeddings": 64,
    "attention_window": 4,
}
FAMILIES = {
    "T5ForConditionalGeneration": T5,
    "T5Model": T5,
    "T5EncoderModel": {**T5, "num_layers": 1},
    "MT5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": BART,
    "MBartForConditionalGeneration": BART,
    "MarianMTModel": BART,
    "PegasusForConditionalGeneration": BART,
    "M2M100ForConditionalGeneration": BART,
    "LEDForConditionalGeneration": LED,
}
CONFIGS = ("MT5", "T5", "MBart", "Bart", "Marian", "Pegasus", "M2M100", "LED")


def random_model(name):
    torch.manual_seed(0)
    family = next(each for each in CONFIGS if name.startswith(each))
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = getattr(transformers, f"{family}Config")(
        vocab_size=97, **special, **FAMILIES.get(name, BART)
    )
    return getattr(transformers, name)(config).eval()


def plain_states(encoder):
    """What transformers itself gives, without anything of ours beside it."""
    with torch.no_grad():
        output = encoder(input_ids=torch.tensor([IDS]), output_hidden_states=True)
    return np.stack([state[0].double().numpy() for state in output.hidden_states])


def assert_traced(run, states):
    directions = states / np.linalg.norm(states, axis=-1, keepdims=True)
    np.testing.assert_allclose(run.states, directions, atol=1e-12)
    np.testing.assert_allclose(run.array("norms"), np.linalg.norm(states, axis=-1), rtol=1e-12)
    gram = directions @ directions.swapaxes(1, 2)
    n = states.shape[1]
    cosines = (gram.sum((1, 2)) - n) / (n * (n - 1))
    np.testing.assert_allclose(run.array("mean_cosine"), cosines, atol=1e-12)


def words():
    return [Words(IDS, [str(i) for i in IDS], "")]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_states_are_those_of_the_encoder(name):
    model = random_model(name)
    run = flock.trace(model, words=words())
    assert_traced(run, plain_states(model.get_encoder()))
    told = " ".join(run.attributes["trace"]["notes"])
    assert (f"the encoder of {name} is traced" in told) == (name != "T5EncoderModel")
    assert run.attributes["trace"]["model"]["layers"] == FAMILIES[name].get(
        "num_layers", FAMILIES[name].get("encoder_layers")
    )


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "BartModel"])
def test_an_encoder_given_by_itself(name):
    encoder = random_model(name).get_encoder()
    run = flock.trace(encoder, words=words())
    assert_traced(run, plain_states(encoder))
    assert run.attributes["trace"]["notes"] == []


def test_an_encoder_of_a_known_family_is_read_as_one():
    """A BERT in front of a decoder: spectra and speeds as of any BERT."""
    sizes = {
        "vocab_size": 97,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    torch.manual_seed(0)
    encoder = transformers.BertModel(transformers.BertConfig(**sizes))
    decoder = transformers.BertLMHeadModel(
        transformers.BertConfig(**sizes, is_decoder=True, add_cross_attention=True)
    )
    both = transformers.EncoderDecoderModel(encoder=encoder, decoder=decoder).eval()
    alone, found = (flock.trace(each, words=words()) for each in (encoder.eval(), both))
    for name in ("mean_cosine", "ov_real", "attention_entropy", "turning_angle_predicted"):
        np.testing.assert_array_equal(found.array(name), alone.array(name))


def test_interventions_reach_the_encoder():
    model = random_model("BartForConditionalGeneration")
    before = model.config.encoder_layers
    run = flock.trace(
        model, words=words(), change=flock.tracing.Interventions(repeat=2, start="random")
    )
    assert len(run.time) == 7
    assert model.config.encoder_layers == before
    with pytest.raises(flock.errors.InputError, match="--no-mlp need to know the parts"):
        flock.trace(model, words=words(), change=flock.tracing.Interventions(mlp=False))


def test_a_t5_folder_on_the_command_line(tmp_path):
    model = random_model("T5ForConditionalGeneration")
    model.save_pretrained(tmp_path / "t5")
    (tmp_path / "ids.txt").write_text(" ".join(map(str, IDS)) + "\n")
    words = ["trace", str(tmp_path / "t5"), "--tokens", str(tmp_path / "ids.txt"), "--json"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    norms = np.linalg.norm(plain_states(model.get_encoder()), axis=-1)
    np.testing.assert_allclose(found["layers"]["norm"], norms.mean(axis=1), rtol=1e-6)
    assert found["model"]["family"] == "t5"
    assert any("the encoder of T5ForConditionalGeneration" in note for note in found["notes"])
