"""Reading checkpoints: the weights that come out are those that went in; bad files are sentences."""

import contextlib
import json
import os
import pickle
import shutil
import socket
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from real_parts import (
    minilm_folder,
    rxnmapper_folder,
    smollm_file,
    tiny_albert,
    tiny_bert,
    tiny_gguf,
    tiny_gpt2,
    tiny_llama,
    tiny_vit,
)

from tokenflock.errors import InputError
from tokenflock.tracing.load import backbone, open_checkpoint

MAKERS = [tiny_albert, tiny_bert, tiny_llama, tiny_gpt2, tiny_vit]
IDS = torch.tensor([[5, 17, 3, 60, 17, 96]])


def inputs(model):
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32)}
    return {"input_ids": IDS}


def logits(model):
    with torch.no_grad():
        return model(**inputs(model)).logits


def saved(model, folder, **options):
    model.save_pretrained(folder, **options)
    return folder


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refusal(source, **options):
    with pytest.raises(InputError) as caught:
        open_checkpoint(source, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def bert(tmp_path):
    return saved(tiny_bert(), tmp_path / "bert")


# --- what is read is what was stored ---


@pytest.mark.parametrize("make", MAKERS)
def test_a_saved_model_comes_back_with_its_head_bit_for_bit(make, tmp_path):
    model = make()
    found = open_checkpoint(saved(model, tmp_path / "saved"))
    assert type(found.model) is type(model)
    assert not found.model.training
    assert found.dtype == "float32"
    assert found.notes == []
    stored, read = model.state_dict(), found.model.state_dict()
    assert stored.keys() == read.keys()
    assert all(torch.equal(stored[name], read[name]) for name in stored)
    # Not bit for bit: a convolution may sum in another order where its weights lie in memory.
    assert torch.allclose(logits(found.model), logits(model), atol=1e-5)
    assert backbone(found.model) is not found.model


def test_random_models_are_reproducible_and_their_attention_is_not_flat():
    assert torch.equal(logits(tiny_bert()), logits(tiny_bert()))
    assert not torch.equal(logits(tiny_bert()), logits(tiny_bert(seed=1)))
    model = tiny_bert()
    model.set_attn_implementation("eager")
    weights = model(IDS, output_attentions=True).attentions[0]
    assert weights.max() > 2 / IDS.shape[1]


def test_the_real_albert_holds_the_numbers_of_its_file(capfd):
    folder = rxnmapper_folder()
    found = open_checkpoint(folder)
    stored = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    name = "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"
    assert type(found.model).__name__ == "AlbertForMaskedLM"
    assert torch.equal(backbone(found.model).get_parameter(name), stored[f"albert.{name}"])
    # 767,616 with the pooler (256 x 256 + 256), which a masked language model does not have.
    assert sum(p.numel() for p in backbone(found.model).parameters()) == 767_616 - 65_792
    assert found.name == "albert_heads_8_uspto_all_1310k"
    assert {os.path.basename(f) for f in found.files} >= {"config.json", "pytorch_model.bin"}
    assert capfd.readouterr() == ("", "")


def test_the_stored_type_is_kept_unless_another_is_asked_for(tmp_path):
    folder = saved(tiny_llama().to(torch.bfloat16), tmp_path / "half")
    stored, wide = open_checkpoint(folder), open_checkpoint(folder, precision="float64")
    assert (stored.dtype, wide.dtype) == ("bfloat16", "float64")
    for narrow, cast in zip(stored.model.parameters(), wide.model.parameters(), strict=True):
        assert torch.equal(narrow.double(), cast)


def test_shards_are_put_together(tmp_path):
    model = tiny_bert()
    folder = saved(model, tmp_path / "shards", max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    assert torch.equal(logits(open_checkpoint(folder).model), logits(model))


def test_a_model_in_memory_is_used_as_it_is_and_cast_only_as_a_copy():
    model = tiny_bert()
    assert open_checkpoint(model).model is model
    wide = open_checkpoint(model, precision="float64")
    assert (wide.dtype, open_checkpoint(model).dtype) == ("float64", "float32")
    assert torch.allclose(logits(wide.model).float(), logits(model), atol=1e-4)
    noted = open_checkpoint(model.train())
    assert "training mode" in noted.notes[0]
    assert model.training


def test_a_head_that_is_missing_leaves_the_backbone(tmp_path):
    model = tiny_bert()
    folder = saved(model.bert, tmp_path / "bare")
    edit_config(folder, architectures=["BertForMaskedLM"])
    found = open_checkpoint(folder)
    assert type(found.model).__name__ == "BertModel"
    assert any("head of BertForMaskedLM" in note for note in found.notes)
    assert any("pooler" in note for note in found.notes)
    with torch.no_grad():
        ours, theirs = found.model(IDS), model.bert(IDS)
    assert torch.equal(ours.last_hidden_state, theirs.last_hidden_state)


def test_an_unknown_class_name_is_the_backbone(bert):
    edit_config(bert, architectures=["BertForSomethingElse"])
    assert type(open_checkpoint(bert).model).__name__ == "BertModel"


def test_settings_of_transformers_are_put_back(bert):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    open_checkpoint(bert)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


# --- GGUF ---


@pytest.fixture
def llama_gguf(tmp_path):
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    return tmp_path / "tiny.gguf", tiny_gguf(tmp_path / "tiny.gguf")


def test_a_gguf_file_gives_model_and_tokenizer(llama_gguf, capfd):
    path, weights = llama_gguf
    found = open_checkpoint(path)
    assert type(found.model).__name__ == "LlamaForCausalLM"
    assert (found.name, found.files, found.dtype) == ("tiny", [str(path)], "float32")
    for layer in range(2):
        value = found.model.model.layers[layer].self_attn.v_proj.weight
        assert torch.equal(value, torch.tensor(weights[f"blk.{layer}.attn_v.weight"]))
    assert found.tokenizer.convert_ids_to_tokens(found.tokenizer('a!"')["input_ids"]) == ["a", '!"']
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kept", [2, 40, 20_000, 50_000, -100])
def test_a_truncated_gguf_is_a_sentence(llama_gguf, kept):
    path, _ = llama_gguf
    path.write_bytes(path.read_bytes()[:kept])
    assert str(path) in refusal(path)


# --- bad checkpoints ---


def drop_weights(folder):
    (folder / "model.safetensors").unlink()


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])


