"""2504.14697: Quantitative clustering in mean-field transformer models."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...density import Density, Discretisation
from ...integrate import Save, solve
from ...ledger.figure import FigureJob
from ...meanfield.laws import von_mises
from ...meanfield.quantiles import Quantiles
from ...meanfield.zonal import Zonal
from ...models import USA
from ...observables import order_parameter
from ...plot.key import stroke
from ...plot.style import INK, PALETTE, REST
from . import PAPER
from .claims import opposite_humps, sharp_rate, tail_rate

# The rate that the theorem promises.
PROMISED = 0.01


@PAPER.figure(
    "exponential-rate",
    title="One point, exponentially fast, where beta is small; several where it is large",
    shows="W2(mu_t, delta) of the mean-field equation of USA on the circle, S^2 and S^7 from von Mises laws: "
    "far below the promised e^{-t/100} (dashed), and in the end parallel to the sharp rate "
    "min(e^beta, (d-1) e^{-beta}/2) (dotted). Right: one start with a nonzero mean, two opposite humps with "
    "masses 0.7 and 0.3, becomes one cluster at small beta and stays two at large beta; every line is a "
    "quantile, with 1/40 of the mass between two of them",
    quick={
        "beta": 0.2,
        "dimensions": (2, 3, 8),
        "steepness": (1.0, 1.0, 4.0),
        "ends": (5.0, 4.0, 3.0),
        "n": 600,
        "degree": 300,
        "step": 0.125,
        "betas": (0.1, 4.0),
        "mass": 0.7,
        "hump": 4.0,
        "end": 10.0,
        "lines": 160,
    },
    paper={"n": 2000, "degree": 500, "lines": 800},
)
def exponential_rate(job: FigureJob) -> xr.Dataset:
    """W2 = sqrt(2 - 2 |mean|), the chord's, until unresolved, with its last rate; and quantiles over time."""
    pieces = []
    for row in range(len(job.dimensions)):
        pieces.append(_one_decay(job, row))
        job.report((row + 1) / (len(job.dimensions) + len(job.betas)))
    decays: Any = xr.concat(pieces, xr.IndexVariable("dimension", list(job.dimensions)))
    times = np.geomspace(1e-3, job.end, 121)
    fans = []
    for row, beta in enumerate(job.betas):
        fans.append(_quantiles(job, beta, times))
        job.report((row + 1 + len(job.dimensions)) / (len(job.dimensions) + len(job.betas)))
    every = max(1, job.lines // 40)
    angles = np.stack(fans)
    return decays.assign(
        angle=(("beta", "later", "quantile"), angles[..., every // 2 :: every]),
        order=(("beta", "later"), np.abs(np.mean(np.exp(1j * angles), axis=-1))),
        mass=job.mass,
        small_beta=job.beta,
    ).assign_coords(beta=list(job.betas), later=times)


def _one_decay(job: FigureJob, row: int) -> xr.Dataset:
    """W2 at multiples of the step while it is resolved (else nan), and its rate at the last three of them.

    The rate is the sharp one up to the relative order of W2^2 itself: the share of the mass that has not
    arrived yet, and the cluster's width, enter their own speed.
    """
    d, end = job.dimensions[row], job.ends[row]
    on: Discretisation = Quantiles(job.n) if d == 2 else Zonal(d, job.degree)
    times = np.arange(0.0, max(job.ends) + job.step / 2, job.step)
    start = Density.from_law(on, von_mises(job.steepness[row]))
    save = Save(at=times[times <= end], observe=[order_parameter])
    run = solve(USA(job.beta), start, end, rtol=1e-8, atol=1e-11, save=save, throw=False)
    whole = np.asarray(run.time) <= run.reached * (1 + 1e-12)
    on_grid = whole & (np.abs(np.asarray(run.time) / job.step % 1.0 - 0.5) > 0.5 - 1e-6)
    squares = 2 * (1 - np.asarray(run.array("order_parameter"))[on_grid])
    # The next exponential of W2^2: the cluster's own square, or its fourth power where that comes first.
    fast = 2 * np.exp(job.beta)
    second = 2 * fast if sharp_rate(d, job.beta) == fast / 2 else fast
    distance = np.full(times.size, np.nan)
    distance[: squares.size] = np.sqrt(squares)
    return xr.Dataset(
        {
            "distance": (("time",), distance),
            "rate": tail_rate(squares[-3:], job.step, second),
            "sharp": sharp_rate(d, job.beta),
        },
        coords={"time": times},
    )


def _quantiles(job: FigureJob, beta: float, times: np.ndarray) -> np.ndarray:
    """Lifted angles (time, quantile) from two humps at 0 and pi."""
    start = Density.from_law(Quantiles(job.lines), opposite_humps(job.mass, job.hump, 0.0))
    run = solve(USA(beta), start, job.end, rtol=1e-6, atol=1e-8, save=Save(at=times, states=True))
    return np.asarray(run.states)[-times.size :]


@exponential_rate.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, *fans) = plt.subplots(
        1, 3, figsize=(7.4, 3.2), layout="constrained", width_ratios=(1.5, 1, 1)
    )
    _draw_decay(left, data)
    for axes, beta in zip(fans, data.beta.values, strict=True):
        one = data.sel(beta=beta)
        colour = np.where(np.cos(one.angle[0]) > 0, PALETTE[0], PALETTE[1])
        for line, own in zip(one.angle.T, colour, strict=True):
            axes.plot(data.later, line / np.pi, color=own, lw=0.6)
        axes.set_title(rf"$\beta={beta:g}$: $|$mean$|\to{float(one.order[-1]):.2f}$")
        axes.set(xscale="log", xlabel="$t$", ylim=(-1.05, 1.05))
        axes.set_yticks([-1, 0, 1], [r"$-\pi$", "0", r"$\pi$"])
    fans[0].set_ylabel("angle of a quantile")
    fans[1].tick_params(labelleft=False)
    key = [
        stroke(":", r"sharp rate $e^{-ct}$, $c$ beside $d$", REST),
        stroke("--", "rate of the theorem", INK, lw=0.9),
        stroke("-", r"quantile with $\cos\theta(0)>0$", PALETTE[0], lw=0.9),
        stroke("-", r"with $\cos\theta(0)<0$", PALETTE[1], lw=0.9),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=4, fontsize=7.5)
    return figure


def _draw_decay(axes: Any, data: xr.Dataset) -> None:
    time = data.time.values
    for index, d in enumerate(data.dimension.values):
        one, colour = data.sel(dimension=d), PALETTE[index]
        label = rf"$d={d}$: $e^{{-{float(one.sharp):.3f}\,t}}$"
        axes.plot(time, one.distance, color=colour, label=label)
        last = int(np.flatnonzero(np.isfinite(one.distance.values))[-1])
        tail = time[time >= time[last] / 2]
        line = float(one.distance[last]) * np.exp(-float(one.sharp) * (tail - time[last]))
        axes.plot(tail, line, ":", color=colour, lw=1.1)
    axes.plot(time, float(data.distance[0, 0]) * np.exp(-PROMISED * time), "--", color=INK, lw=0.9)
    axes.annotate("$e^{-t/100}$", (0.98, 0.9), xycoords="axes fraction", ha="right", color=INK)
    axes.set(yscale="log", xlabel="$t$", ylabel=r"$W_2(\mu_t, \delta)$", xlim=(0, time[-1]))
    axes.set_ylim(0.05, 1.6)
    axes.set_title(rf"$\beta={float(data.small_beta):g}$")
    axes.legend(fontsize=7, loc="lower left")
