"""Where a Transformer keeps its layers, its attention, its perceptron and its norms.

transformers names these parts differently in every family; the table below is all that is known about
them. A model of another family is still traced: its layers are found through what transformers itself
records as hidden states, and `Architecture.missing` says what cannot be read without a row in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from .spectra import Projections
    from .state_statistics import NormAffine

Scheme = Literal["post", "pre"]


@dataclass(frozen=True)
class Family:
    """Paths of the parts of one layer, below the layer; `*_model` paths start at the backbone.

    `attention` calls the attention function; the outputs of `attention_update` and `mlp_update` are
    what is added to the residual. A post-LN layer ends in `layer_norm`, and `attention_norm` stands
    between its halves; a pre-LN layer begins with `norm_before`, its stack ends in `final_norm_model`.
    """

    scheme: Scheme
    attention: str
    attention_update: str
    mlp_update: str
    queries: tuple[str, ...]
    norm_before: str | None = None
    attention_norm: str | None = None
    layer_norm: str | None = None
    first_norm_model: str | None = None
    final_norm_model: str | None = None
    # Whether the last hidden state is taken after the final norm (language models) or before it.
    ends_in_norm: bool = True


_BERT = Family(
    scheme="post",
    attention="attention.self",
    attention_update="attention.output.dense",
    mlp_update="output.dense",
    queries=("attention.self.query", "attention.self.key", "attention.self.value"),
    attention_norm="attention.output.LayerNorm",
    layer_norm="output.LayerNorm",
    first_norm_model="embeddings.LayerNorm",
)
_LLAMA = Family(
    scheme="pre",
    attention="self_attn",
    attention_update="self_attn.o_proj",
    mlp_update="mlp.down_proj",
    queries=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    norm_before="input_layernorm",
    final_norm_model="norm",
)
FAMILIES: dict[str, Family] = {
    "albert": Family(
        scheme="post",
        attention="attention",
        attention_update="attention.dense",
        mlp_update="ffn_output",
        queries=("attention.query", "attention.key", "attention.value"),
        attention_norm="attention.LayerNorm",
        layer_norm="full_layer_layer_norm",
    ),
    "bert": _BERT,
    "roberta": _BERT,
    "distilbert": Family(
        scheme="post",
        attention="attention",
        attention_update="attention.out_lin",
        mlp_update="ffn.lin2",
        queries=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        attention_norm="sa_layer_norm",
        layer_norm="output_layer_norm",
        first_norm_model="embeddings.LayerNorm",
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "gpt2": Family(
        scheme="pre",
        attention="attn",
        attention_update="attn.c_proj",
        mlp_update="mlp.c_proj",
        queries=("attn.c_attn",),
        norm_before="ln_1",
        final_norm_model="ln_f",
    ),
    "vit": Family(
        scheme="pre",
        attention="attention",
        attention_update="attention.o_proj",
        mlp_update="mlp.fc2",
        queries=("attention.q_proj", "attention.k_proj", "attention.v_proj"),
        norm_before="layernorm_before",
        final_norm_model="layernorm",
        ends_in_norm=False,
    ),
}


@dataclass(frozen=True)
class Architecture:
    """One model with the parts that were found."""

    model: nn.Module
    backbone: nn.Module
    kind: str
    layers: tuple[nn.Module, ...]
    family: Family | None
    # The class of a model of which this is the encoder; "" for a model that is traced whole.
    encoder_of: str = ""
    # One entry per norm, for as long as this object lasts: weights may change later.
    _affines: dict[int, NormAffine] = field(default_factory=dict)

    @staticmethod
    def of(model: nn.Module) -> Architecture:
        """Look a model over, of an encoder with a decoder the encoder."""
        if getattr(model, "config", None) is None:
            raise InputError(
                f"{type(model).__name__} has no config; trace reads transformers models "
                "(PreTrainedModel), in memory or from a folder"
            )
        whole, model = model, _encoder(model)
        backbone, config = getattr(model, "base_model", model), model.config
        kind = getattr(config, "model_type", None) or type(model).__name__
        layers = _layers(backbone)
        if not layers or not getattr(config, "num_hidden_layers", len(layers)):
            raise InputError(
                f"{kind} has no layers to trace; check num_hidden_layers in its config"
            )
        family = FAMILIES.get(kind)
        if family is not None and not _fits(family, backbone, layers):
            family = None
        encoder_of = "" if whole is model else type(whole).__name__
        return Architecture(model, backbone, kind, layers, family, encoder_of)

    @property
    def config(self) -> Any:
        """The settings of the model."""
        return self.model.config

    @property
    def passes(self) -> int:
        """Layers a token goes through: more than there are modules where a layer is shared."""
        count = int(getattr(self.config, "num_hidden_layers", len(self.layers)))
        return count * int(getattr(self.config, "inner_group_num", 1))

    @property
    def width(self) -> int:
        """Dimension d of a token."""
        size = getattr(self.config, "hidden_size", None)
        if size is None:
            raise InputError(
                f"{self.kind} has no single stack of layers; trace one of its parts (its text model, "
                "its encoder) as a model in memory"
            )
        return int(size)

    @property
    def scheme(self) -> Scheme | None:
        """Where the norms stand, if known."""
        return None if self.family is None else self.family.scheme

    def part(self, layer: nn.Module, name: str) -> nn.Module | None:
        """A part of a layer by its name in `Family`."""
        path = getattr(self.family, name, None)
        return None if path is None else layer.get_submodule(path)

    def first_affine(self) -> NormAffine | None:
        """Gain and bias of the norm that ends the embedding, None if there is none."""
        return self._affine(self.family and self.family.first_norm_model)

    def final_affine(self) -> NormAffine | None:
        """Gain and bias of the norm that ends a pre-LN stack."""
        return self._affine(self.family and self.family.final_norm_model)

    def layer_affine(self, layer: nn.Module) -> NormAffine | None:
        """Gain and bias of the norm that ends a post-LN layer."""
        return self._affine_of(self.part(layer, "layer_norm"))

    def _affine(self, path: str | None) -> NormAffine | None:
        return None if path is None else self._affine_of(self.backbone.get_submodule(path))

    def _affine_of(self, norm: Any) -> NormAffine | None:
        if norm is None:
            return None
        if id(norm) not in self._affines:
            from .state_statistics import NormAffine

            bias = getattr(norm, "bias", None)
            bias = None if bias is None else bias.detach()
            self._affines[id(norm)] = NormAffine(norm.weight.detach(), bias)
        return self._affines[id(norm)]

    def projections(self) -> list[Projections] | None:
        """Queries, keys, values and output of every distinct layer, split into heads."""
        if self.family is None:
            return None
        return [_projections(self, layer) for layer in self.layers]

    def missing(self) -> list[str]:
        """What cannot be read of this model, one sentence each."""
        if self.family is not None:
            return []
        known = ", ".join(sorted(FAMILIES))
        return [
            f"{self.kind} is not one of the families whose parts are known ({known}): spectra of the "
            "weights, speeds against theory and interventions on single parts are left out"
        ]


def _encoder(model: Any) -> Any:
    """The encoder of an encoder-decoder, which reads a text as it is; any other model itself."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return model
    find = getattr(model, "get_encoder", None)
    encoder = None if find is None else find()
    if encoder is None or not hasattr(encoder, "config"):
        raise InputError(
            f"{type(model).__name__} is an encoder and a decoder whose encoder transformers does not "
            "name; trace that part as a model in memory"
        )
    return encoder


