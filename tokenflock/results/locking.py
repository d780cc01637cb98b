"""One writer per place: a lock of the kernel, which falls when its holder dies, however it dies.

    folder/.lock          held by the process that writes
    folder/.writer.json   which process that is, and a word drawn at random

The word tells whether a path still leads to the folder that was locked. Where it was moved away, and
another one perhaps put in its place, the writer stops before it writes there.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import StoreError, WriteError, in_words_of_the_disk
from .own_files import is_no_file, read_object, write_own

LOCK = ".lock"
# Beside the lock and not in it: some versions of filelock empty the lock file of the other process.
HOLDER = ".writer.json"
MARKS = (LOCK, HOLDER)
TRIES = 3
LARGEST_NOTE = 10_000
Words: TypeAlias = Callable[[Path, OSError], StoreError]


@dataclass(frozen=True)
class Writer:
    """The right to write at a place, for as long as that is the same place."""

    place: Path
    word: str
    note: Path

    def is_here(self) -> bool:
        """Whether the path still leads to what was locked."""
        return read_object(self.note).get("word") == self.word

    def require_place(self) -> None:
        """Stop before anything is written into what another process has put there."""
        if not self.is_here():
            raise WriteError(
                f"{self.place} is no longer what this process was writing: it was moved away, removed or "
                "replaced in the meantime. Nothing was written into what is there now, and what was "
                "finished is where it was moved to; go on there, or start again with another --out"
            )


@contextlib.contextmanager
def only_writer(folder: Path, words: Words = in_words_of_the_disk) -> Iterator[Writer]:
    """Hold a folder of results that exists, or say which process does.

    words -- how the error of a disk that takes no lock is told.
    """
    with _held(folder, folder / LOCK, folder / HOLDER, words) as writer:
        yield writer


@contextlib.contextmanager
def only_writer_in(folder: Path) -> Iterator[Writer]:
    """As `only_writer`, of a folder that is made if it is not there; one that stays empty goes again."""
    with _made(folder), only_writer(folder) as writer:
        yield writer


@contextlib.contextmanager
def only_writer_of(place: Path) -> Iterator[Writer]:
    """Hold one result that lies among others: a file, or a store."""
    here = place.absolute()
    if not here.name:
        raise StoreError(f"{place} is no place for a result; name a file or a folder in it")
    lock, note = (here.with_name(f".{here.name}{mark}") for mark in MARKS)
    with contextlib.ExitStack() as held:
        held.enter_context(_made(here.parent))
        # The folder it lies in may be a result that another process is writing, and so may the place itself.
        for folder in (here.parent, here):
            if (folder / LOCK).exists():
                held.enter_context(only_writer(folder))
        yield held.enter_context(_held(place, lock, note, in_words_of_the_disk))


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder that is made if need be, and removed if nothing was put into it."""
    made = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
    try:
        with _disk(folder, in_words_of_the_disk):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()


@contextlib.contextmanager
def _held(place: Path, lock: Path, note: Path, words: Words) -> Iterator[Writer]:
    """The lock with the note of its holder; both are removed at the end, by whoever holds them."""
    with _disk(place, words):
        for mark in (lock, note):
            if is_no_file(mark):
                raise StoreError(f"{mark} is a link, or no file; remove it and try again")
        held = _acquired(place, lock, note)
    writer = Writer(place, secrets.token_hex(8), note)
    try:
        with _disk(place, words):
            write_own(note, json.dumps({**_this_process(), "word": writer.word}))
        yield writer
    finally:
        with contextlib.suppress(OSError):
            # Only our own: another folder may be in the place of ours.
            if writer.is_here():
                lock.unlink(missing_ok=True)
                note.unlink(missing_ok=True)
        held.release()


def _acquired(place: Path, lock: Path, note: Path) -> Any:
    import filelock

    for _ in range(TRIES):
        try:
            held = filelock.FileLock(lock, timeout=0)
            held.acquire()
        except filelock.Timeout:
            # Its holder may have removed it between our opening and our locking it.
            if lock.exists():
                break
        else:
            return held
    raise StoreError(
        f"{place} is being written by {_holder(note)}; wait until it ends, stop it, or choose another --out"
    )


@contextlib.contextmanager
def _disk(place: Path, words: Words) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise words(place, error) from error


def _this_process() -> dict[str, str | int]:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"pid": os.getpid(), "host": platform.node(), "since": now}


def _holder(note: Path) -> str:
    found = read_object(note, LARGEST_NOTE)
    try:
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except KeyError:
        return "another process"
