"""Time series of a run, one panel each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..trajectory import Trajectory
from .style import PALETTE
from .views import one_sample

# Kept by every density run for its health: shown only when nothing else was asked for.
HEALTH = ("mass", "lowest", "tail", "work", "free_energy")


def scalar_names(run: Trajectory) -> list[str]:
    """Observables with one number per time; the numbers of its health where there are no others."""
    names = []
    for name, dims in run.axes.items():
        inner = [d for d in dims if d not in run.batch_axes]
        if inner == ["time"]:
            names.append(name)
    hidden = HEALTH if run.is_density else ("scaled_energy",)
    watched = [name for name in names if name == ("free_energy" if run.is_density else hidden[0])]
    return [name for name in names if name not in hidden] or watched or names


def draw_series(plt: Any, run: Trajectory, sample: Any, names: list[str] | None = None) -> Any:
    """A figure of the series of these names, or of all."""
    names = scalar_names(run) if names is None else names
    if not names:
        raise InputError(
            "this run kept no time series, which can be drawn of every run; solve again with "
            "save=Save(every=..., observe=[flock.energy, ...])"
        )
    figure, grid = plt.subplots(
        len(names), 1, figsize=(5.2, 1.4 * len(names) + 0.6), sharex=True, squeeze=False
    )
    fill_series(run, sample, grid[:, 0], names)
    figure.tight_layout()
    return figure


def fill_series(run: Trajectory, sample: Any, panels: Any, names: list[str]) -> None:
    """One panel per name, over the time that all share."""
    times = np.asarray(run.time)
    for index, (axes, name) in enumerate(zip(panels, names, strict=True)):
        values = one_sample(run, name, sample)
        colour = PALETTE[index % len(PALETTE)]
        whole = np.issubdtype(np.asarray(values).dtype, np.integer)
        axes.plot(
            times, values, color=colour, lw=1.3, drawstyle="steps-post" if whole else "default"
        )
        details = run.details.get(name, {})
        angle = details.get("angle")
        note = f"\n(angle {angle:.3g})" if angle else ""
        note += "\nmeans nothing" if details.get("note") else ""
        axes.set_ylabel(name.replace("_", " ") + note)
        axes.tick_params(labelbottom=axes is panels[-1])
    panels[-1].set_xlabel("time t" + (" (layers x step)" if is_layers(run) else ""))


def is_layers(run: Trajectory) -> bool:
    """Whether time counts layers of a discrete network."""
    return run.attributes.get("numerics", {}).get("method") == "Layers"
