"""What a checkpoint is on the disk, looked at before anything of it is loaded.

A folder in the Hugging Face layout holds config.json, one or several weight files and usually a
tokenizer. Here those are found, and the cheap checks are made (headers, lengths, shards), so that
a broken download is one sentence and costs no memory. Nothing here needs torch.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError, require

LOCAL_ONLY = "tokenflock reads local checkpoints only, it never downloads"
CONFIG = "config.json"
CONFIG_LIMIT = 2**24
# safetensors itself refuses a larger header.
HEADER_LIMIT = 100_000_000
# In the order in which transformers looks for them; an index names the shards.
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
VOCABULARY = "vocab.txt"
# Files of which AutoTokenizer needs at least one.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "tiktoken.model",
    VOCABULARY,
)
# These alone do not say how a text is cut into pieces.
SETTINGS_FILES = ("tokenizer_config.json", VOCABULARY)
STORED_BYTES = {
    "float64": 8,
    "double": 8,
    "float32": 4,
    "float": 4,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
}


@dataclass(frozen=True)
class WeightFiles:
    """The weight files of a folder and their size: `bytes` on disk, `elements` numbers."""

    files: list[Path]
    bytes: int
    elements: int


def locate(source: str | Path) -> Path:
    """The path of an existing folder or GGUF file, or a sentence."""
    path = Path(source).expanduser()
    try:
        found = path.exists()
    except OSError as error:
        raise InputError(f"cannot look at {path}: {reason(error)}") from error
    require(
        found,
        f"there is no file or folder {path}; {LOCAL_ONLY}: give a folder in the Hugging Face layout "
        "(config.json with its weights) or a .gguf file",
    )
    if not path.is_dir():
        _require_gguf(path)
    return path


def _require_gguf(path: Path) -> None:
    magic = read_start(path, 4)
    if magic == b"GGUF":
        return
    if path.suffix == ".gguf":
        raise InputError(f"{path} is not a GGUF file (it starts with {magic!r}); copy it again")
    raise InputError(
        f"{path} is a file, and only a .gguf file is read by itself; "
        f"give the folder that holds {CONFIG} and the weights"
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json."""
    path = folder / CONFIG
    if not path.exists():
        raise InputError(f"{folder} has no {CONFIG}; {_config_advice(folder)}")
    text = read_start(path, CONFIG_LIMIT)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable JSON ({first_line(error)})") from error
    require(
        isinstance(content, dict),
        f"{path} holds a {type(content).__name__}, not a dictionary of settings",
    )
    return content


def _config_advice(folder: Path) -> str:
    inside = sorted(folder.glob("*.gguf"))
    if inside:
        return f"to trace the GGUF file in it, give its own path: {inside[0]}"
    return "a checkpoint folder holds it beside the weights (Hugging Face layout)"


def find_weights(folder: Path, config: dict[str, Any]) -> WeightFiles:
    """The weight files transformers will read, each checked as far as its header tells."""
    name = next((name for name in WEIGHTS if (folder / name).exists()), None)
    if name is None:
        raise InputError(
            f"{folder} has no weights; it needs one of model.safetensors, pytorch_model.bin, "
            f"or shards with their index; {LOCAL_ONLY}"
        )
    files = _shards(folder / name) if name.endswith(".json") else [folder / name]
    sizes = [_measure(path, config) for path in files]
    return WeightFiles(files, sum(s[0] for s in sizes), sum(s[1] for s in sizes))


def _shards(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        paths = [index.parent / name for name in names]
    except OSError as error:
        raise InputError(f"cannot read {index}: {reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{index} is not a readable list of shards; copy it again") from error
    missing = [path.name for path in paths if not path.exists()]
    require(
        not missing,
        f"{index.parent} lacks {len(missing)} of its {len(paths)} weight files "
        f"({', '.join(missing[:3])}); copy them into the folder",
    )
    return paths


def _measure(path: Path, config: dict[str, Any]) -> tuple[int, int]:
    """(bytes, elements) of one weight file; of a pickle from its size and the declared type."""
    if path.suffix == ".safetensors":
        return _safetensors_size(path)
    read_start(path, 1)
    size = path.stat().st_size
    require(size > 0, f"{path} is empty; copy it again")
    declared = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return size, size // STORED_BYTES.get(declared.removeprefix("torch."), 4)


def _safetensors_size(path: Path) -> tuple[int, int]:
    """Read the header: 8 bytes with its length, then JSON naming type, shape and byte range."""
    size = path.stat().st_size
    length = int.from_bytes(read_start(path, 8), "little")
    damaged = f"{path} is damaged: "
    again = "; copy it again"
    require(size >= 8, f"{damaged}{size} bytes are too few for a safetensors file{again}")
    require(
        length <= HEADER_LIMIT and 8 + length <= size,
        f"{damaged}its header claims {length} bytes, the file has {size}{again}",
    )
    try:
        header = json.loads(read_start(path, 8 + length)[8:])
        tensors = [value for name, value in header.items() if name != "__metadata__"]
        end = max((int(tensor["data_offsets"][1]) for tensor in tensors), default=0)
        elements = sum(math.prod(tensor["shape"]) for tensor in tensors)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise InputError(f"{damaged}its header is not readable{again}") from error
    require(
        size == 8 + length + end,
        f"{damaged}its header promises {8 + length + end} bytes, the file has {size}{again}",
    )
    return end, elements


def tokenizer_files(folder: Path) -> list[Path]:
    """The files a tokenizer can be made of."""
    return [folder / name for name in TOKENIZER_FILES if (folder / name).exists()]


def only_vocabulary(folder: Path) -> bool:
    """Whether vocab.txt is there and nothing else says how a text is cut."""
    names = {path.name for path in tokenizer_files(folder)}
    return VOCABULARY in names and names <= set(SETTINGS_FILES)


def read_start(path: Path, limit: int) -> bytes:
    """At most `limit` bytes of a file, or a sentence."""
    try:
        with path.open("rb") as stream:
            return stream.read(limit)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """What the system said, without the path and the number."""
    return (error.strerror or first_line(error)).lower()


def first_line(error: BaseException) -> str:
    """The first line of an error's text, shortened: enough for one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
