"""tokenflock run: integrate a spec into a folder with a live bar, a table, a figure, an animation."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .errors import INTERRUPTED
from .plainly import printable

if TYPE_CHECKING:
    from ..lab.spec import RunSpec


def run(
    spec: Path | None = typer.Argument(
        None, metavar="RUN_SPEC.toml", help="A spec file; start from --print-spec of an example."
    ),
    example: str | None = typer.Option(
        None, "--example", metavar="NAME", help="Run a shipped example: tokenflock list examples."
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="PATH=VALUE",
        help="Change a value: a full path (tokens.n=128) or a unique leaf (beta=4). Repeatable.",
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="DIR", help="Folder to make (default: runs/TITLE-ID-TIME)."
    ),
    resume: bool = typer.Option(
        False,
        "--resume",
        help="Continue an interrupted run in --out; a finished one is read and checked.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the run in --out."),
    print_spec: bool = typer.Option(
        False, "--print-spec", help="Print the full resolved spec as TOML and leave."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Integrate a run and write a folder: Zarr store, figure, animation, summary.

    Examples:

    - Look at one: `tokenflock run --example sphere`

    - Change it: `tokenflock run --example circle --set beta=9 --set n=128 --out runs/mine`

    - Several at once: `tokenflock run --example circle --set 'beta=[1, 4, 9]' --set samples=8`

    - Beta 1, and 9 from t = 5 on: `tokenflock run --example circle --set 'beta={times=[5], values=[1, 9]}'`

    - Own it: `tokenflock run --example circle --print-spec > my.toml`, then `tokenflock run my.toml`

    - Continue after Ctrl-C or a crash: `tokenflock run --resume --out runs/mine`

    Read it in Python: `run = tokenflock.open("runs/mine"); run["energy"]`

    Exit codes: 0 fine, 1 the run failed, 2 bad usage or input, 130 interrupted.
    """
    resolved = _load(spec, example, settings, out if resume else None)
    if print_spec:
        from ..lab.files import render

        typer.echo(render(resolved), nl=False)
        return
    result = _run(resolved, out, resume, overwrite, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(result, allow_nan=False))
    if not result["ok"]:
        from ..lab.run import time_text

        advice = printable(result["advice"])
        typer.echo(f"tokenflock: stopped at t = {time_text(result)}: {advice}", err=True)
        raise typer.Exit(1)


def _load(
    spec: Path | None, example: str | None, settings: list[str], resumed: Path | None
) -> RunSpec:
    from ..errors import InputError
    from ..lab.catalogue import example_text

    if spec is not None and example is not None:
        raise InputError("give a spec file or --example, not both")
    text = None if example is None else example_text(example)
    if text is None and spec is None and resumed is None:
        raise InputError("give a spec file or --example NAME; see tokenflock list examples")
    # Only now the heavy imports: a mistyped name is answered at once.
    from ..lab.files import parse, read_text

    if text is not None:
        return parse(text, settings, f"example {example}")
    if spec is not None:
        return parse(read_text(spec), settings, str(spec))
    assert resumed is not None
    return _started(resumed, settings)


def _started(folder: Path, settings: list[str]) -> RunSpec:
    """The spec a run folder was started with."""
    from ..errors import InputError
    from ..lab.files import parse, read_stored
    from ..results.names import RUN_SPEC

    if not (folder / RUN_SPEC).exists():
        raise InputError(f"there is no run to resume in {folder} (no {RUN_SPEC})")
    return parse(read_stored(folder / RUN_SPEC), settings, str(folder / RUN_SPEC))


def _run(
    spec: RunSpec, out: Path | None, resume: bool, overwrite: bool, quiet: bool
) -> dict[str, Any]:
    from ..errors import InputError
    from ..lab.files import identity
    from ..lab.folder import check_folder, read_summary, require_own_summary, require_undamaged
    from ..results.names import STORE
    from ..results.places import new_folder

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to continue")
    if resume and overwrite:
        raise InputError("--resume continues a run and --overwrite replaces it; choose one")
    folder = new_folder(spec.title, identity(spec)) if out is None else out
    check_folder(spec, folder, resume, overwrite)
    finished = read_summary(folder) if resume else None
    if finished is not None:
        require_own_summary(finished, identity(spec), folder, STORE)
        require_undamaged(folder)
        typer.echo(printable(f"{folder} is finished; this is its stored result"), err=True)
        return finished
    return _compute(spec, folder, resume, overwrite, quiet)


def _compute(
    spec: RunSpec, folder: Path, resume: bool, overwrite: bool, quiet: bool
) -> dict[str, Any]:
    """Integrate, draw, and write the summary last."""
    from rich.markup import escape

    from ..integrate.progress import make_bar
    from ..lab.files import identity
    from ..lab.folder import write_summary
    from ..lab.run import running, summary
    from .show import note, pictures, show

    start = time.perf_counter()
    bar = make_bar(escape(spec.title))
    task = bar.task_ids[0]

    def report(done: float, t: float, values: dict[str, Any]) -> None:
        bar.update(task, completed=done, note=note(t, values))

    try:
        with running(spec, folder, resume, overwrite, report) as (trajectory, writer):
            bar.update(task, completed=1.0)
            pictures(spec, trajectory, folder, bar, writer.require_place)
            result = summary(identity(spec), trajectory, folder, time.perf_counter() - start)
            writer.require_place()
            write_summary(folder, result)
    except KeyboardInterrupt:
        bar.stop()
        typer.echo(printable(f"tokenflock: {_interrupted(folder)}"), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BaseException:
        # What went wrong is told in one sentence; a bar at 0 % beside it says nothing.
        bar.live.transient = True
        raise
    finally:
        bar.stop()
    if not quiet:
        show(trajectory, folder, result)
    return result


def _interrupted(folder: Path) -> str:
    from ..results.names import RUN_SPEC

    if not (folder / RUN_SPEC).exists():
        return "interrupted before anything was written"
    return (
        f"interrupted; what is done is in {folder}. Continue with "
        f"tokenflock run --resume --out {folder}"
    )
