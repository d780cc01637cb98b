"""Section 7: the circle, where beta = 0 is the Kuramoto model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....integrate import Save, solve
from ....ledger.figure import FigureJob
from ....models import SA, USA
from ....observables import order_parameter
from ....plot.style import FAINT
from ....space import Sphere
from ....starts import uniform
from .. import PAPER

MODELS = {"SA": SA, "USA": USA}


@PAPER.figure(
    "kuramoto",
    title="Self-attention beside the Kuramoto model",
    shows="at beta = 0 SA and USA are the Kuramoto model and the order parameter |mean x| rises to 1. "
    "At beta = 0.1 both still lie on its curve (wide and pale); SA falls behind as beta grows, while USA "
    "starts faster by e^beta and then rests on a plateau of several clusters",
    quick={"n": 32, "samples": 8, "betas": (0.0, 0.1, 1.0, 4.0), "end": 8.0, "times": 65},
    paper={"n": 128, "samples": 64},
)
def kuramoto(job: FigureJob) -> xr.Dataset:
    """Mean order parameter over samples, by model, beta and time."""
    x0 = uniform(Sphere(2), job.n, job.seed, samples=job.samples)
    times = np.linspace(0.0, job.end, job.times)
    rows = []
    for index, model in enumerate(MODELS.values()):
        run = solve(
            model(np.asarray(job.betas)),
            x0,
            job.end,
            rtol=1e-7,
            atol=1e-9,
            save=Save(at=times, observe=[order_parameter]),
        )
        rows.append(run["order_parameter"].mean("sample").transpose("beta", "time").values)
        job.report((index + 1) / len(MODELS))
    return xr.Dataset(
        {"order_parameter": (("model", "beta", "time"), np.stack(rows))},
        coords={"model": list(MODELS), "beta": list(job.betas), "time": times},
    )


@kuramoto.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.9), sharey=True, layout="constrained")
    flat = data.order_parameter.sel(model="USA", beta=0.0)
    for axes, model in zip(panels, data.model.values, strict=True):
        # Wide and pale below the others: at beta = 0.1 they lie on it.
        axes.plot(data.time, flat, color=FAINT, lw=5.0, label=r"Kuramoto ($\beta=0$)")
        for beta in data.beta.values[1:]:
            curve = data.order_parameter.sel(model=model, beta=beta)
            axes.plot(data.time, curve, lw=1.3, label=rf"$\beta={beta:g}$")
        axes.set(title=model, xlabel="$t$", ylim=(0, 1.03))
    panels[0].set_ylabel(r"order parameter $|\bar x|$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure
