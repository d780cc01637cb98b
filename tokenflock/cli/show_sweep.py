"""What a sweep shows of itself at the end: its picture, and a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import explain
from .plainly import print_notes, printable


def picture(folder: Path) -> str | None:
    """Make figure.png if it is wanted and not there; says why if that cannot be done.

    Hours of computing are not a failure because their picture is.
    """
    from ..results.locking import only_writer
    from ..sweeps.checked_reading import open_sweep
    from ..sweeps.folder import FIGURE

    if (folder / FIGURE).exists():
        return None
    dataset = open_sweep(folder, verify=False)
    drawn = dataset.attrs["spec"]["output"]["figure"]
    if not drawn or not (dataset["outcome"].values >= 0).any():
        return None
    try:
        with only_writer(folder):
            _draw(dataset, folder / FIGURE)
    except Exception as error:
        return f"there is no picture: {explain(error)[0]}"
    return None


def _draw(dataset: Any, path: Path) -> None:
    from .show import save_figure, without_screen

    without_screen()
    from ..plot.sweeps import draw_sweep

    save_figure(draw_sweep(dataset), path)


def show(result: dict[str, Any], folder: Path) -> None:
    """Cells, failures, time, and where it is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    if result["failed"]:
        table = Table("failed cell", "error", box=None, pad_edge=False)
        for failure in result["failures"]:
            table.add_row(in_words(failure["coordinates"]), printable(failure["error"]))
        console.print(table)
        more = result["failed"] - len(result["failures"])
        if more > 0:
            console.print(f"and {more} more: outcome in the dataset, journal.jsonl for the errors")
    shape = printable(" x ".join(f"{size} {name}" for name, size in result["axes"].items()))
    console.print(
        f"{result['cells']} cells ({shape}), {result['failed']} failed, {result['seconds']:.1f} s"
    )
    print_notes(console, result["notes"])
    files = [item.name for item in sorted(folder.iterdir()) if not item.name.startswith(".")]
    console.print(printable(f"{folder}: {', '.join(files)}"), soft_wrap=True)


def in_words(coordinates: dict[str, Any]) -> str:
    """beta = 4, seed = 7."""
    return printable(", ".join(f"{name} = {value}" for name, value in coordinates.items()))
