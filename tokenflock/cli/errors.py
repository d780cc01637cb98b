"""Errors become one sentence and an exit code, never a traceback."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from .plainly import lines_of

INTERRUPTED = 130
DEBUG_VARIABLE = "TOKENFLOCK_DEBUG"
P = ParamSpec("P")
R = TypeVar("R")


def in_a_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are told on stderr; $TOKENFLOCK_DEBUG=1 lets them through."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, SystemExit, BrokenPipeError):
            raise
        except BaseException as error:
            if os.environ.get(DEBUG_VARIABLE):
                raise
            sentence, code = explain(error)
            typer.echo(f"tokenflock: {lines_of(sentence)}", err=True)
            raise typer.Exit(code) from error

    return told


def explain(error: BaseException) -> tuple[str, int]:
    """What went wrong, and the exit code."""
    from ..errors import TokenflockError

    if isinstance(error, TokenflockError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, MemoryError):
        return "out of memory; lower n or samples, or use reduction = 'tiled'", 1
    if isinstance(error, OSError):
        return (
            f"cannot read or write {error.filename or 'the output'}: {error.strerror or error}",
            2,
        )
    reason = str(error).strip().split("\n")[0][:300]
    return (
        f"unexpected {type(error).__name__}: {reason} (set {DEBUG_VARIABLE}=1 to see where, and "
        "please report it)"
    ), 1
