"""tokenflock figure: draw a figure of the gallery; its data is stored beside it and reused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .errors import INTERRUPTED
from .held import held
from .plainly import printable
from .scale import Scale

if TYPE_CHECKING:
    from ..ledger import Figure


def figure(
    name: str = typer.Argument(..., metavar="ID", help="A figure: tokenflock list figures."),
    scale: Scale = typer.Option(
        Scale.quick, "--scale", help="quick: seconds to a minute. paper: the paper's own sizes."
    ),
    seed: int = typer.Option(0, "--seed", metavar="S", min=0, help="Seed of all random draws."),
    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="FILE",
        help="Where to draw it: .pdf, .svg, .png, and .mp4 or .gif for what moves "
        "(default: figures/ID-SCALE.pdf).",
    ),
    fresh: bool = typer.Option(False, "--fresh", help="Compute anew, even if stored data fits."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Redraw a figure of a paper, from data computed here.

    The data goes into a Zarr store beside the picture (FILE with .zarr). Asked again, the figure is
    redrawn from it without computing; `--fresh` computes anew.

    Examples:

    - What there is: `tokenflock list figures`

    - Draw one: `tokenflock figure 2312.10794v4/kuramoto --out kuramoto.svg`

    - At the paper's sizes: `tokenflock figure 2410.06833v1/staircase --scale paper`

    Exit codes: 0 fine, 1 the computation failed, 2 bad usage or input, 130 interrupted.
    """
    from ..ledger import find_figure
    from ..ledger.figure_files import check_path, data_path, default_path

    chosen = find_figure(name)
    path = default_path(chosen, scale.value) if out is None else out
    check_path(chosen, path)
    start = time.perf_counter()
    with held(data_path(path)):
        reused = _make(chosen, path, scale.value, seed, fresh)
    result = {
        "id": chosen.id,
        "figure": str(path),
        "data": str(data_path(path)),
        "scale": scale.value,
        "seed": seed,
        "reused_data": reused,
        "shows": chosen.shows,
        "seconds": time.perf_counter() - start,
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    typer.echo(f"{printable(path)}: {chosen.title}")
    typer.echo(f"look for: {chosen.shows}")
    again = " (reused; --fresh computes anew)" if reused else ""
    typer.echo(f"data: {printable(data_path(path))}{again}")


def _make(figure: Figure, path: Path, scale: Any, seed: int, fresh: bool) -> bool:
    """Compute or reuse the data, draw it; whether it was reused."""
    from rich.markup import escape

    from ..integrate.progress import make_bar
    from ..ledger.figure_files import compute_and_store, stored_data, write_picture

    data = None if fresh else stored_data(figure, path, scale, seed)
    reused = data is not None
    bar = make_bar(escape(figure.id))
    bar.live.transient = True

    def report(done: float) -> None:
        bar.update(bar.task_ids[0], completed=done)

    try:
        if data is None:
            data = compute_and_store(figure, path, scale, seed, report)
        bar.update(bar.task_ids[0], completed=1.0, note="drawing")
        write_picture(figure, data, path)
    except KeyboardInterrupt:
        bar.stop()
        typer.echo("tokenflock: interrupted; no picture was written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.stop()
    return reused
