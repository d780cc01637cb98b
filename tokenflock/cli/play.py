"""tokenflock play: the page, served on this machine, with the engine behind it."""

from __future__ import annotations

import threading
from pathlib import Path

import typer

DEFAULT_FOLDER = Path("runs")


def play(
    folders: list[Path] = typer.Argument(
        None,
        metavar="FOLDER",
        help="Runs, traces, sweeps, or folders of them, for the library (default: runs, if there).",
    ),
    port: int | None = typer.Option(
        None,
        "--port",
        metavar="P",
        min=0,
        max=65_535,
        help="Port; 0 takes any free one (default: 8765, or the next free one).",
    ),
    host: str = typer.Option(
        "127.0.0.1", "--host", metavar="H", help="Address to listen on; others can then reach it."
    ),
    opening: bool = typer.Option(True, "--open/--no-open", help="Open the page in the browser."),
    max_pages: int = typer.Option(
        64, "--max-pages", metavar="N", min=1, max=10_000, help="Pages open at once."
    ),
    workers: int | None = typer.Option(
        None,
        "--workers",
        metavar="N",
        min=1,
        max=64,
        help="Processes that compute (default: cores - 1, at most 4).",
    ),
) -> None:
    """Serve the page: see tokens flock, and compute exactly with the engine.

    Examples:

    - Look: `tokenflock play`

    - Show what was computed: `tokenflock play runs traces/albert`

    - From another machine: `ssh -L 8765:127.0.0.1:8765 HOST` beside `tokenflock play --no-open`

    Ctrl-C ends it. Exit codes: 0 fine, 2 bad usage or input.
    """
    from ..web.serve import DEFAULT_PORT, LOOPBACK_HOSTS, bind, require_web, serve

    require_web()
    from ..web.bundle import require_bundle
    from ..web.page_limits import Limits, default_workers

    require_bundle()
    chosen = _folders(folders or [])
    place = bind(host, port)
    if host not in LOOPBACK_HOSTS:
        typer.echo(
            f"tokenflock: --host {host} lets others on the network open this page and compute on "
            "this machine; there is no password",
            err=True,
        )

    def ready() -> None:
        note = (
            f" (port {DEFAULT_PORT} is taken)"
            if port is None and place.port != DEFAULT_PORT
            else ""
        )
        typer.echo(f"tokenflock plays at {place.address}{note}; Ctrl-C ends it")
        if opening:
            _open(place.address)

    serve(place, chosen, workers or default_workers(), Limits(pages=max_pages), ready)


def _folders(given: list[Path]) -> list[Path]:
    from ..errors import InputError

    for folder in given:
        if not folder.is_dir():
            raise InputError(
                f"{folder} is not a folder; give run folders, or a folder that holds them"
            )
    return given or ([DEFAULT_FOLDER] if DEFAULT_FOLDER.is_dir() else [])


def _open(address: str) -> None:
    """In a thread: some browsers do not come back until they are closed."""
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
