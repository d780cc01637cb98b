"""A Ctrl-C is never lost: not in a callback of the garbage collector, not in a library that swallows it."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

# Long enough to be out of the callback, too short for a hand to notice.
RESEND_AFTER_SECONDS = 0.05


def resend_lost_interrupts() -> None:
    """Send SIGINT again, without a word on stderr, when Python drops a KeyboardInterrupt.

    What is raised inside a callback of the garbage collector is printed and forgotten; JAX has such a
    callback, and the collector runs without pause while large libraries are imported.
    """
    tell_of_others = sys.unraisablehook

    def resend(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            tell_of_others(lost)
            return
        timer = threading.Timer(RESEND_AFTER_SECONDS, _send)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = resend


def _send() -> None:
    """Wake the main thread with SIGINT, where the system can choose a thread."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def hearing_every_interrupt() -> Iterator[Callable[[], None]]:
    """A check that raises again a Ctrl-C which some library has swallowed."""
    handler = signal.getsignal(signal.SIGINT)
    # Handlers belong to the main thread, and whoever ignores Ctrl-C (nohup) goes on ignoring it.
    listening = (
        handler is signal.default_int_handler
        and threading.current_thread() is threading.main_thread()
    )
    heard = False

    def hear(number: int, frame: object) -> None:
        nonlocal heard
        heard = True
        raise KeyboardInterrupt

    def check() -> None:
        if heard:
            raise KeyboardInterrupt

    if listening:
        signal.signal(signal.SIGINT, hear)
    try:
        yield check
    finally:
        if listening:
            signal.signal(signal.SIGINT, handler)
