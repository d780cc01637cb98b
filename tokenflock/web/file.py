"""The page as one file, which works from any web server and from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .bundle import static_page

INDEX = "index.html"
# Stands near the top of every page.
PAGE_MARK = b"tokenflock-page"
# A page above this is slow to open for whoever gets the link.
LARGE = 50 * 2**20


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a place that must not be touched, before anything is read."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; choose another --out")
        if (folder / INDEX).exists() and overwrite and not _is_page(folder / INDEX):
            raise InputError(
                f"{folder / INDEX} is no page of tokenflock; refusing to overwrite it, choose another --out"
            )
        if (folder / INDEX).exists() and not overwrite:
            raise InputError(
                f"{folder / INDEX} exists; choose another --out or replace it with --overwrite"
            )
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"--out {str(folder)!r} cannot be used: {error}") from error


def _is_page(path: Path) -> bool:
    with open(path, "rb") as stream:
        return PAGE_MARK in stream.read(2**16)


def write_page(folder: Path, replays: Sequence[dict[str, Any]]) -> Path:
    """Write index.html aside and move it into its place when it is complete."""
    from ..results.atomic import write_file
    from ..results.places import check_parent

    document = static_page(replays)
    check_parent(folder)
    write_file(folder / INDEX, document)
    return folder / INDEX
