"""Many dimensions: coordinates gather where V is positive and fly apart where it is negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....ledger.figure import FigureJob
from ....plot.style import INK, PALETTE
from .. import PAPER
from .flow import eigen_run, states_of


def sparse_symmetric(d: int, density: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a sparse symmetric V with every |eigenvalue| above 1.

    Entries are uniform in [0, 1] with the given density; an eigenvalue in [-1, 1] is replaced by a
    uniform number of [1, 2] with its sign.
    """
    rng = np.random.default_rng(seed)
    entries = rng.uniform(0.0, 1.0, (d, d)) * (rng.uniform(size=(d, d)) < density)
    values, vectors = np.linalg.eigh((entries + entries.T) / 2)
    replaced = np.sign(values) * rng.uniform(1.0, 2.0, d)
    return np.where(np.abs(values) <= 1.0, replaced, values), vectors


@PAPER.figure(
    "high-dimensional",
    title="Every coordinate gathers or flies apart, by the sign of its eigenvalue",
    shows="along an eigenvector with positive eigenvalue the tokens gather at one or two values, along one "
    "with negative eigenvalue they fly apart: the spread of z changes by e^{-lambda_k t}",
    # Leaders are told apart by e^{-lambda_1 t}, lost to rounding when lambda_1 t = 36: the published
    # end t = 15 lies far beyond, so the run stops at lambda_1 t = `end`.
    quick={"n": 48, "d": 48, "density": 0.1, "half_width": 0.5, "end": 28.0, "times": 113},
    paper={"n": 128, "d": 128},
)
def high_dimensional(job: FigureJob) -> xr.Dataset:
    """Mean and standard deviation of each coordinate of z, within the tokens that share a leader.

    Along the eigenvectors of V, where z_k = e^{-lambda_k t} x_k.
    """
    values, vectors = sparse_symmetric(job.d, job.density, job.seed)
    times = np.linspace(0.0, job.end / float(np.max(values)), job.times)
    run = eigen_run(values, vectors, job.n, job.seed, job.half_width, times)
    z = states_of(run) * np.exp(-times[:, None, None] * values)
    job.report(1.0)
    high = z[-1, :, np.argmax(values)] > 0
    means, spreads = zip(*(_statistics(z[:, side]) for side in (high, ~high)), strict=True)
    return xr.Dataset(
        {
            "mean": (("side", "time", "direction"), np.stack(means)),
            "spread": (("side", "time", "direction"), np.stack(spreads)),
            "tokens": ("side", [int(high.sum()), int((~high).sum())]),
        },
        coords={"time": times, "eigenvalue": ("direction", values)},
    )


def _statistics(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over tokens; NaN where a side has no token."""
    if z.shape[1] == 0:
        empty = np.full((z.shape[0], z.shape[2]), np.nan)
        return empty, empty
    return z.mean(axis=1), z.std(axis=1)


@high_dimensional.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 3, figsize=(7.4, 2.8), layout="constrained")
    side = int(np.argmax(data.tokens.values))
    mean, spread = data["mean"][side].values, data.spread[side].values
    values, times = data.eigenvalue.values, data.time.values
    _gathering(panels[0], times, values, mean, spread)
    _flying(panels[1], times, values, spread)
    _exponents(panels[2], times, values, spread)
    return figure


def _chosen(values: np.ndarray, sign: int, count: int = 6) -> np.ndarray:
    """A few directions of one sign, spread over their eigenvalues."""
    found = np.flatnonzero(np.sign(values) == sign)
    order = found[np.argsort(values[found])]
    return order[np.unique(np.linspace(0, len(order) - 1, count).astype(int))]


def _gathering(axes: Any, times: Any, values: Any, mean: np.ndarray, spread: np.ndarray) -> None:
    for k, colour in zip(_chosen(values, 1), PALETTE, strict=False):
        axes.plot(times, mean[:, k], color=colour, lw=1.0, label=rf"${values[k]:.2f}$")
        low, high = mean[:, k] - spread[:, k], mean[:, k] + spread[:, k]
        axes.fill_between(times, low, high, color=colour, alpha=0.18, lw=0)
    axes.set(xlabel="$t$", ylabel=r"$\varphi_k(z)$: mean $\pm$ sd", title=r"six $\lambda_k>0$")
    style = {"fontsize": 6.5, "title_fontsize": 7, "handlelength": 1.0, "columnspacing": 0.8}
    axes.legend(
        title=r"$\lambda_k$", loc="upper right", ncols=2, bbox_to_anchor=(1.0, 0.9), **style
    )


def _flying(axes: Any, times: Any, values: Any, spread: np.ndarray) -> None:
    for k, colour in zip(_chosen(values, -1), PALETTE, strict=False):
        axes.semilogy(times, spread[:, k], color=colour, label=rf"${values[k]:.2f}$")
    axes.set(xlabel="$t$", ylabel=r"sd of $\varphi_k(z)$", title=r"six $\lambda_k<0$")
    axes.legend(title=r"$\lambda_k$", loc="upper left", fontsize=7, title_fontsize=7)


def _exponents(axes: Any, times: Any, values: Any, spread: np.ndarray) -> None:
    """The measured rate of each spread over the second half of the run, against its eigenvalue."""
    half = len(times) // 2
    rate = np.log(spread[-1] / spread[half]) / (times[-1] - times[half])
    ends = np.array([values.min(), values.max()])
    axes.plot(ends, -ends, color=INK, lw=0.9, ls=":", label=r"$-\lambda_k$", zorder=1)
    for sign, colour in ((1, PALETTE[0]), (-1, PALETTE[1])):
        here = np.sign(values) == sign
        word = "gathers" if sign > 0 else "flies apart"
        axes.scatter(values[here], rate[here], s=9, color=colour, label=word, zorder=2)
    axes.axhline(0, color=INK, lw=0.5)
    axes.set(xlabel=r"$\lambda_k$", ylabel="growth rate of the sd")
    axes.legend(loc="upper right", fontsize=8)
