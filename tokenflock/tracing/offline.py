"""transformers, held off the network, kept quiet, its failures turned into sentences."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import Any

from ..errors import InputError
from .files import LOCAL_ONLY, first_line, reason

INSTALL = 'pip install "tokenflock[trace]"'
# Every `from_pretrained` gets these: no download, no code from the checkpoint.
SAFE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def import_transformers() -> ModuleType:
    """transformers, told to stay off the network; a sentence if the extra is not installed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise InputError(
            f"trace needs torch and transformers ({first_line(error)}): {INSTALL}"
        ) from error
    return transformers


@contextmanager
def quiet() -> Iterator[None]:
    """No bars, load reports or warnings of transformers inside; its settings are put back."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), _without_gguf_bar():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _without_gguf_bar() -> Iterator[None]:
    """The bar of the GGUF reader does not listen to transformers' own switch."""
    reader = sys.modules.get("transformers.modeling_gguf_pytorch_utils")
    bar = getattr(reader, "tqdm", None)
    if reader is None or bar is None:
        yield
        return
    reader.tqdm = partial(bar, disable=True)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        reader.tqdm = bar  # type: ignore[attr-defined]


@contextmanager
def errors_as_sentences(path: Path) -> Iterator[None]:
    """Run transformers quietly and turn whatever it raises into one sentence about `path`."""
    try:
        with quiet():
            yield
    except InputError:
        raise
    except UnpicklingError as error:
        raise InputError(_pickle_sentence(path, error)) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}; {LOCAL_ONLY}") from error
    except MemoryError as error:
        raise InputError(f"{path} does not fit in memory; use a smaller model") from error
    except Exception as error:  # damaged files raise whatever their reader trips over
        raise InputError(
            f"{path} cannot be loaded ({type(error).__name__}: {first_line(error)}); "
            "it may be truncated or damaged: copy it again"
        ) from error


def _pickle_sentence(path: Path, error: UnpicklingError) -> str:
    found = [line for line in str(error).splitlines() if "GLOBAL" in line]
    what = f" ({found[0].strip()})" if found else ""
    return (
        f"the pickle in {path} holds more than tensors{what} and may run code when read, or is "
        "damaged; it was refused and nothing of it was executed; use a safetensors copy"
    )
