"""Section 3: the continuity equation as the limit of many tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....ledger.figure import FigureJob
from ....meanfield.laws import cosine
from ....meanfield.limit import LimitError, limit_error
from ....models import SA, USA, NoisyUSA
from ....plot.style import FAINT, INK, PALETTE
from .. import PAPER

TEMPERATURE = 0.2
MODELS = {
    "SA": lambda beta: SA(beta),
    "USA": lambda beta: USA(beta),
    "noisy USA": lambda beta: NoisyUSA(beta, TEMPERATURE),
}
CASES = (("SA", "iid"), ("USA", "iid"), ("noisy USA", "iid"), ("SA", "quantiles"))


@PAPER.figure(
    "mean-field-limit",
    title="n tokens against the limit of infinitely many",
    shows="W2 between n tokens on the circle and the solution of the continuity equation, both from the law "
    "1 + cos(theta)/2, falls like n^{-1/2} for independent tokens, with SA, USA and noisy USA alike, and "
    "like 1/n for tokens at equal masses: Dobrushin's estimate carries the error of the start along. Bars "
    "and +- are one standard error by the spread of the draws, which are independent between n; tokens at "
    "equal masses without noise are not random and have none",
    quick={
        "ns": (16, 64, 256),
        "draws": 16,
        "beta": 1.0,
        "end": 0.5,
        "modes": 48,
        "steps": 64,
        "many": 0,
    },
    paper={"ns": (64, 256, 1024, 4096, 16384), "draws": 32, "steps": 256, "many": 1_000_000},
)
def mean_field_limit(job: FigureJob) -> xr.Dataset:
    """Root mean square of W2 over the draws, its fitted rate, and one run of `many` tokens."""
    found = []
    for index, (name, start) in enumerate(CASES):
        found.append(_errors(job, name, start, job.ns, range(job.seed, job.seed + job.draws)))
        job.report((index + 1) / (len(CASES) + 1))
    rates = np.array([one.rate for one in found])
    case = [f"{name}, {start}" for name, start in CASES]
    return xr.Dataset(
        {
            "distance": (("case", "n"), np.stack([one.sizes for one in found])),
            "distance_error": (("case", "n"), np.stack([one.size_errors for one in found])),
            "rate": (("case",), rates[:, 0]),
            "rate_error": (("case",), rates[:, 1]),
            "many": job.many,
            "many_distance": (("case",), _of_many(job)),
        },
        coords={"case": case, "n": list(job.ns)},
    )


def _errors(job: FigureJob, name: str, start: Any, ns: Any, seeds: Any) -> LimitError:
    return limit_error(
        MODELS[name](job.beta),
        cosine(0.5),
        ns,
        job.end,
        seeds,
        start=start,
        modes=job.modes,
        dt=job.end / job.steps,
    )


def _of_many(job: FigureJob) -> list[float]:
    """W2 of one run of `many` tokens without noise; none where it is 0."""
    if not job.many:
        return [np.nan] * len(CASES)
    return [
        np.nan
        if name == "noisy USA"
        else float(_errors(job, name, start, (job.many,), (job.seed,)).sizes[0])
        for name, start in CASES
    ]


@mean_field_limit.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
    for colour, marker, case in zip(PALETTE, "os^D", data.case.values, strict=False):
        one = data.sel(case=case)
        error = float(one.rate_error)
        spread = rf"\pm{error:.2f}" if np.isfinite(error) else ""
        label = rf"{case}: $n^{{{float(one.rate):.2f}{spread}}}$"
        bars = np.nan_to_num(one.distance_error)
        axes.errorbar(data.n, one.distance, bars, fmt=marker, color=colour, ms=4, label=label)
        line = np.exp(np.mean(np.log(one.distance.values) - float(one.rate) * np.log(data.n)))
        axes.plot(data.n, line * data.n ** float(one.rate), color=colour, lw=0.9)
        axes.plot(float(data.many), float(one.many_distance), marker, color=colour, mfc="none")
    axes.set(xscale="log", yscale="log", xlabel="$n$ tokens", ylabel=r"$W_2(\mu_n(t), \mu(t))$")
    ticks = [*data.n.values, *([float(data.many)] if data.many else [])]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(color=FAINT, lw=0.4)
    axes.legend(fontsize=7, labelcolor=INK)
    return figure
