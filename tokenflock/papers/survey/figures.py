"""2512.01868: The mean-field dynamics of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...integrate import Save, solve
from ...ledger.figure import FigureJob
from ...measure import Measure, from_array
from ...models import NoisyUSA
from ...observables import order_parameter
from ...plot.key import mark, stroke
from ...plot.style import INK, PALETTE, REST
from ...reduce import Dense
from ...space import Sphere
from ...starts import equiangular, uniform
from ...terms import Attention
from ...theory import order_parameter as stationary_order
from . import PAPER
from .closed_forms import critical_gamma, long_context_correlation, long_context_limit


@PAPER.figure(
    "long-context",
    title="One attention layer on a long context",
    shows="with beta = gamma log n an attention layer makes equiangular tokens equal below gamma_c = "
    "1/(1-rho) and leaves them as they are above; at gamma_c their correlation is 4 rho/(1+3 rho). "
    "Finite n approach the step slowly near gamma_c, at the rates n^{-2(1-g)} for g = gamma/gamma_c < 1, "
    "1/n at g = 1 and n^{-(g-1)} above. Marks: the attention of the library",
    quick={
        "rho": 0.5,
        "sizes": (1e2, 1e3, 1e4, 1e6, 1e9),
        "engine_sizes": (32, 100, 316),
        "ratios": (0.5, 0.8, 1.0, 1.2, 1.5),
    },
    paper={"engine_sizes": (32, 100, 316, 1000)},
)
def long_context(job: FigureJob) -> xr.Dataset:
    """Correlation of the outputs against gamma/gamma_c, and its distance from the limit against n."""
    rho, critical = job.rho, float(critical_gamma(job.rho))
    ratio, ratios = np.linspace(0.0, 2.0, 401), np.asarray(job.ratios)
    marks, counts = np.linspace(0.2, 1.8, 9), np.geomspace(10, 1e9, 81).round()
    limits = long_context_limit(rho, critical * ratios)
    error = np.abs(
        long_context_correlation(rho, critical * ratios[:, None], counts) - limits[:, None]
    )
    measured = np.zeros((len(job.engine_sizes), marks.size))
    distance = np.zeros((ratios.size, len(job.engine_sizes)))
    for row, n in enumerate(job.engine_sizes):
        tokens = equiangular(Sphere(n), n, rho)
        measured[row] = [measured_correlation(tokens, critical * g) for g in marks]
        seen = np.array([measured_correlation(tokens, critical * g) for g in ratios])
        distance[:, row] = np.abs(seen - limits)
        job.report((row + 1) / len(job.engine_sizes))
    sizes = np.asarray(job.sizes)[:, None]
    return xr.Dataset(
        {
            "correlation": (("n", "ratio"), long_context_correlation(rho, critical * ratio, sizes)),
            "measured": (("engine_n", "mark"), measured),
            "error": (("curve", "count"), error),
            "measured_error": (("curve", "engine_n"), distance),
        },
        coords={
            "n": list(job.sizes),
            "ratio": ratio,
            "engine_n": list(job.engine_sizes),
            "mark": marks,
            "curve": ratios,
            "count": counts,
        },
        attrs={
            "rho": rho,
            "at_critical": float(long_context_limit(rho, critical)),
        },
    )


def measured_correlation(tokens: Measure, gamma: float) -> float:
    """<theta_1, theta_2> of the normalised attention outputs at beta = gamma log n, no residual."""
    attention = Attention(None, gamma * np.log(tokens.n))
    out = np.asarray(attention.field(0.0, tokens.points, tokens, Dense()))[:2]
    first, second = out / np.linalg.norm(out, axis=-1, keepdims=True)
    return float(first @ second)


@long_context.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.0), layout="constrained")
    rho, critical = data.attrs["rho"], data.attrs["at_critical"]
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, data.sizes["n"]))
    for n, colour in zip(data.n.values, colours, strict=True):
        label = rf"$n=10^{{{np.log10(n):.0f}}}$"
        left.plot(data.ratio, data.correlation.sel(n=n), color=colour, lw=1.2, label=label)
    left.plot([0, 1, 1, 2], [1, 1, rho, rho], color=INK, lw=0.9, ls="--", label=r"$n\to\infty$")
    left.plot([1], [critical], "o", color=INK, ms=5, label=r"limit at $\gamma_c$")
    shown = 100 if 100 in data.engine_n.values else int(data.engine_n[0])
    left.plot(data.mark, data.measured.sel(engine_n=shown), "x", color=PALETTE[1], ms=5, mew=1.2)
    left.plot([], [], "x", color=PALETTE[1], ms=5, mew=1.2, label=f"tokens, $n={shown}$")
    left.set(xlabel=r"$\gamma/\gamma_c$", ylabel="correlation of the outputs", xlim=(0, 2))
    left.legend(loc="upper right", fontsize=7)
    for index, ratio in enumerate(data.curve.values):
        right.plot(data["count"], data.error[index], color=PALETTE[index], label=f"${ratio:g}$")
        right.plot(
            data.engine_n, data.measured_error[index], "x", color=PALETTE[index], ms=5, mew=1.2
        )
    right.set(xscale="log", yscale="log", xlabel="$n$", ylabel="distance from the limit")
    right.set_ylim(1e-7, 1)
    handles, _ = right.get_legend_handles_labels()
    right.legend(
        handles=[*handles, mark("x", "tokens", REST, ms=5)], title=r"$\gamma/\gamma_c$",
        loc="lower left", fontsize=7, title_fontsize=8,
    )  # fmt: skip
    return figure


@PAPER.figure(
    "noisy-pitchfork",
    title="Order against noise",
    shows="without attention's selectivity (beta = 0) noisy tokens stay disordered up to kappa = d and order "
    "above, on the root of r = I_{d/2}(kappa r)/I_{d/2-1}(kappa r) (lines); below, what is seen is the "
    "fluctuation (n (1 - kappa/d))^{-1/2} of a finite sample (dashed)",
    quick={
        "n": 200,
        "dimensions": (2, 3),
        "ratios": (0.5, 0.75, 1.25, 1.75, 2.5),
        "relax": 10.0,
        "average": 30.0,
        "dt": 0.02,
    },
    paper={"n": 5000, "relax": 30.0, "average": 30.0},
)
def noisy_pitchfork(job: FigureJob) -> xr.Dataset:
    """Root mean square of |mean x| over time at kappa = ratio * d, and the stationary theory.

    Euler-Maruyama with step dt, the scheme of an equation with noise. kappa close to d is left out:
    relaxation is slow there (rate 1/2 - 1/kappa on the circle).
    """
    shape = (len(job.dimensions), len(job.ratios))
    root, spread = np.zeros(shape), np.zeros(shape)
    for row, d in enumerate(job.dimensions):
        for column, ratio in enumerate(job.ratios):
            order = _order(job, d, ratio * d)
            root[row, column], spread[row, column] = np.sqrt(np.mean(order**2)), order.std()
            job.report((row * shape[1] + column + 1) / (shape[0] * shape[1]))
    dimension = np.asarray(job.dimensions)[:, None]
    fine = np.linspace(0.3, 1.04 * max(job.ratios), 300)
    disordered = np.where(fine < 0.9, 1 / (job.n * np.maximum(1 - fine, 0.1)), np.nan)
    return xr.Dataset(
        {
            "order": (("d", "ratio"), root),
            "spread": (("d", "ratio"), spread),
            "theory": (("d", "fine"), stationary_order(fine * dimension, dimension)),
            "fluctuation": (("fine",), np.sqrt(disordered)),
        },
        coords={"d": list(job.dimensions), "ratio": list(job.ratios), "fine": fine},
    )


def _order(job: FigureJob, d: int, kappa: float) -> np.ndarray:
    """|mean x| at unit intervals once the start is forgotten.

    A uniform start below kappa = d; above, where order would grow slowly out of it, the uniform
    cloud pushed along one axis.
    """
    push = np.eye(d)[0] if kappa > d else np.zeros(d)
    cloud = np.asarray(uniform(Sphere(d), job.n, job.seed).points) + push
    end = job.relax + job.average
    run = solve(
        NoisyUSA(0.0, 1 / kappa),
        from_array(Sphere(d), cloud, normalise=True),
        end,
        dt=job.dt,
        seed=job.seed,
        save=Save(at=np.arange(job.relax, end, 1.0), observe=[order_parameter]),
    )
    return np.asarray(run.array("order_parameter"))[1:]


@noisy_pitchfork.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    for index, d in enumerate(data.d.values):
        one, colour = data.sel(d=d), PALETTE[index]
        axes.plot(d * data.fine, one.theory, color=colour, lw=1.3)
        axes.plot(d * data.fine, data.fluctuation, "--", color=colour, lw=0.9)
        axes.errorbar(
            d * data.ratio,
            one.order,
            yerr=one.spread,
            fmt="os"[index % 2],
            color=colour,
            ms=4,
            capsize=2,
            label=f"$d={d}$",
        )
    axes.set(xlabel=r"$\kappa$", ylabel=r"order parameter $|\bar x|$", ylim=(0, 1))
    handles, _ = axes.get_legend_handles_labels()
    other = [
        stroke("-", r"limit $n\to\infty$", REST),
        stroke("--", f"fluctuation of $n={data.attrs['settings']['n']}$ tokens", REST, lw=0.9),
    ]
    axes.legend(handles=[*handles, *other], loc="lower right", fontsize=7.5)
    return figure
