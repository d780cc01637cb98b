"""The command line: `tokenflock run | list | doctor`. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys

import typer

from .doctor import doctor
from .listing import list_things
from .run import run

app = typer.Typer(
    name="tokenflock",
    help="Transformers as interacting particles: simulate, look, check.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run)
app.command("list")(list_things)
app.command("doctor")(doctor)


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


def main() -> None:
    """Entry point: errors become one sentence and an exit code, never a traceback."""
    from ..errors import TokenflockError

    try:
        app()
    except TokenflockError as error:
        typer.echo(f"tokenflock: {error}", err=True)
        sys.exit(error.exit_code)
    except MemoryError:
        typer.echo("tokenflock: out of memory; lower n or samples, or use reduction 'tiled'", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
