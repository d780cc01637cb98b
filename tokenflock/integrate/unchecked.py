"""Compiled programs without host callbacks, so that JAX can keep them on disk.

diffrax looks at its save times, its steps and its Brownian path while it runs, and reports a mistake by
calling Python from the compiled program (`equinox.error_if`). JAX never stores such a program, so every
process would compile it anew. What those checks look at is checked here before the run starts (`Save`,
`resolve`), and how a run ends is a result code (`outcome.py`): inside `unchecked()` they are left out.
Checks that anybody else writes, in an observable or a stop, stay, and keep their program off the disk.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import equinox._enum as enumerations
import equinox._errors as errors

# Whose checks are left out: the solver's, and those of what it calls.
SOLVERS = ("diffrax", "optimistix", "lineax", "equinox")
# The functions of equinox that hand a check on.
BETWEEN = (errors.__name__, enumerations.__name__, __name__)

_silent = contextvars.ContextVar("silent", default=False)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Trace without the run-time checks of the solver, in this thread and no other."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def _listening(check: Callable[..., Any]) -> Callable[..., Any]:
    """The check of equinox, which inside `unchecked()` lets the solver's pass."""

    @functools.wraps(check)
    def checked(x: Any, *rest: Any, **options: Any) -> Any:
        return x if _silent.get() and _asked_by_solver() else check(x, *rest, **options)

    return checked


def _asked_by_solver() -> bool:
    """Whether the first function behind those that hand a check on is the solver's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in BETWEEN:
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__"))
    return module.split(".")[0] in SOLVERS


# equinox offers no switch but an environment variable for the whole process, read at its import.
errors.branched_error_if = _listening(errors.branched_error_if)
enumerations.branched_error_if = errors.branched_error_if  # pyright: ignore[reportPrivateImportUsage]
