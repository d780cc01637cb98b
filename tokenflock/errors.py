"""Errors a user can act on: what was given, what is needed, what to do."""

from __future__ import annotations


class TokenflockError(Exception):
    """Base of every error raised on purpose by this package."""

    exit_code = 1


class InputError(TokenflockError, ValueError):
    """The request itself is wrong (exit code 2 on the command line)."""

    exit_code = 2


class TooLargeError(InputError):
    """The request needs more memory than there is."""


class StoreError(TokenflockError):
    """A run folder cannot be read or written (exit code 2 on the command line)."""

    exit_code = 2


class SolveError(TokenflockError):
    """An integration ended before its goal; the text says what to change."""

    exit_code = 1


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless `condition` holds."""
    if not condition:
        raise InputError(message)
