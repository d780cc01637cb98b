"""tokenflock run: integrate a spec into a folder with a live bar, a table, a figure, an animation."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..lab.spec import RunSpec
    from ..trajectory import Trajectory

TABLE_ROWS = 12


def run(
    spec: Path | None = typer.Argument(None, help="A TOML spec; see tokenflock list examples."),
    example: str | None = typer.Option(None, "--example", help="Run a shipped example instead."),
    settings: list[str] = typer.Option(
        [], "--set", metavar="PATH=VALUE",
        help="Change a value: a full path (tokens.n=128) or a unique leaf (beta=4). Repeatable.",
    ),
    out: Path | None = typer.Option(None, "--out", help="Run folder (default: runs/TITLE-ID-TIME)."),
    resume: bool = typer.Option(False, "--resume", help="Continue an interrupted run in --out."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the run in --out."),
    print_spec: bool = typer.Option(
        False, "--print-spec", help="Print the full resolved spec as TOML and leave."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Integrate a run and write a folder: Zarr store, figure, animation, summary.

    Examples:

      tokenflock run --example sphere

      tokenflock run --example circle --set beta=4 --set n=128 --out runs/mine

      tokenflock run my.toml --out runs/mine --resume
    """
    resolved = _load(spec, example, settings, out if resume else None)
    if print_spec:
        from ..lab.files import render

        typer.echo(render(resolved), nl=False)
        return
    result = _run(resolved, out, resume, overwrite, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(result))
    if not result["ok"]:
        typer.echo(f"tokenflock: {result['advice']}", err=True)
        sys.exit(1)


def _load(spec: Path | None, example: str | None, settings: list[str], resumed: Path | None) -> RunSpec:
    from ..errors import InputError
    from ..lab.files import example_text, parse, read_text

    if spec is not None and example is not None:
        raise InputError("give a spec file or --example, not both")
    if example is not None:
        return parse(example_text(example), settings, f"example {example}")
    if spec is not None:
        return parse(read_text(spec), settings, str(spec))
    if resumed is not None:
        return parse(read_text(resumed / "spec.toml"), settings, str(resumed / "spec.toml"))
    raise InputError("give a spec file or --example NAME; see tokenflock list examples")


def _run(spec: RunSpec, out: Path | None, resume: bool, overwrite: bool, quiet: bool) -> dict[str, Any]:
    from ..errors import InputError
    from ..integrate.progress import make_bar
    from ..lab.files import identity
    from ..lab.run import new_folder, run_spec, summary, write_summary

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to continue")
    if resume and overwrite:
        raise InputError("--resume continues a run and --overwrite replaces it; choose one")
    folder = new_folder(spec.title, identity(spec)) if out is None else out
    start = time.perf_counter()
    bar = make_bar(spec.title)
    try:
        task = bar.task_ids[0]

        def report(t: float, piece: Trajectory) -> None:
            note = _note(t, piece)
            bar.update(task, completed=t / spec.solve.t1, note=note)

        trajectory = run_spec(spec, folder, resume, overwrite, report)
        bar.update(task, completed=1.0)
        _pictures(spec, trajectory, folder, bar)
    except KeyboardInterrupt:
        bar.stop()
        typer.echo(
            f"tokenflock: interrupted; what is done is in {folder}. Continue with "
            f"tokenflock run --resume --out {folder}",
            err=True,
        )
        sys.exit(130)
    finally:
        bar.stop()
    result = summary(identity(spec), trajectory, folder, time.perf_counter() - start)
    write_summary(folder, result)
    if not quiet:
        _show(trajectory, folder, result)
    return result


def _note(t: float, piece: Trajectory) -> str:
    """What the bar says beside the time: clusters, if a single run counts them."""
    import numpy as np

    clusters = piece.arrays.get("final_clusters")
    if clusters is None or np.ndim(clusters) > 0:
        return f"t = {t:.4g}"
    return f"t = {t:.4g}, {int(clusters)} clusters"


def _pictures(spec: RunSpec, trajectory: Trajectory, folder: Path, bar: Any) -> None:
    """The figure and the animation the spec asks for."""
    from ..integrate.outcome import succeeded

    if not succeeded(trajectory.outcome):
        return
    import matplotlib as mpl

    mpl.use("Agg")
    if spec.output.figure:
        from matplotlib import pyplot as plt

        figure = trajectory.plot()
        figure.savefig(folder / "figure.png", bbox_inches="tight")
        plt.close(figure)
    if spec.output.animation != "none" and spec.save.states:
        task = bar.add_task("animation", total=1.0, note="")
        trajectory.animate(
            folder / f"animation.{spec.output.animation}",
            frames=spec.output.frames,
            report=lambda done: bar.update(task, completed=done),
        )


def _show(trajectory: Trajectory, folder: Path, result: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    if "beta" not in trajectory.coords and not any(c.startswith("sample") for c in trajectory.coords):
        console.print(_table(trajectory))
    health = result["health"]
    violation = health.get("energy_violation")
    monotone = "" if violation is None else f", energy violation {violation:.1e}"
    console.print(
        f"{result['outcome']} at t = {result['time']:g}: {health['accepted_steps']} steps "
        f"({health['rejected_steps']} rejected), norm drift {health['norm_drift']:.1e}{monotone}"
    )
    if trajectory.attributes["numerics"]["method"] == "Layers":
        console.print("times are layers x step: this clock runs slower than the flow's")
    files = [item.name for item in sorted(folder.iterdir()) if not item.name.startswith(".")]
    console.print(f"{folder}: {', '.join(files)}", highlight=False)


def _table(trajectory: Trajectory) -> Any:
    """A dozen rows of every scalar observable."""
    import numpy as np
    from rich.table import Table

    from ..plot.draw import scalar_names

    names = sorted(scalar_names(trajectory), key=lambda name: name != "clusters")
    times = np.asarray(trajectory.time)
    table = Table(box=None, pad_edge=False)
    table.add_column("time", justify="right")
    for name in names:
        angle = trajectory.details.get(name, {}).get("angle")
        table.add_column(name.replace("_", " ") + (f" (angle {angle:g})" if angle else ""), justify="right")
    for row in np.unique(np.linspace(0, len(times) - 1, TABLE_ROWS).astype(int)):
        values = [np.asarray(trajectory.arrays[name])[row] for name in names]
        table.add_row(f"{times[row]:.4g}", *(f"{value:.6g}" for value in values))
    return table