def _layers(backbone: nn.Module) -> tuple[nn.Module, ...]:
    """Modules whose outputs transformers records as hidden states, or the longest list of layers."""
    from torch import nn

    for home in backbone.modules():
        recorded = (getattr(home, "_can_record_outputs", None) or {}).get("hidden_states")
        target = getattr(recorded, "target_class", recorded)
        if isinstance(target, type):
            found = tuple(part for part in backbone.modules() if isinstance(part, target))
            if found:
                return found
    lists = [part for part in backbone.modules() if isinstance(part, nn.ModuleList)]
    return tuple(max(lists, key=len, default=()))


def _fits(family: Family, backbone: nn.Module, layers: tuple[nn.Module, ...]) -> bool:
    """Whether every path of the table exists: a later transformers may rename parts."""
    inside = [family.attention, family.attention_update, family.mlp_update, *family.queries]
    norms = (family.norm_before, family.attention_norm, family.layer_norm)
    inside += [path for path in norms if path]
    outside = [path for path in (family.first_norm_model, family.final_norm_model) if path]
    try:
        for path in outside:
            backbone.get_submodule(path)
        for layer in layers:
            for path in inside:
                layer.get_submodule(path)
    except AttributeError:
        return False
    return bool(layers)


def _projections(architecture: Architecture, layer: nn.Module) -> Projections:
    """Maps of the token that attention reads: the gain of a norm before it belongs to them."""
    from .spectra import Projections

    assert architecture.family is not None
    config = architecture.config
    heads = int(config.num_attention_heads)
    groups = int(getattr(config, "num_key_value_heads", None) or heads)
    matrices = [_matrix(layer.get_submodule(path)) for path in architecture.family.queries]
    if len(matrices) == 1:
        matrices = list(matrices[0].chunk(3, dim=0))
    norm: Any = architecture.part(layer, "norm_before")
    gain = 1.0 if norm is None else norm.weight.detach()
    query, key, value = (matrix * gain for matrix in matrices)
    output = _matrix(layer.get_submodule(architecture.family.attention_update))
    size = query.shape[0] // heads
    attention = layer.get_submodule(architecture.family.attention)
    return Projections(
        query=query.reshape(heads, size, -1),
        key=key.reshape(groups, size, -1),
        value=value.reshape(groups, size, -1),
        output=output.reshape(output.shape[0], heads, size),
        scaling=float(getattr(attention, "scaling", size**-0.5)),
    )


def _matrix(module: Any) -> Any:
    """The matrix W of x -> W x: GPT-2 keeps its transpose."""
    weight = module.weight.detach()
    return weight.T if type(module).__name__ == "Conv1D" else weight
