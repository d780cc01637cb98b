"""tokenflock sweep: a run over a grid of settings, into a folder that survives every crash."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .errors import INTERRUPTED
from .plainly import printable

if TYPE_CHECKING:
    from ..sweeps.conduct import Wishes
    from ..sweeps.estimate import Estimate
    from ..sweeps.plan import Sweep


def sweep(
    spec: Path | None = typer.Argument(
        None, metavar="SPEC.toml", help="A run spec with a [sweep] table; start from --print-spec."
    ),
    example: str | None = typer.Option(
        None,
        "--example",
        metavar="NAME",
        help="A shipped sweep: phase-small, phase-diagram or density-modes.",
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="PATH=VALUE",
        help="Change a value: a path (sweep.axes.seed.seeds=16) or a unique leaf (t1=20). Repeatable.",
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="DIR", help="Folder to make (default: runs/TITLE-ID-TIME)."
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Continue the sweep in --out; damaged cells are computed again."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the sweep in --out."),
    workers: int | None = typer.Option(
        None,
        "--workers",
        metavar="N",
        min=1,
        help="Processes (default: one per core); 1 computes in this one.",
    ),
    batch: int | None = typer.Option(
        None, "--batch", metavar="N", min=1, help="Cells per block (default: about 2 s of work)."
    ),
    scheduler: str | None = typer.Option(
        None, "--scheduler", metavar="ADDRESS", help="Use a running dask cluster: tcp://host:8786."
    ),
    strict: bool = typer.Option(False, "--strict", help="Stop at the first cell that fails."),
    retry_failed: bool = typer.Option(
        False, "--retry-failed", help="With --resume: compute failed cells again."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say how many cells, how large and how long, and leave."
    ),
    print_spec: bool = typer.Option(
        False, "--print-spec", help="Print the full spec as TOML and leave."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Run a grid of settings and write one dataset: Zarr store, picture, summary.

    Examples:

    - Look at one (20 s): `tokenflock sweep --example phase-small`

    - Own it: `tokenflock sweep --example phase-small --print-spec > my.toml`, then
      `tokenflock sweep my.toml --out runs/mine`

    - How large will it be? `tokenflock sweep my.toml --dry-run`

    - Continue after Ctrl-C, a crash or a power cut: `tokenflock sweep --resume --out runs/mine`

    - On a cluster: `tokenflock sweep my.toml --scheduler tcp://10.0.0.5:8786`

    A sweep is a run spec and a [sweep] table; axes are ranges, lists, zipped settings, random draws or
    seeds: `[sweep.axes]` with `beta = { from = 0.1, to = 9.0, count = 90 }`, `n = [16, 32]`,
    `seed = { seeds = 256 }`.

    Cells that fail are recorded and the sweep goes on. The numbers depend neither on workers nor on
    batches, nor on how often it was interrupted.

    Read it in Python: `data = tokenflock.open("runs/mine"); data["clusters"].mean("seed")`

    Exit codes: 0 fine, 1 every cell failed or it was stopped, 2 bad usage or input, 130 interrupted
    (Ctrl-C, or the SIGTERM of a batch system).
    """
    _check_options(out, resume, overwrite, retry_failed, batch, print_spec and as_json)
    planned = _load(spec, example, settings, batch, resumed=resume)
    if print_spec:
        typer.echo(_or_started(planned, out).text, nl=False)
        return
    from ..sweeps.conduct import Wishes

    wishes = Wishes(
        resume=resume,
        overwrite=overwrite,
        workers=workers,
        scheduler=scheduler,
        strict=strict,
        retry_failed=retry_failed,
    )
    if dry_run:
        _tell(planned, out, wishes, as_json)
        return
    result = _conduct(planned, out, wishes, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(result, allow_nan=False))
    if not result["ok"]:
        typer.echo(f"tokenflock: all {result['cells']} cells failed", err=True)
        raise typer.Exit(1)


def _check_options(
    out: Path | None,
    resume: bool,
    overwrite: bool,
    retry_failed: bool,
    batch: int | None,
    two_formats: bool,
) -> None:
    from ..errors import InputError

    if two_formats:
        raise InputError("--print-spec prints TOML; leave out --json")
    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the sweep to continue")
    if resume and overwrite:
        raise InputError("--resume continues a sweep and --overwrite replaces it; choose one")
    if resume and batch is not None:
        raise InputError("--batch is fixed when a sweep starts; leave it out with --resume")
    if retry_failed and not resume:
        raise InputError("--retry-failed belongs to --resume --out DIR")


