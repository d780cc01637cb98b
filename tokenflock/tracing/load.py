"""Read a checkpoint safely from disk: a Hugging Face folder, a GGUF file, a model in memory.

The original implementation (transformers) builds the model; nothing is downloaded, no code of the
checkpoint is executed (`trust_remote_code=False`, pickles with `weights_only`), and every failure
is one `InputError` sentence. What can be seen from the files alone is checked before loading.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError, require
from ..memory import require_bytes
from .files import (
    CONFIG,
    find_weights,
    first_line,
    locate,
    read_config,
    tokenizer_files,
)
from .offline import INSTALL, SAFE, errors_as_sentences, import_transformers, quiet

# Where families keep the number of a layer in the name of its weights.
LAYER_WEIGHT = re.compile(r"(^|\.)(layers?|h|blocks?|albert_layers)\.\d+\.")
PRECISIONS = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
# Weights are dequantised to float32 before they are cast.
GGUF_BYTES = 4


@dataclass
class Checkpoint:
    """A model ready to run (eval mode) with its tokenizer and where both came from."""

    model: Any
    tokenizer: Any
    source: str
    name: str
    files: list[str]
    dtype: str
    notes: list[str] = field(default_factory=list)
    tokenizer_problem: str = ""

    @property
    def folder(self) -> Path | None:
        """The folder of a checkpoint in the Hugging Face layout; None for GGUF or memory."""
        path = Path(self.source) if self.source else None
        return path if path is not None and path.is_dir() else None


def open_checkpoint(source: Any, precision: str | None = None, tokenizer: Any = None) -> Checkpoint:
    """Load `source`: a folder, a .gguf file, or a model in memory (`tokenizer` goes with it).

    `precision` is "float64", "float32", "bfloat16", "float16", or None for the type in which the
    weights are stored (a GGUF file: float32). A model in memory is left as it is: if another
    precision is asked for, a copy is cast.
    Cost: reads every weight once; refused beforehand if it cannot fit (tokenflock.memory).
    """
    require(
        precision is None or precision in PRECISIONS,
        f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}",
    )
    if isinstance(source, Checkpoint):
        return source
    if isinstance(source, str | Path):
        path = locate(source)
        loaded = _open_folder(path, precision) if path.is_dir() else _open_gguf(path, precision)
        loaded.tokenizer = loaded.tokenizer if tokenizer is None else tokenizer
        return loaded
    return _from_memory(source, precision, tokenizer)


def backbone(model: Any) -> Any:
    """The stack of layers without its head: `model.base_model` where there is one."""
    return getattr(model, "base_model", model)


# --- a folder in the Hugging Face layout ---


def _open_folder(folder: Path, precision: str | None) -> Checkpoint:
    content = read_config(folder)
    weights = find_weights(folder, content)
    transformers = import_transformers()
    config = _read_settings(folder, content, transformers)
    size = weights.elements * PRECISIONS[precision] if precision else weights.bytes
    _require_memory(size, folder, precision)
    options = {"config": config, "dtype": precision or "auto"}
    model, notes = _load(folder, _headed_class(config, transformers), options)
    tokenizer, problem = _load_tokenizer(folder, {}, transformers)
    files = [folder / CONFIG, *weights.files, *tokenizer_files(folder)]
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        source=str(folder),
        name=folder.resolve().name,
        files=[str(path) for path in files],
        dtype=_dtype_name(model),
        notes=notes,
        tokenizer_problem=problem,
    )


def _read_settings(folder: Path, content: dict[str, Any], transformers: ModuleType) -> Any:
    """The model's settings; a model whose code lies in the checkpoint is refused."""
    kind = content.get("model_type")
    known = kind in transformers.CONFIG_MAPPING if isinstance(kind, str) else False
    where = folder / CONFIG
    require(
        known or "auto_map" not in content,
        f"{where}: the model {kind!r} needs code that lies in the checkpoint, and tokenflock never "
        "runs such code; use a checkpoint of a family that transformers knows",
    )
    require(
        known,
        f"{where} names the model type {kind!r}, which transformers {transformers.__version__} "
        'does not know; check "model_type" or install a newer transformers',
    )
    with errors_as_sentences(where):
        return transformers.AutoConfig.from_pretrained(folder, **SAFE)


def _headed_class(config: Any, transformers: ModuleType) -> Any:
    """The class named in config.architectures (a model with its head), or None."""
    name = next(iter(getattr(config, "architectures", None) or []), None)
    found = getattr(transformers, name, None) if isinstance(name, str) else None
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    return found if is_model else None


# --- a GGUF file ---


def _open_gguf(path: Path, precision: str | None) -> Checkpoint:
    transformers = import_transformers()
    _require_gguf_packages(path)
    options: dict[str, Any] = {"gguf_file": path.name}
    with errors_as_sentences(path):
        config = transformers.AutoConfig.from_pretrained(path.parent, **options, **SAFE)
    cast = PRECISIONS[precision] if precision not in (None, "float32") else 0
    count = _count_parameters(config, path, transformers)
    _require_memory(count * (GGUF_BYTES + cast) + path.stat().st_size, path, precision)
    options |= {"config": config, "dtype": precision or "float32"}
    causal = type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    model, notes = _load(path, transformers.AutoModelForCausalLM if causal else None, options)
    tokenizer, problem = _load_tokenizer(path.parent, {"gguf_file": path.name}, transformers)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        source=str(path),
        name=path.stem,
        files=[str(path)],
        dtype=_dtype_name(model),
        notes=notes,
        tokenizer_problem=problem,
    )


