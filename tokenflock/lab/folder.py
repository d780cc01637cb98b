"""The folder of a run: checked before anything is computed, and never half made.

    folder/
      spec.toml         the full resolved spec
      segments/         finished parts while the run is going (removed at the end)
      trajectory.zarr   the whole run
      figure.png, animation.mp4, summary.json

A new folder is filled under a hidden name beside its place and moved there in one step, so that every
run folder that exists can be opened.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from ..errors import InputError, StoreError
from ..results.atomic import complete_folder, write_file
from ..results.checksums import damage_of
from ..results.identity import require_same
from ..results.locking import Writer
from ..results.names import FIGURE, FILMS, INITIAL, RUN_SPEC, SCRATCH, SEGMENTS, STORE, SUMMARY
from ..results.own_files import read_object, required_object
from ..results.places import check_parent, look_at
from ..results.strict_json import is_deeper_than
from ..store import segment_paths, write
from ..trajectory import Trajectory
from .files import identity, parse, read_stored, render
from .spec import RunSpec

# What is read from a summary, and of which kind it is; health is the deepest of it.
SUMMARY_ENTRIES = {
    **dict.fromkeys(("id", "label", "outcome", "advice", "store"), str),
    # The time of a batch is a list: one for each member.
    **{"time": (int, float, list), "seconds": (int, float), "health": dict, "ok": bool},
}
DEEPEST_SUMMARY = 16
OWN = (STORE, SEGMENTS, SUMMARY, RUN_SPEC, FIGURE, *FILMS)


def check_folder(spec: RunSpec, folder: Path, resume: bool, overwrite: bool) -> None:
    """Refuse a folder this run must not touch, or cannot write to, before anything is computed."""
    exists, empty = look_at(folder)
    if resume:
        _check_same(spec, folder)
    elif exists and not overwrite:
        raise InputError(
            f"{folder} exists; choose another --out, continue it with --resume, or replace it with "
            "--overwrite"
        )
    elif exists and not empty and not (folder / RUN_SPEC).exists():
        raise InputError(f"{folder} is not a run folder (no {RUN_SPEC}); refusing to overwrite it")
    check_parent(folder)


def _check_same(spec: RunSpec, folder: Path) -> None:
    if not (folder / RUN_SPEC).exists():
        raise InputError(f"there is no run to resume in {folder} (no {RUN_SPEC})")
    stored = identity(parse(read_stored(folder / RUN_SPEC), source=str(folder / RUN_SPEC)))
    if stored != identity(spec):
        raise InputError(
            f"{folder} holds another run (id {stored}, this spec is {identity(spec)}); resume with "
            "the spec it was started with, or choose another --out"
        )


def claim(spec: RunSpec, folder: Path, initial: Trajectory, writer: Writer | None) -> None:
    """Make the folder with its spec and the tokens at t = 0, all or nothing.

    writer -- of a folder that exists, in which a run is replaced.
    """
    replacing, check = (None, None) if writer is None else (OWN, writer.require_place)
    with complete_folder(folder, replacing, check) as fresh:
        (fresh / RUN_SPEC).write_text(render(spec), encoding="utf-8")
        write(initial, fresh / SEGMENTS / INITIAL)


def sweep(folder: Path) -> None:
    """Remove what a killed process was writing, and parts that nothing leads up to."""
    used = {folder / SEGMENTS / INITIAL, *segment_paths(folder)}
    stale = [item for item in (folder / SEGMENTS).glob("*") if item not in used]
    for item in [*stale, *folder.glob(f"{SCRATCH}*")]:
        if item.is_dir():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink(missing_ok=True)


def write_summary(folder: Path, content: dict[str, Any]) -> None:
    """Keep the summary beside the store; it is the last file of a finished run."""
    write_file(folder / SUMMARY, json.dumps(content, indent=2, allow_nan=False) + "\n")


def require_own_summary(
    found: dict[str, Any], spec_id: str, folder: Path, store: str | None = None
) -> None:
    """Refuse the summary, and the store beside it, of another spec than the one asked for."""
    remedy = (
        f"{folder} holds pieces of two results: take it from a copy, or start again with --overwrite or "
        "another --out"
    )
    require_same(folder / SUMMARY, {"id": str(found.get("id"))}, {"id": spec_id}, remedy)
    if store is not None:
        labels = read_object(folder / store / "zarr.json").get("attributes")
        stored = labels.get("id") if isinstance(labels, dict) else None
        require_same(folder / store, {"id": str(stored)}, {"id": spec_id}, remedy)


def require_undamaged(folder: Path) -> None:
    """Refuse a finished run whose numbers are not as they were written, and say how to have them again."""
    damage = damage_of(folder / STORE)
    if damage is not None:
        again = shlex.join(
            ["tokenflock", "run", str(folder / RUN_SPEC), "--out", str(folder), "--overwrite"]
        )
        raise StoreError(
            f"{folder} is damaged: {damage}. Compute the run again with {again}, or take the folder from "
            "a copy"
        )


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that is finished in every respect, or None."""
    try:
        found = required_object(folder / SUMMARY)
    except StoreError:
        return None
    return found if _is_summary(found) and (folder / STORE).exists() else None


def _is_summary(found: dict[str, Any]) -> bool:
    """Whether a file holds what `write_summary` wrote; another is made anew from the store."""
    return not is_deeper_than(found, DEEPEST_SUMMARY) and all(
        isinstance(found.get(name), kind) for name, kind in SUMMARY_ENTRIES.items()
    )