def empty_weights(folder):
    (folder / "model.safetensors").write_bytes(b"")


def overwrite_header(folder):
    path = folder / "model.safetensors"
    path.write_bytes(b"\xff" * 1000)


def scramble_header(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[8:40] = b"x" * 32
    path.write_bytes(content)


def lie_about_type(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"dtype":"F32"', b'"dtype":"F64"', 1))


def broken_pickle(folder):
    drop_weights(folder)
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04 not a zip archive")


def folder_as_weights(folder):
    drop_weights(folder)
    (folder / "model.safetensors").mkdir()


def list_as_config(folder):
    (folder / "config.json").write_text("[1, 2]")


def broken_config(folder):
    (folder / "config.json").write_text('{"model_type": ')


BAD = [
    (lambda f: (f / "config.json").unlink(), "has no config.json"),
    (broken_config, "not readable JSON"),
    (list_as_config, "not a dictionary"),
    (lambda f: edit_config(f, model_type="fooformer"), "'fooformer', which transformers"),
    (
        lambda f: edit_config(f, model_type="foo", auto_map={"AutoModel": "modeling_foo.Foo"}),
        "never runs such code",
    ),
    (lambda f: edit_config(f, num_attention_heads=5), "cannot be loaded"),
    (drop_weights, "has no weights"),
    (cut_weights, "its header promises"),
    (empty_weights, "too few"),
    (overwrite_header, "its header claims"),
    (scramble_header, "its header is not readable"),
    (lie_about_type, "truncated or damaged"),
    (broken_pickle, "truncated or damaged"),
    (folder_as_weights, "is a directory"),
    (lambda f: edit_config(f, hidden_size=64), "stored as"),
    (
        lambda f: edit_config(f, vocab_size=101),
        "stored as (97, 32), config.json asks for (101, 32)",
    ),
    (lambda f: edit_config(f, num_hidden_layers=4), "are missing (first: bert.encoder.layer.3"),
]


@pytest.mark.parametrize(("damage", "says"), BAD)
def test_a_bad_folder_is_one_sentence(bert, damage, says):
    damage(bert)
    sentence = refusal(bert)
    assert says in sentence
    assert str(bert) in sentence


def test_a_missing_shard_is_named(tmp_path):
    folder = saved(tiny_bert(), tmp_path / "shards", max_shard_size="20KB")
    gone = sorted(folder.glob("*.safetensors"))[1]
    gone.unlink()
    assert gone.name in refusal(folder)


class Marker:
    """A pickle that writes a file when it is read by an ordinary unpickler."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize(
    "store", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))]
)
def test_a_pickle_never_runs_its_code(bert, tmp_path, store):
    drop_weights(bert)
    marker = tmp_path / "executed"
    weights = bert / "pytorch_model.bin"
    store({"weight": Marker(marker)}, weights)
    assert "nothing of it was executed" in refusal(bert)
    assert not marker.exists()
    # The control: the trap works, an ordinary reader springs it.
    with contextlib.suppress(RuntimeError):
        torch.load(weights, weights_only=False)
    assert marker.exists()


def test_nothing_reaches_for_the_network(bert, monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert open_checkpoint(bert).tokenizer is None
    assert "never downloads" in refusal("bert-base-uncased")
    drop_weights(bert)
    assert "never downloads" in refusal(bert)


def test_a_file_that_is_no_gguf_is_pointed_to_its_folder(bert, tmp_path):
    assert "give the folder" in refusal(bert / "model.safetensors")
    (tmp_path / "model.gguf").write_bytes(b"GGML and more")
    assert "not a GGUF file" in refusal(tmp_path / "model.gguf")
    assert str(tmp_path / "model.gguf") in refusal(tmp_path)


def test_a_model_larger_than_memory_is_refused_before_it_is_read(bert, monkeypatch):
    # float32 needs twice the memory of bfloat16: the limit lies between the two.
    size = (bert / "model.safetensors").stat().st_size
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", str(0.75 * size / 2**30))
    assert "GiB, the limit is" in refusal(bert)
    assert open_checkpoint(bert, precision="bfloat16").dtype == "bfloat16"


def test_a_gguf_larger_than_memory_is_refused(llama_gguf, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "1e-5")
    assert "GiB, the limit is" in refusal(llama_gguf[0])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_forbidden_file_is_a_sentence(bert):
    (bert / "model.safetensors").chmod(0)
    assert "permission denied" in refusal(bert)


def test_a_missing_extra_says_what_to_install(bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert 'pip install "tokenflock[trace]"' in refusal(bert)


def test_odd_requests_are_sentences(bert):
    assert "float64, float32" in refusal(bert, precision="int8")
    assert "got int" in refusal(3)


# --- the large ones ---


@pytest.mark.slow
def test_minilm_opens_with_its_tokenizer():
    found = open_checkpoint(minilm_folder())
    assert type(found.model).__name__ == "BertModel"
    assert found.notes == []
    assert found.tokenizer("hello world")["input_ids"] == [101, 7592, 2088, 102]


@pytest.mark.slow
def test_smollm_opens_from_gguf_and_predicts_english():
    found = open_checkpoint(smollm_file())
    ids = torch.tensor([found.tokenizer("The capital of France is")["input_ids"]])
    with torch.no_grad():
        best = found.model(ids).logits[0, -1].argmax().item()
    assert found.tokenizer.decode([best]).strip() == "Paris"


def test_a_copied_real_checkpoint_without_its_vocabulary_still_opens(tmp_path):
    shutil.copytree(rxnmapper_folder(), tmp_path / "albert")
    for name in ("vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / "albert" / name).unlink()
    found = open_checkpoint(tmp_path / "albert")
    assert found.tokenizer is None
    assert "no tokenizer files" in found.tokenizer_problem
