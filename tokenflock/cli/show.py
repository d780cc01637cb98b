"""What a run shows of itself: the note of the bar, the pictures, the table at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .plainly import print_notes, printable

if TYPE_CHECKING:
    from ..lab.spec import RunSpec
    from ..trajectory import Trajectory

TABLE_ROWS = 12


def note(t: float, values: dict[str, Any]) -> str:
    """What the bar says beside the time: clusters, if a single run counts them."""
    import numpy as np

    clusters = values.get("clusters")
    if clusters is None or np.ndim(clusters) > 0 or not np.isfinite(clusters):
        return f"t = {t:.4g}"
    return f"t = {t:.4g}, {int(clusters)} clusters"


def pictures(
    spec: RunSpec, trajectory: Trajectory, folder: Path, bar: Any, check: Callable[[], None]
) -> None:
    """The figure and the animation the spec asks for; `check` raises if the folder is not ours any more."""
    from ..outcomes import succeeded

    if not succeeded(trajectory.outcome):
        return
    if spec.output.figure:
        _figure(trajectory, folder / "figure.png", check)
    if spec.output.animation != "none" and spec.save.states:
        check()
        _animation(spec, trajectory, folder, bar)


def _animation(spec: RunSpec, trajectory: Trajectory, folder: Path, bar: Any) -> None:
    from ..plot.animate import playable

    path, why = playable(folder / f"animation.{spec.output.animation}")
    if why:
        bar.console.print(why, markup=False, highlight=False)
    task = bar.add_task("animation", total=1.0, note="")
    without_screen()
    trajectory.animate(
        path,
        frames=spec.output.frames,
        report=lambda done: bar.update(task, completed=done),
    )


def without_screen() -> None:
    """Pictures go into files."""
    import matplotlib as mpl

    mpl.use("Agg")


def _figure(trajectory: Trajectory, path: Path, check: Callable[[], None]) -> None:
    without_screen()
    figure = trajectory.plot()
    check()
    save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write a PNG whole or not at all, and forget the figure."""
    from matplotlib import pyplot as plt

    from ..results.atomic import complete_file

    try:
        with complete_file(path) as scratch:
            figure.savefig(scratch, bbox_inches="tight", format="png")
    finally:
        plt.close(figure)


# What a run says of its own numbers, where it has them: tokens the first two, densities the others.
TOLD = ("norm_drift", "energy_violation", "mass_drift", "lowest_density", "dissipation_defect")


def show(trajectory: Trajectory, folder: Path, result: dict[str, Any]) -> None:
    """A table of the time series, how it went, and where it is."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if not any(axis == "beta" or axis.startswith("sample") for axis in trajectory.coords):
        console.print(_table(trajectory))
    console.print(_health(result))
    print_notes(console, trajectory.notes)
    if trajectory.attributes["numerics"]["method"] == "Layers":
        console.print("times are layers x step: this clock runs slower than the flow's")
    files = [item.name for item in sorted(folder.iterdir()) if not item.name.startswith(".")]
    console.print(printable(f"{folder}: {', '.join(files)}"), soft_wrap=True)


def _health(result: dict[str, Any]) -> str:
    from ..lab.run import time_text

    health = result["health"]
    told = [(name, health.get(name)) for name in TOLD]
    parts = [
        f"{result['outcome']} at t = {time_text(result)}: {health['accepted_steps']} steps "
        f"({health['rejected_steps']} rejected)",
        *(f"{name.replace('_', ' ')} {value:.1e}" for name, value in told if value is not None),
        f"{result['seconds']:.1f} s",
    ]
    return ", ".join(parts)


def _table(trajectory: Trajectory) -> Any:
    """A dozen rows of every scalar observable."""
    import numpy as np
    from rich.table import Table

    from ..plot.series import scalar_names

    names = sorted(scalar_names(trajectory), key=lambda name: name != "clusters")
    times = np.asarray(trajectory.time)
    table = Table(box=None, pad_edge=False)
    table.add_column("time", justify="right")
    for name in names:
        table.add_column(_heading(name, trajectory.details.get(name, {})), justify="right")
    for row in np.unique(np.linspace(0, len(times) - 1, TABLE_ROWS).astype(int)):
        values = [np.asarray(trajectory.arrays[name])[row] for name in names]
        table.add_row(f"{times[row]:.4g}", *(f"{value:.6g}" for value in values))
    return table


def _heading(name: str, details: dict[str, Any]) -> str:
    """The observable with the threshold it depends on, and the rule that found it."""
    stated = [f"{key} {details[key]:.4g}" for key in ("angle", "distance") if details.get(key)]
    if details.get("link"):
        stated.insert(0, str(details["link"]))
    return name.replace("_", " ") + (f" ({', '.join(stated)})" if stated else "")
