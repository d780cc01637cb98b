"""Compiled programs without host callbacks, so that JAX can keep them on disk.

diffrax looks at its save times, its steps and its Brownian path while it runs, and reports a mistake by
calling Python from the compiled program (`equinox.error_if`). JAX never stores such a program, so every
process would compile it anew. What those checks look at is checked here before the run starts (`Save`,
`resolve`), and how a run ends is a result code (`outcome.py`): inside `unchecked()` they are left out.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox._errors as errors

_silent = contextvars.ContextVar("silent", default=False)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Trace without the run-time checks of equinox, in this thread and no other."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def _listening(check: Callable[..., Any]) -> Callable[..., Any]:
    """The check of equinox, which lets everything pass inside `unchecked()`."""

    @functools.wraps(check)
    def checked(x: Any, *rest: Any, **options: Any) -> Any:
        return x if _silent.get() else check(x, *rest, **options)

    return checked


# equinox offers no switch but an environment variable for the whole process, read at its import.
errors.branched_error_if = _listening(errors.branched_error_if)
