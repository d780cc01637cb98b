"""Errors a user can act on: what was given, what is needed, what to do."""

from __future__ import annotations

import errno
from importlib import import_module
from numbers import Integral
from pathlib import Path


class TokenflockError(Exception):
    """Base of every error raised on purpose by this package."""

    exit_code = 1


class InputError(TokenflockError, ValueError):
    """The request itself is wrong (exit code 2 on the command line)."""

    exit_code = 2


class MissingExtraError(InputError):
    """The request needs a package that only an extra installs."""


class TooLargeError(InputError):
    """The request needs more memory than there is."""


class StoreError(TokenflockError):
    """A run folder cannot be read or written (exit code 2 on the command line)."""

    exit_code = 2


class WriteError(StoreError):
    """Writing failed on the way: the disk is full, or the folder was taken away (exit code 1)."""

    exit_code = 1


class SolveError(TokenflockError):
    """An integration ended before its goal; the text says what to change."""

    exit_code = 1


def require_whole(name: str, value: object, least: int | None = None) -> None:
    """Refuse what is no whole number, NumPy's included, or one below `least`."""
    whole = isinstance(value, Integral) and (least is None or int(value) >= least)
    enough = "" if least is None else f", at least {least}"
    require(whole, f"{name} must be a whole number{enough}, got {value!r}")


def require_extra(what: str, module: str, extra: str, instead: str = "") -> None:
    """Refuse `what` where a module of an extra is missing; `instead` says what works without."""
    try:
        import_module(module)
    except ImportError as error:
        otherwise = f"; {instead}" if instead else ""
        raise MissingExtraError(
            f"{what} needs {error.name or module}, which is not installed: "
            f"pip install 'tokenflock[{extra}]'{otherwise}"
        ) from error


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless `condition` holds."""
    if not condition:
        raise InputError(message)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def in_words_of_the_disk(place: Path, error: OSError) -> StoreError:
    """What a disk that cannot be written says; a full one is a failure, the rest is a wrong place."""
    kind = WriteError if error.errno in FULL else StoreError
    return kind(
        f"cannot write {place}: {error.strerror or error}; choose a folder you can write to with "
        "enough free space"
    )
