"""2510.22026v2: Normalization in attention dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from ...integrate import Layers, Save, solve
from ...ledger.figure import FigureJob
from ...models import SA
from ...normalisation import NGPT, MixLN, Normalisation, PeriLN, PostLN, PreLN, SqrtScaling
from ...observables import gram_histogram, order_parameter
from ...plot.key import area, mark, stroke
from ...plot.style import INK, PALETTE, REST
from ...random_weights import Ginibre, RandomWeights
from ...space import Sphere
from ...starts import equiangular, uniform
from ...theory import solve_scheme
from ...theory.normalisation import Scheme
from . import PAPER

LABELS: dict[Scheme, str] = {
    "post": "Post-LN",
    "pre": "Pre-LN",
    "mix": "Mix-LN",
    "peri": "Peri-LN",
    "ngpt": "nGPT",
    "sqrt": "sqrt-scaling",
}
# 1 - rho for large t, up to a factor: the text of `late_law`.
LAWS: dict[Scheme, str] = {
    "post": "$e^{-2t}$",
    "pre": "$t^{-2}$",
    "mix": r"$(1+t-\tau)^{-2}$",
    "peri": "$t^{-2}$",
    "ngpt": r"$e^{-2\alpha t}$",
    "sqrt": r"$e^{-4\sqrt{t+1}}$",
}
COLOURS = dict(zip(LABELS, PALETTE, strict=False))
MARKS = dict(zip(LABELS, "osD^vP", strict=True))


def _schemes(alpha: float, tau: float) -> dict[Scheme, Normalisation]:
    return {
        "post": PostLN(),
        "pre": PreLN(),
        "mix": MixLN(tau),
        "peri": PeriLN(),
        "ngpt": NGPT(alpha),
        "sqrt": SqrtScaling(),
    }


@PAPER.figure(
    "schemes",
    title="How fast tokens agree under six placements of layer norm",
    shows="simulated tokens (marks) from an orthonormal start lie on the scalar system of each scheme "
    "(lines). Late, 1 - rho decays like e^{-2t} (Post-LN), e^{-2 alpha t} (nGPT) and e^{-4 sqrt(t+1)} "
    "(sqrt-scaling), left, and like t^{-2} (Pre-, Mix- and Peri-LN), right: dashed, moved down so that it "
    "can be told from the line",
    quick={
        "schemes": tuple(LABELS),
        "n": 16,
        "beta": 2.0,
        "alpha": 1.0,
        "tau": 5.0,
        "end": 160.0,
        "dots": 14,
        "times": 400,
    },
    paper={},
)
def schemes(job: FigureJob) -> xr.Dataset:
    """1 - rho of simulated tokens and of `theory.solve_scheme`, and the late laws through its end.

    Simulated until the gap reaches 1e-10, below which the tolerance of the flow would be seen.
    """
    fine = np.unique(np.concatenate([[0.0], np.geomspace(0.05, job.end, job.times)]))
    curves, radii, dots, moments = [], [], [], []
    for index, name in enumerate(job.schemes):
        scheme = _schemes(job.alpha, job.tau)[name]
        path = solve_scheme(name, fine, job.n, job.beta, alpha=job.alpha, tau=job.tau)
        curves.append(path.gap)
        radii.append(path.radius)
        last = fine[path.gap > 1e-10][-1]
        times = np.geomspace(0.1, last, job.dots)
        moments.append(times)
        dots.append(_simulated_gaps(job, scheme, times))
        job.report((index + 1) / len(job.schemes))
    return xr.Dataset(
        {
            "gap": (("scheme", "time"), np.stack(curves)),
            "radius": (("scheme", "time"), np.stack(radii)),
            "dot_time": (("scheme", "dot"), np.stack(moments)),
            "dot_gap": (("scheme", "dot"), np.stack(dots)),
        },
        coords={"scheme": list(job.schemes), "time": fine},
        attrs={"alpha": job.alpha, "tau": job.tau},
    )


def _simulated_gaps(job: FigureJob, scheme: Normalisation, times: np.ndarray) -> np.ndarray:
    run = solve(
        SA(job.beta, normalisation=scheme),
        equiangular(Sphere(job.n), job.n),
        float(times[-1]),
        rtol=1e-10,
        atol=1e-13,
        save=Save(at=times[:-1], states=True),
    )
    pair = np.asarray(run.states)[1:, :2]
    return np.sum((pair[:, 0] - pair[:, 1]) ** 2, axis=-1) / 2


def late_law(scheme: Scheme, t: np.ndarray, alpha: float, tau: float) -> np.ndarray:
    """1 - rho for large t up to a factor (claim N5; Mix-LN counts from its switch)."""
    laws: dict[Scheme, Callable[[], np.ndarray]] = {
        "post": lambda: np.exp(-2 * t),
        "ngpt": lambda: np.exp(-2 * alpha * t),
        "sqrt": lambda: np.exp(-4 * np.sqrt(t + 1)),
        "mix": lambda: (1 + t - tau) ** -2.0,
    }
    return laws[scheme]() if scheme in laws else t**-2.0


EXPONENTIAL: tuple[Scheme, ...] = ("post", "ngpt", "sqrt")
ALGEBRAIC: tuple[Scheme, ...] = ("pre", "mix", "peri")


@schemes.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.1), layout="constrained")
    panels: tuple[tuple[Any, tuple[Scheme, ...]], ...] = ((left, EXPONENTIAL), (right, ALGEBRAIC))
    for axes, names in panels:
        for name in names:
            if name in data.scheme.values:
                _draw_scheme(axes, data, name)
        axes.set(xlabel="$t$", ylabel=r"$1-\rho(t)$", yscale="log")
        axes.legend(fontsize=7.5, loc="lower left" if names is ALGEBRAIC else "upper right")
    left.set(title="faster than any power of $t$", xlim=(0, 30), ylim=(1e-10, 2))
    right.set(title="like $t^{-2}$", xscale="log", xlim=(0.5, float(data.time[-1])), ylim=(1e-7, 2))
    key = [
        stroke("-", "scalar system", REST),
        mark("o", "simulated tokens", REST),
        stroke("--", "late law, moved down", REST),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3)
    return figure


def _draw_scheme(axes: Any, data: xr.Dataset, name: Scheme) -> None:
    """A scheme in the panel of its late law, which goes through the last point of its last two thirds."""
    one, colour = data.sel(scheme=name), COLOURS[name]
    shown = one.gap > 1e-12
    axes.plot(one.time[shown], one.gap[shown], color=colour, lw=1.2)
    label = f"{LABELS[name]}: {LAWS[name]}"
    axes.plot(one.dot_time, one.dot_gap, MARKS[name], color=colour, ms=4, mew=0, label=label)
    time, gap = one.time[shown].values, one.gap[shown].values
    curve = late_law(name, time[1:], data.attrs["alpha"], data.attrs["tau"])
    late = gap[1:] < max(gap[-1] ** (1 / 3), 10 * gap[-1])
    law = (curve / curve[-1] * gap[-1])[late]
    axes.plot(time[1:][late], 0.3 * law, "--", color=colour, lw=0.9)


@PAPER.figure(
    "random-network",
    title="A random Transformer under six placements of layer norm",
    shows="with random weights drawn anew in every layer the tokens' average cosine (line, with the band of "
    "90 % of the pairs) grows under all schemes: in the first layers fastest under Peri-LN and nGPT, which "
    "normalise the small attention output; to 1 exponentially fast under Post-LN and nGPT, but only "
    "slowly under sqrt-scaling and where the residual stream grows (Pre-, Peri-LN, Mix-LN past tau)",
    quick={
        "schemes": tuple(LABELS),
        "n": 32,
        "d": 64,
        "layers": 48,
        "step": 1.0,
        "samples": 8,
        "alpha": 1.0,
        "tau": 4.0,
        "bins": 400,
    },
    paper={"n": 256, "d": 512, "samples": 16},
)
def random_network(job: FigureJob) -> xr.Dataset:
    """Mean, 5 % and 95 % quantile of <x_i, x_j> over pairs and samples, layer by layer.

    Q, K, V have entries N(0, 1/d) and beta = sqrt(d), as a Transformer has at initialisation.
    """
    law = Ginibre(job.d**-0.5)
    weights = RandomWeights(
        d=job.d, seed=job.seed, Q=law, K=law, V=law, period=job.step, per="sample"
    )
    tokens = uniform(Sphere(job.d), job.n, job.seed + 1, samples=job.samples)
    rows = []
    for index, name in enumerate(job.schemes):
        scheme = _schemes(job.alpha, job.tau)[name]
        run = solve(
            SA(job.d**0.5, weights, normalisation=scheme),
            tokens,
            job.layers * job.step,
            method=Layers(job.step),
            save=Save(every=job.step, observe=[order_parameter, gram_histogram(job.bins)]),
        )
        pooled = np.asarray(run.array("gram_histogram")).mean(axis=0)
        squared = np.asarray(run.array("order_parameter")) ** 2
        mean = (job.n * squared - 1).mean(axis=0) / (job.n - 1)
        rows.append([mean, quantile(pooled, 0.05), quantile(pooled, 0.95)])
        job.report((index + 1) / len(job.schemes))
    return xr.Dataset(
        {"cosine": (("scheme", "statistic", "layer"), np.array(rows))},
        coords={
            "scheme": list(job.schemes),
            "statistic": ["mean", "low", "high"],
            "layer": np.arange(job.layers + 1),
        },
    )


def quantile(histogram: np.ndarray, share: float) -> np.ndarray:
    """Quantile of a law given by fractions in equal bins of [-1, 1], for each row."""
    edges = np.linspace(-1.0, 1.0, histogram.shape[-1] + 1)
    below = np.concatenate([np.zeros((len(histogram), 1)), np.cumsum(histogram, axis=-1)], axis=-1)
    return np.array([np.interp(share, row / row[-1], edges) for row in below])


@random_network.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    rows = -(-data.sizes["scheme"] // 3)
    figure, grid = plt.subplots(
        rows,
        3,
        figsize=(7.0, 1.9 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, name in zip(grid.flat, data.scheme.values, strict=False):
        one, colour = data.cosine.sel(scheme=name), COLOURS[name]
        for other in data.cosine.sel(statistic="mean").values:
            axes.plot(data.layer, other, color=INK, lw=0.4, alpha=0.25)
        axes.fill_between(
            data.layer,
            one.sel(statistic="low"),
            one.sel(statistic="high"),
            color=colour,
            alpha=0.25,
            lw=0,
        )
        axes.plot(data.layer, one.sel(statistic="mean"), color=colour, lw=1.8)
        axes.set_title(LABELS[name])
    for axes in grid[-1]:
        axes.set_xlabel("layer")
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\langle\theta_i,\theta_j\rangle$")
    grid[0, 0].set(xlim=(0, int(data.layer[-1])), ylim=(-0.3, 1.02))
    key = [
        stroke("-", "mean over pairs", REST, lw=1.8),
        area("90 % of the pairs", REST),
        stroke("-", "means of all six", INK, lw=0.6, alpha=0.35),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3)
    return figure
