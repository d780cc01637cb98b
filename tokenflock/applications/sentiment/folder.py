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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
from pydantic import BaseModel

from ...errors import InputError, StoreError
from ...results.atomic import making, write_file
from ...results.identity import PART_OF, Identity, digest, require_same
from ...results.names import TRAINING
from ...results.places import check_place
from .stored import TrainingFacts, TrainingReport, require_shape

CHECKPOINT, MODEL = "checkpoint.eqx", "model.eqx"
REPORT, PICTURE = "report.json", "report.png"
OWN = (CHECKPOINT, MODEL, REPORT, PICTURE, TRAINING)
FORMAT = "tokenflock-sentiment-2"
# Of release 0.1: its checkpoint and its model do not say which training they belong to.
OLD_FORMAT = "tokenflock-sentiment-1"
# What the numbers of a training follow from.
DECISIVE = ("settings", "fingerprint", "labels", "vocabulary")
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
    if facts["format"] not in (FORMAT, OLD_FORMAT):
        raise StoreError(f"{path} is of the format {facts['format']!r}, not {FORMAT!r}")
    return _shaped(path, facts, TrainingFacts)


def identity_of(facts: Mapping[str, Any]) -> Identity:
    """What every part of a training names; empty for one of release 0.1, whose parts name nothing."""
    if facts.get("format") == OLD_FORMAT:
        return {}
    return {"training": digest({name: facts[name] for name in DECISIVE})}


def require_continuable(place: Path) -> None:
    """Refuse to go on with what does not say whose it is."""
    if read_facts(place)["format"] == OLD_FORMAT:
        raise StoreError(
            f"the training in {place} was begun by release 0.1 and is not finished ({TRAINING} is of the "
            f"format {OLD_FORMAT}, and {FORMAT} is needed to go on); start it again with --overwrite or "
            "another --out"
        )


def read_report(place: Path) -> dict[str, Any] | None:
    """The report of a training that has ended, or None."""
    path = place / REPORT
    if not path.is_file():
        return None
    report = _shaped(path, _read_json(path), TrainingReport)
    _require_own(path, report.get(PART_OF), identity_of(read_facts(place)))
    return report


def _require_own(path: Path, found: Any, expected: Identity) -> None:
    if expected:
        remedy = (
            f"it is not of the {TRAINING} beside it: take the folder from a copy, or train again"
        )
        require_same(path, found, expected, remedy)


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
    write_file(path, text)


def write_tree(path: Path, tree: Any, identity: Identity) -> None:
    """A checksum, a line that says what the tree belongs to, and its arrays."""
    buffer = io.BytesIO()
    buffer.write(json.dumps(dict(identity)).encode() + b"\n")
    eqx.tree_serialise_leaves(buffer, tree)
    content = buffer.getvalue()
    write_file(path, _checksum(content) + content)


def read_tree(path: Path, like: Tree, identity: Identity) -> Tree:
    """The tree that `write_tree` wrote; `like` has its shapes. Without an identity: as of release 0.1."""
    try:
        content = path.read_bytes()
        stated, stream = content[:CHECKSUM_BYTES], io.BytesIO(content[CHECKSUM_BYTES:])
        if stated != _checksum(stream.getvalue()):
            raise ValueError("its checksum is another")
        if identity:
            _require_own(path, json.loads(stream.readline()), identity)
        return eqx.tree_deserialise_leaves(stream, like)
    except StoreError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def _damaged(path: Path, error: Exception) -> StoreError:
    reason = str(error).strip().split("\n")[0][:200]
    return StoreError(
        f"{path} cannot be read ({type(error).__name__}: {reason}); start the training again, or take it "
        "from a copy"
    )
