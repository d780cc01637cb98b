"""2604.01978: Homogenized Transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from .... import theory
from ....integrate import solve
from ....ledger.figure import FigureJob
from ....plot.key import area, mark, stroke
from ....plot.style import FAINT, INK, PALETTE, REST
from ....random_depth import (
    HeadLaw,
    ballistic,
    diffusive_time,
    measured_slow_coefficient,
    modified,
    overlaps,
    random_chains,
    simplex_moments,
    slow_paths,
)
from ....random_depth.laws import AmongTokens, Normal, ProductScores, Values
from ....space import Sphere
from ....starts import equiangular, uniform
from .. import PAPER, flat_pair

PRINTED_K = 1.0


@PAPER.figure(
    "overlaps",
    title="Random layers make tokens collapse",
    shows="the mean overlap of pairs in chains of random layers (thin: single chains, band: 10 to 90 %, "
    "dots: their mean) against the simplex equation gamma' = drift(gamma; f, g) with f and g by Monte Carlo "
    "(line). At beta = 0 it is a logistic curve (dashed); large beta slows the collapse. At beta = 30 chains "
    "lie below the line (0.51 against 0.58 at tau = 2.4, 4 standard errors): overlaps spread, and the bound "
    "on the equation's error, e^{C tau} (tau log(n)/d)^{1/2}, has C = O(1 + d sigma_A^4 beta^2 n)",
    quick={
        "d": 64,
        "n": 8,
        "gamma": 0.05,
        "betas": (0.0, 6.0, 30.0),
        "eta": 0.2,
        "chains": 48,
        "tau": 6.0,
        "draws": 2000,
    },
    paper={"d": 256, "eta": 0.1, "chains": 200, "draws": 20_000},
)
def overlap_paths(job: FigureJob) -> xr.Dataset:
    """Overlaps averaged over pairs, (beta, chain, tau), and the solution of the simplex equation."""
    x0 = equiangular(Sphere(job.d), job.n, job.gamma)
    every = max(1, round(job.tau / job.eta**2 / 30))
    grid = np.linspace(min(0.0, job.gamma), 1.0, 9)
    paths, curves, tau = [], [], np.zeros(0)
    for index, beta in enumerate(job.betas):
        values = Values(job.d**-0.5, entries=Normal())
        law = HeadLaw(values, ProductScores(job.d**-0.5), AmongTokens(beta))
        run = random_chains(
            law,
            x0,
            30 * every,
            job.eta,
            chains=job.chains,
            seed=job.seed,
            every=every,
            observe=[overlaps],
        )
        tau = diffusive_time(run)
        moments = simplex_moments(list(grid), job.n, job.d, beta, draws=job.draws, seed=job.seed)
        paths.append(run.array("overlaps").mean(axis=-1))
        curves.append(theory.simplex_overlap(tau, job.gamma, moments.at(), job.d))
        job.report((index + 1) / len(job.betas))
    mean = job.gamma + (1 - job.gamma) / job.n
    logistic = (theory.logistic_overlap(tau, mean) - 1 / job.n) / (1 - 1 / job.n)
    return xr.Dataset(
        {
            "overlap": (("beta", "chain", "tau"), np.stack(paths)),
            "predicted": (("beta", "tau"), np.stack(curves)),
            "logistic": (("tau",), logistic),
        },
        coords={"beta": list(job.betas), "tau": tau},
    )


@overlap_paths.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, axes = plt.subplots(
        1, data.beta.size, figsize=(7.4, 2.9), layout="constrained", sharey=True
    )
    for index, (panel, beta) in enumerate(zip(axes, data.beta.values, strict=True)):
        one, colour = data.sel(beta=beta), PALETTE[index]
        panel.plot(data.tau, one.overlap[:8].T, color=FAINT, lw=0.5)
        low, high = np.quantile(one.overlap, [0.1, 0.9], axis=0)
        panel.fill_between(data.tau, low, high, color=colour, alpha=0.2, lw=0)
        panel.plot(data.tau, one.predicted, color=colour)
        panel.plot(data.tau[::2], one.overlap.mean("chain")[::2], ".", color=colour, ms=5)
        if beta == 0:
            panel.plot(data.tau, data.logistic, "--", color=INK, lw=0.9)
        panel.set_title(rf"$\beta={beta:g}$")
        panel.set(
            xlabel=r"$\tau=(\eta^2/H)\,$layer", ylim=(-0.1, 1.03), xlim=(0, float(data.tau[-1]))
        )
    axes[0].set_ylabel("mean overlap of pairs")
    key = [
        stroke("-", "simplex equation", REST, lw=1.5),
        mark("o", "mean of the chains", REST, ms=2.5),
        area("80 % of the chains", REST),
        stroke("-", "single chains", FAINT, lw=0.6),
        stroke("--", r"logistic curve ($\beta=0$)", lw=0.9),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=5, fontsize=7.5)
    return figure


@PAPER.figure(
    "slow-limit",
    title="The slow limit at zero temperature: k is two",
    shows="left: the drift coefficient k_d of R(t d) by Monte Carlo (dots, 95 % intervals) and by quadrature "
    "(lines), for A = W W'^T and one Gaussian matrix; they tend to 2 and 3/2, not to the printed 1 (dashed; "
    "seen in a transcription of the paper). Right: u after the slow time t from u = 0: two probes in "
    "random layers at d = 24 (bars) against the equation with k = 2 and with k = 1 (lines)",
    quick={
        "dimensions": (6, 10, 20, 40, 80),
        "overlap": 0.5,
        "draws": 40_000,
        "d": 24,
        "t": 2.0,
        "eta": 0.35,
        "chains": 1500,
        "paths": 20_000,
    },
    paper={"draws": 1_000_000, "eta": 0.1, "chains": 10_000, "paths": 100_000},
)
def slow_limit(job: FigureJob) -> xr.Dataset:
    """k_d with errors for both laws of A, and z = artanh u of chains and of paths with k = 1, 2."""
    cells = [[(d, job.overlap, factors) for d in job.dimensions] for factors in (2, 1)]
    estimates = [
        [measured_slow_coefficient(d, R, job.draws, job.seed, a) for d, R, a in row]
        for row in cells
    ]
    exact = [[float(theory.slow_coefficient(R, d, a)) for d, R, a in row] for row in cells]
    job.report(0.4)
    layers = round(job.t * job.d / job.eta**2)
    run = random_chains(
        HeadLaw.zero_temperature(job.d),
        equiangular(Sphere(job.d), 2, 0.0),
        layers,
        job.eta,
        chains=job.chains,
        seed=job.seed,
        observe=[overlaps],
    )
    job.report(0.8)
    paths = [slow_paths([job.t], k, 0.0, job.paths, seed=job.seed)[:, 0] for k in (1.0, 2.0)]
    return xr.Dataset(
        {
            "k": (("factors", "dimension"), [[e.value for e in row] for row in estimates]),
            "k_error": (("factors", "dimension"), [[e.error for e in row] for row in estimates]),
            "k_exact": (("factors", "dimension"), exact),
            "chain": (
                ("chains",),
                np.arctanh(np.clip(run.array("overlaps")[:, -1, 0], -1 + 1e-15, 1 - 1e-15)),
            ),
            "path": (("coefficient", "paths"), np.stack(paths)),
        },
        coords={"factors": [2, 1], "dimension": list(job.dimensions), "coefficient": [1.0, 2.0]},
    )


@slow_limit.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
    names = {2: "$A=WW'^T$", 1: "one matrix"}
    for index, factors in enumerate(data.factors.values):
        one = data.sel(factors=factors)
        left.plot(data.dimension, one.k_exact, color=PALETTE[index], lw=0.9)
        left.errorbar(
            data.dimension,
            one.k,
            yerr=1.96 * one.k_error,
            fmt="o",
            ms=3.5,
            color=PALETTE[index],
            label=names[factors],
        )
    for level in (2.0, 1.5):
        left.axhline(level, color=FAINT, lw=0.7, zorder=0)
    left.axhline(PRINTED_K, color=INK, ls="--", lw=0.9, label="as printed")
    left.set(xscale="log", xlabel="$d$", ylabel="$k_d$", ylim=(0.85, 2.15))
    left.set_xticks(data.dimension.values, [str(d) for d in data.dimension.values])
    left.minorticks_off()
    handles, _ = left.get_legend_handles_labels()
    other = [
        stroke("-", "quadrature", REST, lw=0.9),
        stroke("-", r"limit $d\to\infty$", FAINT, lw=0.8),
    ]
    style = {"fontsize": 7, "loc": "lower right", "bbox_to_anchor": (1.0, 0.2)}
    left.legend(handles=[*handles, *other], ncols=2, **style)
    edges = np.linspace(-1, 1, 25)
    right.hist(np.tanh(data.chain), edges, density=True, color=FAINT, label="random layers")
    middle = (edges[1:] + edges[:-1]) / 2
    for index, k in ((0, 2.0), (1, 1.0)):
        density = np.histogram(np.tanh(data.path.sel(coefficient=k)), edges, density=True)[0]
        right.plot(middle, density, color=PALETTE[index], label=f"limit with $k={k:g}$")
    right.set(xlabel="$u=R$", ylabel="density", xlim=(-1, 1))
    right.legend(fontsize=7, loc="upper center")
    return figure


@PAPER.figure(
    "weak-error",
    title="How fast layers approach their limits",
    shows="left: one head, the same in every layer: the distance to X' = F falls like eta, to the modified "
    "equation like eta^2, and like eta again between two layers. Right: Gaussian heads, two tokens at "
    "beta = 0: |E R_12 - E R_12 of the diffusion| at tau = 1.28 falls like eta^2 (exact, by quadrature)",
    quick={"n": 4, "d": 3, "beta": 1.5, "steps": (0.2, 0.1, 0.05, 0.025), "dimensions": (4, 8, 16)},
    paper={"n": 16, "steps": (0.2, 0.1, 0.05, 0.025, 0.0125)},
)
def weak_error(job: FigureJob) -> xr.Dataset:
    """Errors of the layers (equation, step) and of the expectations (dimension, eta)."""
    random = np.random.default_rng(job.seed)
    V = np.eye(job.d) + 0.3 * random.normal(size=(job.d, job.d))
    law = HeadLaw.deterministic(job.beta, V, random.normal(size=(job.d, job.d)) / np.sqrt(job.d))
    x0 = uniform(Sphere(job.d), job.n, job.seed)

    def flow(model: Any, t: float) -> np.ndarray:
        return np.asarray(solve(model, x0, t, rtol=1e-9, atol=1e-11).states[-1])

    errors = []
    for index, eta in enumerate(job.steps):
        run = random_chains(law, x0, round(1 / eta), eta, chains=1)
        layers, better = run.array("final_points")[0], modified(law, job.d, eta)
        exact = (flow(ballistic(law, job.d), 1.0), flow(better, 1.0), flow(better, 1.0 + eta / 2))
        errors.append([np.max(np.abs(layers - one)) for one in exact])
        job.report((index + 1) / (len(job.steps) + 1))
    etas = np.array([0.8, 0.4, 0.2, 0.1])
    weak = []
    for d in job.dimensions:
        limit = flat_pair.diffusion_expectation(lambda r: r, 1.28, d)(0.2)
        chain = [
            flat_pair.chain_expectation(lambda r: r, round(1.28 / eta**2), eta, d)(0.2)
            for eta in etas
        ]
        weak.append(np.abs(np.array(chain) - limit))
    return xr.Dataset(
        {
            "error": (("equation", "step"), np.array(errors).T),
            "weak": (("dimension", "eta"), np.array(weak)),
        },
        coords={
            "equation": ["ballistic", "modified", "between layers"],
            "step": list(job.steps),
            "dimension": list(job.dimensions),
            "eta": etas,
        },
    )


@weak_error.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 2.9), layout="constrained")
    names = {
        "ballistic": "$X'=F$",
        "modified": "modified",
        "between layers": "modified, between layers",
    }
    for index, equation in enumerate(data.equation.values):
        left.plot(
            data.step,
            data.error.sel(equation=equation),
            "o-",
            ms=3.5,
            color=PALETTE[index],
            label=names[equation],
        )
    for index, d in enumerate(data.dimension.values):
        right.plot(
            data.eta,
            data.weak.sel(dimension=d),
            "o-",
            ms=3.5,
            color=PALETTE[index],
            label=f"$d={d}$",
        )
    for axes, x, values, orders in (
        (left, data.step, data.error, (1, 2)),
        (right, data.eta, data.weak, (2,)),
    ):
        for order in orders:
            row = 0 if order == orders[0] else 1
            line = float(values[row, -1]) * (x / float(x[-1])) ** order / 1.6
            axes.plot(x, line, "--", color=INK, lw=0.7)
            axes.annotate(
                rf"$\eta^{{{order}}}$", (float(x[1]), float(line[1]) / 1.5), fontsize=8, color=INK
            )
        axes.set(xscale="log", yscale="log", xlabel=r"$\eta$")
        axes.set_xticks(x.values, [f"{value:g}" for value in x.values])
        axes.minorticks_off()
        axes.legend(fontsize=7)
    left.set(ylabel="largest error of a token", title="one head; dashed: powers of $\\eta$")
    right.set(ylabel=r"error of $E\,R_{12}$", title=r"random heads; dashed: $\propto\eta^2$")
    return figure
