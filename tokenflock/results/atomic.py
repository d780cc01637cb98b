"""The one way to write: beside the place, flushed, then there in one step.

    with complete_file(path) as scratch: ...     one file
    with complete_files(folder) as scratch: ...  several files of one folder, in the order they are written
    with complete_folder(folder) as fresh: ...   a folder with all that is in it

Whoever is killed leaves a name that begins with SCRATCH, and never half a result under its own name.
Errors of the disk become sentences; folders that were made for nothing go again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import InputError, in_words_of_the_disk
from .names import SCRATCH

Check = Callable[[], None]


@contextlib.contextmanager
def told_by_the_disk(place: Path, check: Check | None = None) -> Iterator[None]:
    """Turn the errors of a disk into a sentence; where `check` raises, it knows the reason."""
    try:
        yield
    except OSError as error:
        if check is not None:
            check()
        raise in_words_of_the_disk(place, error) from error


@contextlib.contextmanager
def making(folder: Path, check: Check | None = None) -> Iterator[None]:
    """Write into a folder that may not be there yet; where that fails, those made for it go again."""
    made = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
    try:
        with told_by_the_disk(folder, check):
            yield
    except BaseException:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


@contextlib.contextmanager
def beside(place: Path) -> Iterator[Path]:
    """A folder of a name that no other writer has, on the disk of the place; gone afterwards."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=SCRATCH) as scratch:
        yield Path(scratch)


@contextlib.contextmanager
def complete_file(path: Path, check: Check | None = None) -> Iterator[Path]:
    """A file of this name elsewhere; when the block ends without an error it is at `path`.

    check -- raises if the place is not the writer's own any more (locking.Writer.require_place).
    """
    with making(path.parent, check), beside(path) as folder:
        scratch = folder / path.name
        yield scratch
        flush(scratch)
        if check is not None:
            check()
        os.replace(scratch, path)


def write_file(path: Path, content: bytes | str, check: Check | None = None) -> None:
    """A small file, whole or not at all."""
    with complete_file(path, check) as scratch:
        scratch.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def complete_files(folder: Path, check: Check | None = None) -> Iterator[Path]:
    """A folder to fill with files; then all of them go to `folder`, or none of those that are new there."""
    with making(folder, check):
        folder.mkdir(parents=True, exist_ok=True)
        with beside(folder / SCRATCH) as scratch:
            yield scratch
            if check is not None:
                check()
            move_all({folder / item.name: item for item in sorted(scratch.iterdir(), key=_age)})


def move_all(complete: dict[Path, Path]) -> None:
    """All to their places, or none; but one that replaced another stays, since that is gone."""
    new: list[Path] = []
    try:
        for place, source in complete.items():
            is_new = not os.path.lexists(place)
            os.replace(source, place)
            if is_new:
                new.append(place)
    except BaseException:
        for place in new:
            with contextlib.suppress(OSError):
                place.unlink()
        raise


@contextlib.contextmanager
def complete_folder(
    folder: Path, replacing: Iterable[str] | None = None, check: Check | None = None
) -> Iterator[Path]:
    """A folder of this name elsewhere; when the block ends without an error it is at `folder`.

    replacing -- names in a folder that is there, which are taken away for what is new: other files in it
        are the user's. What is taken away first comes back last, so that a kill in between leaves nothing
        that pretends to be whole. Without them the folder must not be there.
    """
    with making(folder, check), beside(folder) as scratch:
        fresh = scratch / folder.name
        fresh.mkdir()
        yield fresh
        if check is not None:
            check()
        if replacing is None:
            put(fresh, folder)
        else:
            _replace(fresh, folder, scratch / f"{SCRATCH}replaced", [*replacing])


def _age(item: Path) -> tuple[int, str]:
    return item.stat().st_mtime_ns, item.name


def put(fresh: Path, folder: Path, advice: str = "or wait for it") -> None:
    """Give a complete folder its name, if nobody has taken it in the meantime."""
    try:
        os.rename(fresh, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise InputError(
            f"another process has just made {folder}; choose another --out, {advice}"
        ) from error


def _replace(fresh: Path, folder: Path, replaced: Path, names: Sequence[str]) -> None:
    replaced.mkdir()
    for name in names:
        if (folder / name).exists():
            os.replace(folder / name, replaced / name)
    new = sorted(item.name for item in fresh.iterdir())
    for name in [name for name in new if name not in names] + [*reversed(names)]:
        if name in new:
            os.replace(fresh / name, folder / name)


def flush(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
