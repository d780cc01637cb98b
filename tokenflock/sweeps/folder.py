"""The folder of a sweep: checked before anything is computed, replaced only where it is ours.

folder/
  sweep.toml      the full spec
  sweep.zarr      the dataset
  journal.jsonl   which blocks are done
  summary.json    written last
  figure.png
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..lab.folder import require_own_summary
from ..results.atomic import complete_folder, told_by_the_disk
from ..results.locking import Writer
from ..results.names import FIGURE, JOURNAL, SUMMARY, SWEEP_FORMAT, SWEEP_SPEC, SWEEP_STORE
from ..results.own_files import open_own
from ..results.places import check_parent, look_at
from .arrays import GROUP, fixed_files
from .journal import Journal
from .layout import Layout
from .ownership import refuse_links
from .plan import Sweep
from .store import SweepStore, fill

# In the order in which they are taken away: without its summary a sweep counts as unfinished, and
# without its journal as not begun, so that a kill on the way leaves nothing that pretends to be done. The new
# ones come back the other way round, the journal last.
OWN = (SUMMARY, JOURNAL, FIGURE, SWEEP_STORE)


def check_folder(folder: Path, resume: bool, overwrite: bool) -> None:
    """Refuse a folder this sweep must not touch, or cannot write to, before anything is computed."""
    exists, empty = look_at(folder)
    if exists and not resume and not overwrite:
        raise InputError(
            f"{folder} exists; choose another --out, continue it with --resume, or replace it with "
            "--overwrite"
        )
    if exists and overwrite and not empty and not _is_sweep(folder):
        raise InputError(
            f"{folder} is not a sweep folder ({SWEEP_SPEC} with a {JOURNAL} or {SWEEP_STORE} of tokenflock); "
            "refusing to overwrite it"
        )
    check_parent(folder)


def _is_sweep(folder: Path) -> bool:
    """Other programs may have a sweep.toml, too: ours stands beside a journal or a store of ours."""
    refuse_links(folder)
    if not (folder / SWEEP_SPEC).is_file():
        return False
    return Journal(folder / JOURNAL).header is not None or _has_store(folder)


def _has_store(folder: Path) -> bool:
    try:
        with open_own(folder / SWEEP_STORE / GROUP) as file:
            return json.load(file)["attributes"]["format"] == SWEEP_FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def replaced(folder: Path, sweep: Sweep, layout: Layout, writer: Writer) -> SweepStore:
    """A new sweep in the place of an old one; other files in the folder are the user's."""
    with complete_folder(folder, OWN, writer.require_place) as fresh:
        fill(fresh, sweep, fixed_files(sweep, layout))
    return SweepStore.open(folder)


def read_summary(folder: Path, sweep_id: str) -> dict[str, Any] | None:
    """The summary of a sweep that was finished, or None; the folder may have been moved since.

    One of another sweep is refused.
    """
    try:
        with open_own(folder / SUMMARY) as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return None
    require_own_summary(found, sweep_id, folder)
    return {**found, "store": str(folder / SWEEP_STORE)}


def clear_results(folder: Path) -> None:
    """A sweep that goes on is not finished, and its picture is out of date."""
    with told_by_the_disk(folder):
        for name in (SUMMARY, FIGURE):
            (folder / name).unlink(missing_ok=True)
