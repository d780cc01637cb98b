"""Ways to look inside a checkpoint: ours, transformers' own outputs, TransformerLens.

Time and memory do not depend on what a model has learned, so the models are random ones in the shapes
of known checkpoints and nothing has to be downloaded. Their vocabulary is small: a peer that cannot
leave out the head of the model then pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracing.offline import import_transformers

if TYPE_CHECKING:
    from ...tracing.load import Checkpoint
    from ...tracing.tokenise import Words

VOCABULARY = 1000
CONTEXT = 8192
HIDDEN = "forward with output_hidden_states"
ATTENTIONS = "forward with output_hidden_states and output_attentions"
LENS = "TransformerLens run_with_cache"

Shape = dict[str, Any]
# (configuration and head in transformers, its settings)
SHAPES: dict[str, tuple[str, str, Shape]] = {
    "GPT-2 small": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024},
    ),
    "SmolLM2-135M": (
        "LlamaConfig",
        "LlamaForCausalLM",
        {
            "hidden_size": 576,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "intermediate_size": 1536,
            "max_position_embeddings": CONTEXT,
        },
    ),
    "MiniLM-L6": (
        "BertConfig",
        "BertForMaskedLM",
        {
            "hidden_size": 384,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 1536,
        },
    ),
    "ALBERT of rxnmapper": (
        "AlbertConfig",
        "AlbertForMaskedLM",
        {
            "embedding_size": 128,
            "hidden_size": 256,
            "num_hidden_layers": 12,
            "num_attention_heads": 8,
            "intermediate_size": 512,
        },
    ),
    "a small Llama": (
        "LlamaConfig",
        "LlamaForCausalLM",
        {
            "hidden_size": 256,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "intermediate_size": 1024,
            "max_position_embeddings": CONTEXT,
        },
    ),
}


def checkpoint_of(name: str) -> Checkpoint:
    """A random model of a shape, the same one every time, or the checkpoint at a path."""
    from ...tracing.load import open_checkpoint

    return open_checkpoint(_random(name) if name in SHAPES else name)


def _random(name: str) -> Any:
    transformers = import_transformers()
    import torch

    settings, head, shape = SHAPES[name]
    # The special tokens of a configuration must lie inside the vocabulary.
    special = {f"{kind}_token_id": 0 for kind in ("bos", "eos", "pad")}
    config = getattr(transformers, settings)(vocab_size=VOCABULARY, **special, **shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, head)(config).eval()


def random_words(n: int, seed: int = 0) -> Words:
    """A text of n random tokens."""
    from ...tracing.tokenise import Words

    ids = np.random.default_rng(seed).integers(10, VOCABULARY // 2, n).tolist()
    return Words(ids=ids, labels=[str(each) for each in ids], text="")


def with_trace(checkpoint: Checkpoint, words: Words, texts: int = 1) -> np.ndarray:
    """flock.trace as a user calls it, without the states; mean cosine by layer."""
    from ...tracing import trace

    found = trace(checkpoint, words=[words] * texts, states=False)
    return np.asarray(found["mean_cosine"])


def with_statistics(checkpoint: Checkpoint, words: Words) -> np.ndarray:
    """The part of it that every text needs: one forward pass with all statistics beside it."""
    import torch

    from ...tracing.architecture import Architecture
    from ...tracing.collect import Collector
    from ...tracing.hooks import watching

    architecture = Architecture.of(checkpoint.model)
    heard = Collector(width=architecture.width, reference_beta=1.0)
    with torch.no_grad(), watching(architecture, heard):
        architecture.backbone(**_inputs(checkpoint, words))
    return np.array([row["mean_cosine"] for row in heard.states])


def with_hidden_states(checkpoint: Checkpoint, words: Words) -> Any:
    """What transformers returns: every hidden state, without batch."""
    import torch

    with torch.no_grad():
        outputs = checkpoint.model.base_model(
            **_inputs(checkpoint, words), output_hidden_states=True
        )
    return [hidden[0] for hidden in outputs.hidden_states]


def attentions_of(checkpoint: Checkpoint) -> Callable[[Words], Any]:
    """The same with the attention matrices, which only the eager implementation returns."""
    import torch

    model = checkpoint.model
    model.set_attn_implementation("eager")

    def run(words: Words) -> Any:
        wanted = {"output_hidden_states": True, "output_attentions": True}
        with torch.no_grad():
            return model.base_model(**_inputs(checkpoint, words), **wanted)

    return run


def lens_of(checkpoint: Checkpoint) -> Callable[[Words], Any]:
    """run_with_cache of TransformerLens on this model, which it rebuilds in place: give it its own."""
    import torch
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    model = checkpoint.model
    bridge = build_bridge_from_module(model, type(model).__name__, hf_config=model.config)

    def run(words: Words) -> Any:
        with torch.no_grad():
            output, cache = bridge.run_with_cache(torch.tensor([words.ids]))
        return output[0], cache

    return run


def mean_cosines(states: list[Any]) -> np.ndarray:
    """Mean of cos(h_i, h_j) over i != j of every hidden state, from the definition in float64."""
    means = []
    for state in states:
        points = state.double().numpy(force=True)
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        pairs = points @ points.T
        means.append(pairs[~np.eye(len(pairs), dtype=bool)].mean())
    return np.array(means)


def _inputs(checkpoint: Checkpoint, words: Words) -> dict[str, Any]:
    import torch

    keywords = {"use_cache": False} if hasattr(checkpoint.model.config, "use_cache") else {}
    return {"input_ids": torch.tensor([words.ids]), **keywords}
