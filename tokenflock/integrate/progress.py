"""A rich progress bar fed from inside the compiled loop."""

from __future__ import annotations

from typing import Any

import diffrax
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def make_bar(label: str = "solve") -> Progress:
    """A started bar on stderr with one task of total 1."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=False,
    )
    bar.add_task(label, total=1.0, note="")
    bar.start()
    return bar


class RichProgressMeter(diffrax.TextProgressMeter):
    """diffrax's meter with a rich bar instead of printed percentages."""

    minimum_increase: float = 0.005

    @staticmethod
    def _init_bar() -> Any:
        return make_bar()

    @staticmethod
    def _step_bar(bar: Any, progress: Any) -> None:
        bar.update(bar.task_ids[0], completed=float(progress))

    @staticmethod
    def _close_bar(bar: Any) -> None:
        bar.update(bar.task_ids[0], completed=1.0)
        bar.stop()
