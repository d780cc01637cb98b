"""Results as files: strict JSON that appears only when it is complete."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...results.atomic import write_file
from ...results.locking import only_writer_of


def as_text(result: dict[str, Any]) -> str:
    """One JSON object, readable in a diff."""
    return json.dumps(result, indent=1, allow_nan=False) + "\n"


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is measured."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file, or leave out NAME")
    _check_folder(path.absolute().parent)


def check_folder(path: Path) -> None:
    """Refuse a folder of results that cannot be written, before anything is measured."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; without NAME, --out is the folder of all results")
    _check_folder(path.absolute())


def _check_folder(path: Path) -> None:
    folder = next(place for place in (path, *path.parents) if place.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"cannot write into {folder}; choose another --out")


def write(result: dict[str, Any], path: Path) -> Path:
    """Write one result beside its place and move it there."""
    with only_writer_of(path):
        write_file(path, as_text(result))
    return path
