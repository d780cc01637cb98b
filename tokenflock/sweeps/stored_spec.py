"""Which sweep a folder holds: its spec, if that is still the one the sweep was started with."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from ..errors import InputError, StoreError
from ..lab.files import read_text
from ..results.durable import how_to_continue, mark, mark_of
from ..results.names import JOURNAL, SWEEP_SPEC, SWEEP_STORE
from ..results.strict_json import plain
from .arrays import GROUP
from .journal import Header, Journal
from .plan import SWEEP, Sweep, parse_sweep


def stored_sweep(folder: Path, taken_for: Sweep | None = None) -> Sweep:
    """The sweep of a folder; refuses one that is not what the caller takes it for.

    The caller's own spec stands in for a damaged one if the journal says that it is the same.
    """
    header = Journal(folder / JOURNAL).header
    if not (folder / SWEEP_SPEC).exists() and header is None:
        raise InputError(f"there is no sweep to resume in {folder} (no {SWEEP_SPEC})")
    text = _sound_text(folder / SWEEP_SPEC, header)
    if text is None:
        stored = _instead(folder, header, taken_for)
    elif taken_for is not None and text == taken_for.text:
        stored = taken_for
    else:
        stored = parse_sweep(text, source=str(folder / SWEEP_SPEC))
    if taken_for is not None and taken_for.id != stored.id:
        raise _another(folder, stored.id, taken_for.id)
    return stored


def _instead(folder: Path, header: Header | None, taken_for: Sweep | None) -> Sweep:
    """The caller's spec in the place of a damaged one."""
    if header is None:
        raise StoreError(
            f"{folder} is damaged: neither {SWEEP_SPEC} nor {JOURNAL} is as it was written; take the folder "
            "from a copy, or start the sweep again with another --out"
        )
    if taken_for is None:
        again = how_to_continue(folder).replace("sweep", "sweep SPEC.toml", 1)
        raise StoreError(
            f"{folder / SWEEP_SPEC} is damaged; resume with the spec the sweep was started with: {again}"
        )
    if mark(taken_for.text.encode()) != header.text:
        raise _another(folder, header.id, taken_for.id)
    return taken_for


def _another(folder: Path, stored: str, given: str) -> InputError:
    return InputError(
        f"{folder} holds another sweep (id {stored}, this spec is {given}); resume with the spec it was "
        "started with, or choose another --out"
    )


def _sound_text(path: Path, header: Header | None) -> str | None:
    """The spec in a folder, or None if it is not what the sweep was started with."""
    if not path.exists():
        return None
    try:
        text = read_text(path)
        sound = _dataset_agrees(path, text) if header is None else header.text == mark_of(path)
    except InputError:  # no text, or no spec
        return None
    return text if sound else None


def _dataset_agrees(path: Path, text: str) -> bool:
    """Without the journal's word, the dataset tells whether the spec is its own, if there is one."""
    try:
        if not (path.parent / SWEEP_STORE).exists():
            return bool(parse_sweep(text))
        stored = json.loads((path.parent / SWEEP_STORE / GROUP).read_bytes())["attributes"]
        table = tomllib.loads(text)[SWEEP]
        return stored["sweep"] == plain(table) and stored["id"] == parse_sweep(text).id
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
