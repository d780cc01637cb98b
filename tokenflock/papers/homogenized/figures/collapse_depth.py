"""2604.01978: how many random layers until the tokens have collapsed."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from .... import theory
from ....ledger.figure import FigureJob
from ....plot.style import INK, PALETTE
from ....random_depth import depth_to_collapse
from .. import PAPER

LEVEL = 0.9


@PAPER.figure(
    "depth-to-collapse",
    title="Depth to collapse",
    shows="layers until the mean overlap passes 0.9, with 95 % intervals of the median. In units of H/eta^2 "
    "the law of infinite d and small steps is log(9(n-1)) (dashed). Chains need 10 to 20 % more, for two "
    "reasons that add up to the solid lines: a layer of finite step multiplies u/(1-u) by 1 + eta^2/H and "
    "not by its exponential (12 % at eta = 0.5, H = 1; 6 % at 0.35), and at finite d the drift is smaller by "
    "O(1/d) (8 % at d = 32). Left: at small beta nothing else matters, whatever H and eta; right: it grows "
    "like log n, and large beta, which neither line knows of, delays it further",
    quick={
        "d": 32,
        "n": 8,
        "heads": (1, 4),
        "steps": (0.5, 0.35, 0.25),
        "sizes": (4, 8, 16),
        "betas": (0.5, 8.0),
        "step": 0.35,
        "chains": 64,
        "longest": 12.0,
    },
    paper={
        "d": 64,
        "steps": (0.4, 0.2, 0.1),
        "sizes": (4, 8, 16, 32, 64),
        "step": 0.2,
        "chains": 200,
    },
)
def collapse(job: FigureJob) -> xr.Dataset:
    """Two tables of `depth_to_collapse`, over heads and steps and over n and beta, beside their laws."""
    common = {"chains": job.chains, "longest": job.longest, "seed": job.seed, "level": LEVEL}
    one_size = ([job.d], [job.n], [job.betas[0]])
    first = depth_to_collapse(*one_size, job.heads, job.steps, **common)
    job.report(0.5)
    second = depth_to_collapse([job.d], job.sizes, job.betas, step=[job.step], **common)
    left = first.isel(d=0, n=0, beta=0, drop=True)
    right = second.isel(d=0, heads=0, step=0, drop=True)
    return xr.Dataset(
        {
            "layers": left.layers,
            "tau": left.tau,
            "tau_error": left.tau_error,
            "depth": right.tau,
            "depth_error": right.tau_error,
            "flat": float(theory.logistic_depth(LEVEL, 1 / job.n)),
            **laws(job),
        },
    )


def laws(job: FigureJob) -> dict[str, Any]:
    """tau with both corrections, on fine grids of the unit eta^2/H and of n; the dashed law over n."""
    smallest = min(job.steps) ** 2 / max(job.heads)
    largest = max(job.steps) ** 2 / min(job.heads)
    unit = np.geomspace(0.8 * smallest, 1.25 * largest, 40)
    size = np.geomspace(min(job.sizes), max(job.sizes), 40)
    step = [theory.layered_depth(LEVEL, job.n, job.d, step=one**0.5) for one in unit]
    grown = [theory.layered_depth(LEVEL, float(one), job.d, step=job.step) for one in size]
    return {
        "law_tau": ("unit", step, {"d": job.d, "n": job.n}),
        "law_depth": ("size", grown, {"d": job.d, "step": job.step}),
        "flat_depth": ("size", theory.logistic_depth(LEVEL, 1 / size)),
        "unit": ("unit", unit),
        "size": ("size", size),
    }


@collapse.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.2), layout="constrained")
    for index, heads in enumerate(data.heads.values):
        one = data.sel(heads=heads)
        left.errorbar(
            data.step**2 / heads, one.tau, yerr=one.tau_error, fmt="os"[index % 2], ms=4,
            color=PALETTE[index], label=f"chains, $H={heads}$",
        )  # fmt: skip
    left.axhline(float(data.flat), ls="--", color=INK, lw=0.9, label=r"$\log 9(n-1)$")
    details = data.law_tau.attrs
    left.plot(
        data.unit, data.law_tau, color=INK, lw=1.1, label=f"with $\\eta$ and $d={details['d']}$"
    )
    left.set(
        xscale="log", xlabel=r"$\eta^2/H$", ylabel=r"depth to collapse $\tau=(\eta^2/H)\,$layers"
    )
    ticks = sorted({round(float(one), 3) for one in (data.step**2 / data.heads).values.ravel()})
    left.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks], fontsize=7)
    left.set_title(rf"$n={details['n']}$, $\beta={float(data.beta[0]):g}$")
    for index, beta in enumerate(data.beta.values):
        one = data.sel(beta=beta)
        right.errorbar(
            data.n, one.depth, yerr=one.depth_error, fmt="os"[index % 2], ms=4,
            color=(PALETTE[0], PALETTE[2])[index % 2], label=rf"chains, $\beta={beta:g}$",
        )  # fmt: skip
    right.plot(data["size"], data.flat_depth, "--", color=INK, lw=0.9, label=r"$\log 9(n-1)$")
    details = data.law_depth.attrs
    right.plot(data["size"], data.law_depth, color=INK, lw=1.1, label=r"with $\eta$ and $d$")
    right.set(xscale="log", xlabel="$n$", ylabel=r"depth to collapse $\tau$")
    right.set_xticks(data.n.values, [str(n) for n in data.n.values])
    right.set_title(rf"$d={details['d']}$, $\eta={details['step']:g}$, $H=1$")
    for axes in (left, right):
        axes.set_ylim(0, None)
        axes.minorticks_off()
        axes.legend(fontsize=7, loc="lower right")
    return figure