def _load(
    spec: Path | None, example: str | None, settings: list[str], batch: int | None, resumed: bool
) -> Sweep | None:
    """The sweep that is asked for; None if a folder says which it is."""
    from ..errors import InputError
    from ..sweeps.catalogue import sweep_example_text
    from ..sweeps.workers import prepare_process

    prepare_process()
    if spec is not None and example is not None:
        raise InputError("give a spec file or --example, not both")
    text = None if example is None else sweep_example_text(example)
    if text is None and spec is None:
        if not resumed:
            raise InputError("give a spec file or --example NAME; see tokenflock sweep --help")
        if settings:
            raise InputError("--set changes a spec; give the one the sweep was started with, too")
        return None
    # Only now the heavy imports: a mistyped name is answered at once.
    from ..lab.files import read_text
    from ..sweeps.plan import parse_sweep

    asked = [*settings, *([] if batch is None else [f"sweep.batch={batch}"])]
    if text is not None:
        return parse_sweep(text, asked, f"example {example}")
    assert spec is not None
    return parse_sweep(read_text(spec), asked, str(spec))


def _or_started(planned: Sweep | None, folder: Path | None) -> Sweep:
    if planned is not None:
        return planned
    assert folder is not None
    from ..sweeps.store import SweepStore

    return SweepStore.open(folder).sweep


def _tell(planned: Sweep | None, out: Path | None, wishes: Wishes, as_json: bool) -> None:
    """What the sweep would take, and whether there is so much."""
    from dataclasses import asdict

    from ..sweeps.conduct import would_need

    sweep, count, found, refusal = would_need(planned, out, wishes)
    if as_json:
        told = None if refusal is None else str(refusal)
        plan = {"id": sweep.id, "workers": count, **asdict(found), "refused": told}
        typer.echo(json.dumps(plan))
    else:
        _print_plan(sweep, count, found)
    if refusal is not None:
        raise refusal


def _print_plan(sweep: Sweep, workers: int, found: Estimate) -> None:
    from ..sweeps.estimate import in_words

    shape = " x ".join(f"{len(axis)} {axis.name}" for axis in sweep.axes)
    typer.echo(printable(f"{sweep.title} ({sweep.id}): {shape} = {found.cells} cells"))
    typer.echo(f"{found.blocks} blocks of up to {found.batch} cells, on {workers} workers")
    typer.echo(f"at most {in_words(found.disk)} on disk, {in_words(found.memory)} of memory")
    typer.echo(f"about {_duration(found.seconds)} (a guess within a factor of ten)")


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"


def _conduct(
    planned: Sweep | None, out: Path | None, wishes: Wishes, quiet: bool
) -> dict[str, Any]:
    """Compute, draw, and say where it is."""
    from ..sweeps.conduct import conduct
    from ..sweeps.watching import watcher
    from .show_sweep import picture, show

    folder = _folder(planned, out)
    watch = watcher(folder.name if planned is None else planned.title)
    failed = True
    try:
        with _sigterm_as_interrupt():
            result = conduct(planned, folder, wishes, watch)
        failed = False
        regret = picture(folder)
        if regret is not None:
            watch.say(f"tokenflock: {regret}")
    except KeyboardInterrupt:
        watch.stop()
        typer.echo(printable(f"tokenflock: {_interrupted(folder)}"), err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        watch.stop(failed)
    if not quiet:
        show(result, folder)
    return result


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Batch systems end a job with SIGTERM: it is left as after Ctrl-C, and further ones change nothing."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _folder(planned: Sweep | None, out: Path | None) -> Path:
    from ..results.places import new_folder

    if out is not None:
        return out
    assert planned is not None
    return new_folder(planned.title, planned.id)


def _interrupted(folder: Path) -> str:
    from ..results.durable import how_to_continue
    from ..results.names import SWEEP_SPEC

    if not (folder / SWEEP_SPEC).exists():
        return "interrupted before anything was written"
    return f"interrupted; what is done is in {folder}. Continue with {how_to_continue(folder)}"
