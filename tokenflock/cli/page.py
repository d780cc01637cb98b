"""tokenflock page: the page as one file for a web site, an e-mail or a disk."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from .held import held
from .plainly import printable


def page(
    runs: list[Path] = typer.Argument(
        None, metavar="RUN", help="Runs, traces or sweeps to show in it."
    ),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder to write index.html into."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the page in --out."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Write the page as one self-contained index.html; it needs no server and no network.

    Examples:

    - For a project site: `tokenflock page --out site`

    - With results in it: `tokenflock page --out talk runs/mine runs/sweep.zarr`

    "Compute exactly" needs the engine, so it is in `tokenflock play` only; everything else works.

    Exit codes: 0 fine, 1 the disk is full, 2 bad usage or input.
    """
    from ..web.bundle import require_bundle
    from ..web.file import INDEX, LARGE, check_place, write_page

    require_bundle()
    check_place(out, overwrite)
    replays = []
    if runs:
        # Only now the engine: a page without runs needs none of it.
        from ..web.replay import read_replay

        replays = [read_replay(run) for run in runs]
    with held(out / INDEX):
        written = write_page(out, replays)
    size = written.stat().st_size
    if as_json:
        shown = [{"kind": each["kind"], "title": each["title"]} for each in replays]
        typer.echo(json.dumps({"page": str(written), "bytes": size, "replays": shown}))
        return
    typer.echo(
        f"{printable(written)} ({size / 2**20:.1f} MiB) is the page; open it, or put it on a web server"
    )
    if size > LARGE:
        typer.echo("tokenflock: that is large for a link; give fewer runs", err=True)
