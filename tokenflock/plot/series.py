"""Time series of a run, one panel each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trajectory import Trajectory
from .style import PALETTE
from .views import one_sample

# Kept by every density run for its health: shown only when nothing else was asked for.
HEALTH = ("mass", "lowest", "tail", "work", "free_energy")


def scalar_names(run: Trajectory) -> list[str]:
    """Observables with one number per time."""
    names = []
    for name, dims in run.axes.items():
        inner = [d for d in dims if d != "beta" and not d.startswith("sample")]
        if inner == ["time"]:
            names.append(name)
    watched = ("free_energy",) if run.is_density else ("scaled_energy",)
    hidden = HEALTH if run.is_density else watched
    return [name for name in names if name not in hidden] or [n for n in names if n in watched]


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
