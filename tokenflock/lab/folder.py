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

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..belonging import require_same
from ..errors import InputError, StoreError, in_words_of_the_disk
from ..json_safe import is_deeper_than
from ..locking import MARKS, Writer
from ..own_files import read_object
from ..store import INITIAL, SCRATCH, SEGMENTS, STORE, segment_paths, write
from ..trajectory import Trajectory
from .files import identity, parse, read_text, render
from .spec import RunSpec

SPEC = "spec.toml"
SUMMARY = "summary.json"
# What is read from a summary, and of which kind it is; health is the deepest of it.
SUMMARY_ENTRIES = {
    **dict.fromkeys(("id", "label", "outcome", "advice", "store"), str),
    # The time of a batch is a list: one for each member.
    **{"time": (int, float, list), "seconds": (int, float), "health": dict, "ok": bool},
}
DEEPEST_SUMMARY = 16
OWN = (STORE, SEGMENTS, SUMMARY, SPEC, "figure.png", "animation.mp4", "animation.gif")


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn the errors of a disk into a sentence."""
    try:
        yield
    except OSError as error:
        raise in_words_of_the_disk(place, error) from error


def new_folder(title: str, job_id: str) -> Path:
    """Default output folder: runs/TITLE-ID-TIME, with a number if two start in one second."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-") or "run"
    stem = f"{name}-{job_id[:8]}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        folder = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise InputError("a thousand runs started in one second; give --out")


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
    elif exists and not empty and not (folder / SPEC).exists():
        raise InputError(f"{folder} is not a run folder (no {SPEC}); refusing to overwrite it")
    check_parent(folder)


def look_at(folder: Path) -> tuple[bool, bool]:
    """Whether a place for results exists, and whether it is empty; what can be no folder is refused."""
    try:
        if "\0" in str(folder):
            raise ValueError("a path has no null characters")
        exists, is_folder = folder.exists() or folder.is_symlink(), folder.is_dir()
        empty = is_folder and all(item.name in MARKS for item in folder.iterdir())
    except (OSError, ValueError) as error:
        raise InputError(f"--out {str(folder)!r} cannot be used: {error}") from error
    if exists and not is_folder:
        raise InputError(f"{folder} is a file; choose another --out")
    return exists, empty


def check_place(
    folder: Path,
    overwrite: bool,
    holds: Callable[[Path], bool],
    what: str,
    ways: str = "or replace it with --overwrite",
) -> None:
    """Refuse a folder that results of one kind must not touch: taken, or not `what` these replace."""
    exists, empty = look_at(folder)
    if exists and not empty and not overwrite:
        raise InputError(f"{folder} exists; choose another --out, {ways}")
    if exists and not empty and not holds(folder):
        raise InputError(f"{folder} does not hold {what}; refusing to overwrite it")
    check_parent(folder)


def check_parent(folder: Path) -> None:
    """The nearest existing parent must be a folder one can write in."""
    whole = folder.absolute()
    parent = next((parent for parent in whole.parents if parent.exists()), whole)
    if not parent.is_dir():
        raise StoreError(f"cannot write {folder}: {parent} is a file; choose another --out")
    place = folder if folder.exists() else parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise StoreError(f"cannot write {folder}: {parent} is not writable; choose another --out")
    # Permissions do not tell all: some file systems take no new folder from anyone.
    with writing(folder), tempfile.TemporaryDirectory(dir=place, prefix=SCRATCH):
        pass


def _check_same(spec: RunSpec, folder: Path) -> None:
    if not (folder / SPEC).exists():
        raise InputError(f"there is no run to resume in {folder} (no {SPEC})")
    stored = identity(parse(read_text(folder / SPEC), source=str(folder / SPEC)))
    if stored != identity(spec):
        raise InputError(
            f"{folder} holds another run (id {stored}, this spec is {identity(spec)}); resume with "
            "the spec it was started with, or choose another --out"
        )


def claim(spec: RunSpec, folder: Path, initial: Trajectory, writer: Writer | None) -> None:
    """Make the folder with its spec and the tokens at t = 0, all or nothing.

    writer -- of a folder that exists, in which a run is replaced.
    """
    with making(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=SCRATCH) as scratch:
            fresh = Path(scratch) / folder.name
            fresh.mkdir()
            (fresh / SPEC).write_text(render(spec), encoding="utf-8")
            write(initial, fresh / SEGMENTS / INITIAL)
            if writer is not None:
                writer.require_place()
                _replace(fresh, folder, Path(scratch) / "replaced")
            else:
                _put(fresh, folder)


def _put(fresh: Path, folder: Path) -> None:
    try:
        os.rename(fresh, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise InputError(
            f"another process has just made {folder}; choose another --out, or wait for it"
        ) from error


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Write into a folder that may not be there yet; where that fails, those made for it go again."""
    made = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
    try:
        with writing(folder):
            yield
    except BaseException:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


def _replace(fresh: Path, folder: Path, replaced: Path) -> None:
    """Only what a run makes is replaced; other files in the folder are the user's."""
    replaced.mkdir()
    for name in OWN:
        if (folder / name).exists():
            os.replace(folder / name, replaced / name)
    for item in fresh.iterdir():
        os.replace(item, folder / item.name)


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
    with writing(folder / SUMMARY):
        scratch = folder / f"{SCRATCH}{SUMMARY}"
        try:
            scratch.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
            os.replace(scratch, folder / SUMMARY)
        finally:
            scratch.unlink(missing_ok=True)


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


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that is finished in every respect, or None."""
    try:
        found = json.loads((folder / SUMMARY).read_bytes(), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError):
        return None
    return found if _is_summary(found) and (folder / STORE).exists() else None


def _is_summary(found: Any) -> bool:
    """Whether a file holds what `write_summary` wrote; another is made anew from the store."""
    return (
        isinstance(found, dict)
        and not is_deeper_than(found, DEEPEST_SUMMARY)
        and all(isinstance(found.get(name), kind) for name, kind in SUMMARY_ENTRIES.items())
    )


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of strict JSON")