def _require_gguf_packages(path: Path) -> None:
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{path.name}: a GGUF file needs the packages gguf and accelerate: {INSTALL}"
        ) from error


def _count_parameters(config: Any, path: Path, transformers: ModuleType) -> int:
    """Number of parameters, from a model without memory (torch's meta device)."""
    import torch

    with errors_as_sentences(path), torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


# --- a model in memory ---


def _from_memory(model: Any, precision: str | None, tokenizer: Any) -> Checkpoint:
    import_transformers()
    import torch

    require(
        isinstance(model, torch.nn.Module),
        "a model is a folder, a .gguf file or a torch.nn.Module in memory; "
        f"got {type(model).__name__}",
    )
    if precision is not None and _dtype_name(model) != precision:
        model = copy.deepcopy(model).to(getattr(torch, precision))
    training = model.training
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        source="",
        name=type(model).__name__,
        files=[],
        dtype=_dtype_name(model),
        notes=["the model is in training mode; it is traced without dropout"] if training else [],
        tokenizer_problem="" if tokenizer is not None else "the model was given without one",
    )


# --- weights ---


def _load(path: Path, headed: Any, options: dict[str, Any]) -> tuple[Any, list[str]]:
    """The model with its head if all of it is there, otherwise the backbone; notes say which."""
    from transformers import AutoModel

    if headed is None:
        model, lacking, spare = _try_class(path, AutoModel, options)
        return model, [*_judge(path, lacking, model), *spare]
    model, lacking, spare = _try_class(path, headed, options)
    head = [name for name in lacking if not _in_backbone(name, model)]
    if len(head) < len(lacking) or not head:
        return model, [*_judge(path, lacking, model), *spare]
    name = type(model).__name__
    model, lacking, spare = _try_class(path, AutoModel, options)
    note = f"the head of {name} is not in the checkpoint ({head[0]}); the backbone is traced"
    return model, [note, *_judge(path, lacking, model), *spare]


def _try_class(
    path: Path, kind: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, str], list[str]]:
    """(model, {weight: what is wrong with it}, notes); mismatched shapes are not raised."""
    folder = path if path.is_dir() else path.parent
    with errors_as_sentences(path):
        model, info = kind.from_pretrained(
            folder,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            weights_only=True,
            **options,
            **SAFE,
        )
    lacking = {name: "missing" for name in info["missing_keys"]}
    for name, stored, needed in info["mismatched_keys"]:
        lacking[name] = f"stored as {tuple(stored)}, config.json asks for {tuple(needed)}"
    return model.eval(), dict(sorted(lacking.items())), _layers_left_over(info["unexpected_keys"])


def _layers_left_over(unexpected: Iterable[str]) -> list[str]:
    """Heads without a place are no matter; layers without one mean a config of another model."""
    layers = sorted(name for name in unexpected if LAYER_WEIGHT.search(name))
    if not layers:
        return []
    return [
        f"the checkpoint holds {len(layers)} weights of layers that its config.json does not have "
        f"(first: {layers[0]}); only the layers of the config are traced"
    ]


def _in_backbone(name: str, model: Any) -> bool:
    prefix = model.base_model_prefix
    return backbone(model) is model or name.startswith(f"{prefix}.")


def _judge(path: Path, lacking: dict[str, str], model: Any) -> list[str]:
    """Refuse random weights in the stack; a pooler behind it only earns a note."""
    broken = {name: why for name, why in lacking.items() if "pooler" not in name.split(".")}
    if broken:
        name, why = next(iter(broken.items()))
        shapes = "stored as" in why
        raise InputError(
            f"{path}: {len(broken)} weights of {type(model).__name__} "
            f"{'do not fit' if shapes else 'are missing'} (first: {name}, {why}); "
            f"the weights do not belong to {'this config.json' if shapes else 'this model'} "
            "or are incomplete, copy the checkpoint again"
        )
    note = "the pooler is not in the checkpoint and holds random numbers; it is not traced"
    return [note] if lacking else []


# --- tokenizer ---


def _load_tokenizer(
    folder: Path, options: dict[str, Any], transformers: ModuleType
) -> tuple[Any, str]:
    """(tokenizer, "") or (None, why not): ids can always be given instead of text."""
    if not options and not tokenizer_files(folder):
        # transformers would invent an empty tokenizer of the model's family.
        return None, f"{folder} holds no tokenizer files"
    try:
        with quiet():
            return transformers.AutoTokenizer.from_pretrained(folder, **options, **SAFE), ""
    except Exception as error:  # any failure leaves the model usable through ids
        return None, f"the tokenizer cannot be read ({first_line(error)})"


# --- sizes and types ---


def _require_memory(size: float, path: Path, precision: str | None) -> None:
    require_bytes(
        size,
        f"the weights of {path} in {precision or 'their own precision'}",
        "use a smaller model or a lower precision (set TOKENFLOCK_MEMORY_GIB to allow more)",
    )


def _dtype_name(model: Any) -> str:
    import torch

    kinds = (p.dtype for p in model.parameters() if p.is_floating_point())
    return str(next(kinds, torch.float32)).removeprefix("torch.")
