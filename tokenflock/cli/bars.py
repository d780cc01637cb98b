"""The bar of a long command: on stderr, with Ctrl-C heard, and nothing left behind when it goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from .interrupts import hearing_every_interrupt


@contextlib.contextmanager
def bar_on_stderr(label: str, stays: bool = True) -> Iterator[Callable[[float, str], None]]:
    """How to report the share done and a note; the bar stays at the end of what succeeds, if it shall."""
    from rich.markup import escape

    from ..integrate.progress import make_bar

    bar = make_bar(escape(label))
    bar.live.transient = True
    try:
        with hearing_every_interrupt() as check:

            def tell(done: float, note: str) -> None:
                check()
                bar.update(bar.task_ids[0], completed=done, note=escape(note))

            yield tell
        bar.live.transient = not stays
    finally:
        bar.stop()
