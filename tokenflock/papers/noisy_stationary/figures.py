"""2510.20094: states of several clusters on the circle, and how slowly they fall apart."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from ... import theory
from ...ledger.figure import FigureJob
from ...meanfield.circle import Fourier
from ...meanfield.stationary import branch
from ...models import USA
from ...plot.key import mark, stroke
from ...plot.style import FAINT, PALETTE, REST
from . import PAPER


@PAPER.figure(
    "cluster-branches",
    title="Several clusters as stationary states that hardly move",
    shows="branches with 1, 2 and 3 clusters at beta = 9 leave the uniform state at their thresholds (dots). "
    "Only one cluster is stable (left, solid) and has the most free energy; the others are saddles, but "
    "the rate at which they fall apart (middle) drops in the cold far below the rate at which their mode "
    "grows around the uniform state (dotted). Right: their densities at the coldest temperature shown",
    quick={"beta": 9.0, "modes": 64, "clusters": 3, "points": 60},
    paper={"modes": 192, "clusters": 4, "points": 200},
)
def cluster_branches(job: FigureJob) -> xr.Dataset:
    """Free energy, growth rate and densities of the branches of degrees 1, 2, ..., in units of T_1."""
    on, model = Fourier(job.modes), USA(job.beta)
    degrees = np.arange(1, job.clusters + 1)
    thresholds = np.asarray(theory.critical_temperature(degrees, 2, job.beta))
    tables = {
        name: np.full((len(degrees), job.points), np.nan)
        for name in ("temperature", "advantage", "growth", "unstable")
    }
    densities = []
    for row, degree in enumerate(degrees):
        found = branch(model, on, (0.05 * thresholds[0], 2 * thresholds[0]), int(degree))
        size = min(job.points, len(found.temperatures))
        tables["temperature"][row, :size] = found.temperatures[:size] / thresholds[0]
        tables["advantage"][row, :size] = found.advantages[:size] / thresholds[0]
        tables["growth"][row, :size] = found.growths[:size] / thresholds[0]
        tables["unstable"][row, :size] = found.unstable[:size]
        densities.append(np.asarray(on.scheme().values(jnp.asarray(found.states[size - 1]))))
        job.report((row + 1) / len(degrees))
    angles = 2 * np.pi * np.arange(len(densities[0])) / len(densities[0])
    forming = [
        theory.noisy_growth_rate(k, 2, job.beta, table * thresholds[0]) / thresholds[0]
        for k, table in zip(degrees, np.nan_to_num(tables["temperature"], nan=1.0), strict=True)
    ]
    return xr.Dataset(
        {
            **{name: (("degree", "point"), table) for name, table in tables.items()},
            "forming": (("degree", "point"), np.asarray(forming)),
            "threshold": (("degree",), thresholds / thresholds[0]),
            "density": (("degree", "angle"), np.asarray(densities)),
        },
        coords={"degree": degrees, "angle": angles},
    )


@cluster_branches.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 3, figsize=(7.6, 3.3), layout="constrained")
    for index, degree in enumerate(data.degree.values):
        one, colour = data.sel(degree=degree), PALETTE[index]
        calm = one.unstable == 0
        plural = "s" if degree > 1 else ""
        panels[0].plot(one.temperature.where(calm), one.advantage, color=colour, lw=1.6)
        panels[0].plot(one.temperature.where(~calm), one.advantage, "--", color=colour, lw=1.2)
        panels[0].plot(
            one.threshold, 0.0, "o", color=colour, ms=4, label=f"{degree} cluster{plural}"
        )
        if degree > 1:
            panels[1].plot(one.temperature, one.growth, color=colour, lw=1.5)
            shown = one.forming.where((one.forming > 0) & np.isfinite(one.temperature))
            panels[1].plot(one.temperature, shown, ":", color=colour, lw=1.2)
        turn = np.concatenate([one.angle - 2 * np.pi, one.angle]) / np.pi
        panels[2].plot(turn, np.concatenate([one.density, one.density]), color=colour, lw=1.4)
    panels[0].axhline(0.0, color=REST, lw=0.8)
    panels[0].set(xlabel="$T/T_1$", ylabel=r"$(A-A_{\rm uniform})/T_1$", title="free energy")
    panels[0].legend(fontsize=7)
    panels[1].set(
        xlabel="$T/T_1$", ylabel="rate$/T_1$", yscale="log", ylim=(3e-3, None), title="growth rates"
    )
    panels[1].axvline(1.0, color=FAINT, lw=0.8)
    panels[2].set(xlabel=r"$\theta/\pi$", ylabel="density", xlim=(-1, 1), title="coldest density")
    key = [
        stroke("-", "left: stable; middle: falling apart", REST, lw=1.5),
        stroke("--", "left: unstable", REST),
        stroke(":", "middle: forming from the uniform law", REST),
        mark("o", "left: where the branch starts", REST),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=2, fontsize=7.5)
    return figure
