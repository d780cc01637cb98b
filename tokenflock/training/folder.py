"""The folder of a training: checked before anything is computed, and never half written.

    folder/
      training.json    settings, where the reviews came from, the vocabulary: all that --resume needs
      checkpoint.eqx   both networks after the last finished epoch (removed at the end)
      model.eqx        the best epoch of both networks
      report.json      accuracies, leaders, times: what --json prints
      report.png       the plane and its leaders; the accuracy by epoch

Every file is written beside its place and moved there in one step; report.json comes last.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
from pydantic import BaseModel

from ..errors import InputError, StoreError
from ..lab.folder import check_place, making, writing
from ..store import SCRATCH
from .stored import Facts, Report, require_shape

TRAINING, CHECKPOINT, MODEL = "training.json", "checkpoint.eqx", "model.eqx"
REPORT, PICTURE = "report.json", "report.png"
OWN = (CHECKPOINT, MODEL, REPORT, PICTURE, TRAINING)
FORMAT = "tokenflock-sentiment-1"
CHECKSUM_BYTES = 16
Tree = TypeVar("Tree")


def check_training_place(place: Path, overwrite: bool) -> None:
    """Refuse a folder that a new training must not touch, before anything is computed."""
    ways = "continue it with --resume, or replace it with --overwrite"
    check_place(place, overwrite, lambda at: (at / TRAINING).is_file(), "a training", ways)


def begin(place: Path, facts: dict[str, Any]) -> None:
    """Make the folder, with what defines the training; of an earlier one in it nothing is left."""
    with making(place):
        place.mkdir(parents=True, exist_ok=True)
        # Without its report first: a folder that says nothing is better than one that is wrong.
        for name in (REPORT, *OWN):
            (place / name).unlink(missing_ok=True)
        write_json(place / TRAINING, {"format": FORMAT, **facts})


def read_facts(place: Path) -> dict[str, Any]:
    """What defines the training in a folder."""
    path = place / TRAINING
    if not path.is_file():
        raise InputError(f"there is no training in {place} (no {TRAINING}); name the folder of one")
    facts = _read_json(path)
    if not isinstance(facts, dict) or "format" not in facts:
        raise _damaged(path, ValueError("it does not say its format"))
    if facts["format"] != FORMAT:
        raise StoreError(f"{path} is of the format {facts['format']!r}, not {FORMAT!r}")
    return _shaped(path, facts, Facts)


def read_report(place: Path) -> dict[str, Any] | None:
    """The report of a training that has ended, or None."""
    path = place / REPORT
    return _shaped(path, _read_json(path), Report) if path.is_file() else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _shaped(path: Path, content: Any, shape: type[BaseModel]) -> dict[str, Any]:
    """The content of a file, if it has all that is read from it."""
    try:
        require_shape(content, shape)
    except ValueError as error:
        raise _damaged(path, error) from error
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Strict JSON that appears when it is complete."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_whole(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def write_tree(path: Path, tree: Any) -> None:
    """Arrays of a tree after a checksum of them."""
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, tree)
    content = buffer.getvalue()
    write_whole(path, lambda scratch: scratch.write_bytes(_checksum(content) + content))


def read_tree(path: Path, like: Tree) -> Tree:
    """The tree that `write_tree` wrote; `like` has its shapes."""
    try:
        content = path.read_bytes()
        stated, arrays = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
        if stated != _checksum(arrays):
            raise ValueError("its checksum is another")
        return eqx.tree_deserialise_leaves(io.BytesIO(arrays), like)
    except Exception as error:
        raise _damaged(path, error) from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside its place, and move it there."""
    with writing(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=SCRATCH) as folder:
        scratch = Path(folder) / path.name
        write(scratch)
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(scratch, path)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def _damaged(path: Path, error: Exception) -> StoreError:
    reason = str(error).strip().split("\n")[0][:200]
    return StoreError(
        f"{path} cannot be read ({type(error).__name__}: {reason}); start the training again, or take it "
        "from a copy"
    )
