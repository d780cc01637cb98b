"""The sphere movies: 64 tokens on S^2, from the whole sphere or from half of it, SA and USA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ....integrate import Save, solve
from ....ledger.figure import FigureJob
from ....models import SA, USA
from ....observables import clusters
from ....plot.animate import write_film
from ....plot.style import PALETTE, styled
from ....plot.views import SphereView
from ....space import Sphere
from ....starts import hemisphere, uniform
from .. import PAPER

STARTS = {"sphere": uniform, "half sphere": hemisphere}
MODELS = {"SA": SA, "USA": USA}


@PAPER.figure(
    "movies",
    title="Tokens flock on the sphere",
    shows="from the whole sphere and from half of it, under SA and USA, the tokens end in one "
    "cluster; USA is faster by about e^beta, and a half-sphere start collapses sooner. As .mp4 or "
    ".gif it moves",
    quick={"n": 64, "beta": 1.0, "end": 15.0, "frames": 76, "shown": (0.0, 1.0, 3.0, 15.0)},
    paper={"frames": 151},
)
def movies(job: FigureJob) -> xr.Dataset:
    """Tokens and cluster counts by model, start and time."""
    times = np.linspace(0.0, job.end, job.frames)
    starts = {name: law(Sphere(3), job.n, job.seed) for name, law in STARTS.items()}
    tokens = np.empty((len(MODELS), len(STARTS), job.frames, job.n, 3))
    counts, angle = np.empty(tokens.shape[:3], dtype=int), 0.0
    for row, model in enumerate(MODELS.values()):
        for column, x0 in enumerate(starts.values()):
            plan = Save(at=times, states=True, observe=[clusters(link="spacing")])
            run = solve(model(job.beta), x0, job.end, rtol=1e-7, atol=1e-9, save=plan)
            tokens[row, column] = run.states
            counts[row, column] = run["clusters"].values
            angle = run["clusters"].attrs["angle"]
            job.report((row * len(STARTS) + column + 1) / tokens[:, :, 0, 0, 0].size)
    return xr.Dataset(
        {
            "tokens": (("model", "start", "time", "token", "coordinate"), tokens),
            "clusters": (("model", "start", "time"), counts),
        },
        coords={"model": list(MODELS), "start": list(STARTS), "time": times},
        attrs={"beta": job.beta, "angle": angle, "shown": list(job.shown)},
    )


def _globe(axes: Any, tokens: np.ndarray) -> SphereView:
    return SphereView(axes, tokens, np.full(tokens.shape[-2], PALETTE[0]))


@movies.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    rows = [(model, start) for model in data.model.values for start in data.start.values]
    moments = data.attrs["shown"]
    figure, panels = plt.subplots(
        len(rows),
        len(moments),
        figsize=(1.6 * len(moments), 1.75 * len(rows)),
        layout="constrained",
        squeeze=False,
    )
    for line, (model, start) in zip(panels, rows, strict=True):
        chosen = data.sel(model=model, start=start)
        for axes, moment in zip(line, moments, strict=True):
            now = chosen.sel(time=moment, method="nearest")
            _globe(axes, now.tokens.values[None]).show(now.tokens.values)
            count = int(now.clusters)
            axes.set_title(f"$t={float(now.time):.3g}$: {count} cluster{'s' * (count != 1)}")
        line[0].set_ylabel(f"{model}, {start}")
    about = rf"$n={data.sizes['token']}$ tokens, $\beta={data.attrs['beta']:g}$"
    figure.suptitle(
        f"{about}; clusters: angle {data.attrs['angle']:g}; pale: on the far side", fontsize=8
    )
    return figure


@movies.film
def _(data: xr.Dataset, path: Path) -> Path:
    pairs = [(model, start) for model in data.model.values for start in data.start.values]
    with styled() as plt:
        figure, panels = plt.subplots(2, 2, figsize=(5.0, 5.4), dpi=120, layout="constrained")
        views = []
        for axes, (model, start) in zip(panels.flat, pairs, strict=True):
            axes.set_title(f"{model}, {start}")
            states = data.tokens.sel(model=model, start=start).values
            views.append((_globe(axes, states), states))
        clock = panels.flat[0].text(0.02, 0.02, "", transform=panels.flat[0].transAxes)
        figure.canvas.draw()

        def show(index: int) -> list[Any]:
            clock.set_text(rf"$\beta={data.attrs['beta']:g}$, $t={float(data.time[index]):.1f}$")
            return [clock, *(dot for view, states in views for dot in view.show(states[index]))]

        try:
            return write_film(path, figure, show, data.sizes["time"])
        finally:
            plt.close(figure)
