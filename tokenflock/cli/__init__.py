"""The command line: `tokenflock run`, `sweep`, `check`, `figure`, `play`, `page`, `trace`, `bench`, ..."""

from __future__ import annotations

import gc
import io
import os
import sys

import typer

from .bench import bench
from .check import check
from .doctor import doctor
from .errors import INTERRUPTED, in_a_sentence
from .figure import figure
from .interrupts import resend_lost_interrupts
from .listing import list_things
from .page import page
from .play import play
from .records import compare, export
from .records import show as show_result
from .retrieval import retrieval as retrieval
from .run import run
from .sweep import sweep
from .trace import trace_app
from .trace_compare import compare_traces as compare_traces
from .train import train_app

app = typer.Typer(
    name="tokenflock",
    help="Transformers as interacting particles: simulate, look, check.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    "run": run,
    "sweep": sweep,
    "check": check,
    "figure": figure,
    "play": play,
    "page": page,
    "bench": bench,
    "list": list_things,
    "show": show_result,
    "compare": compare,
    "export": export,
    "doctor": doctor,
}
for name, command in COMMANDS.items():
    app.command(name)(in_a_sentence(command))
app.add_typer(trace_app, name="trace", help="Follow tokens through a trained Transformer.")
app.add_typer(
    train_app, name="train", help="Train a classifier of texts that can be read, and ask it."
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"tokenflock {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Transformers as interacting particles: simulate, look, check."""


# New objects between two collections of garbage. Loading and tracing make millions that stay; at Python's own
# 700 a fifth of a short command goes into looking through them.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Entry point."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    resend_lost_interrupts()
    _print_anything()
    code: object = 0
    try:
        app()
    except SystemExit as leaving:
        code = leaving.code
    _leave(code)


def _print_anything() -> None:
    """Names on a disk and texts of results need not be letters of the terminal's alphabet."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _leave(code: object) -> None:
    """Flush and exit; a pipe or disk that refuses the last words is no reason for a traceback."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        os._exit(code if isinstance(code, int) and code else 1)
    if code == INTERRUPTED:
        # A compiled program may still be running; nobody waits for it. What multiprocessing has open
        # (semaphores of `check`) is closed here, since nothing else runs at such an exit.
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            multiprocessing._run_finalizers()
        os._exit(INTERRUPTED)
    # Python would go through all that JAX has traced once more (a second); the process ends anyway.
    gc.freeze()
    sys.exit(code)  # pyright: ignore[reportArgumentType]
