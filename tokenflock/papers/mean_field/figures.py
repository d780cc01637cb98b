"""2410.23228: Emergence of meta-stable clustering in mean-field transformer models."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...density import Density
from ...dynamics import Dynamics, Particles
from ...integrate import Save, solve
from ...kinds import Softmax, Unnormalised
from ...ledger.figure import FigureJob
from ...meanfield.cdf import middle_masses
from ...meanfield.circle import Fourier
from ...meanfield.laws import ripples
from ...meanfield.quantiles import Quantiles
from ...measure import from_angles
from ...models import SA, USA
from ...observables import fourier_moments
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from ...reduce import Dense, Tiled
from ...space import Sphere
from ...starts import uniform
from ...theory import dominant_mode, growth_rate, transition_beta
from ...trajectory import Trajectory
from . import PAPER

MODELS = {"USA": USA, "SA": SA}
KINDS = {"USA": Unnormalised(), "SA": Softmax()}


@PAPER.figure(
    "mode-growth",
    title="Which Fourier mode of the uniform state grows fastest",
    shows="growth rates measured from the velocity field (crosses) lie on k^2 I_k(beta)/beta (USA) and on "
    "that over I_0(beta) (SA); every mode grows, and the fastest, k* (ringed), is the same for both "
    "models and rises with beta like sqrt(2 beta)",
    quick={"betas": (1.0, 2.0, 5.0, 7.0, 9.0), "modes": 8, "n": 1000, "largest": 25.0},
    paper={"n": 4000},
)
def mode_growth(job: FigureJob) -> xr.Dataset:
    """lambda_k in theory and from n tokens near the uniform grid, and k* as a function of beta."""
    modes, shape = np.arange(1, job.modes + 1), (len(MODELS), len(job.betas), job.modes)
    theory, measured = np.zeros(shape), np.zeros(shape)
    for row, (name, model) in enumerate(MODELS.items()):
        for column, beta in enumerate(job.betas):
            theory[row, column] = growth_rate(modes, 2, beta, KINDS[name])
            measured[row, column] = [measured_rate(model(beta), int(k), job.n) for k in modes]
            job.report((row * len(job.betas) + column + 1) / (shape[0] * shape[1]))
    fine = np.linspace(0.05, job.largest, 500)
    switches = np.asarray(transition_beta(np.arange(1, 12)))
    return xr.Dataset(
        {
            "theory": (("model", "beta", "mode"), theory),
            "measured": (("model", "beta", "mode"), measured),
            "dominant": (("fine_beta",), np.asarray(dominant_mode(2, fine))),
            "switch": (("step",), switches[switches < job.largest]),
        },
        coords={
            "model": list(MODELS),
            "beta": list(job.betas),
            "mode": modes,
            "fine_beta": fine,
        },
    )


def measured_rate(model: Dynamics, k: int, n: int, size: float = 1e-4) -> float:
    """(d/dt muhat_k)/muhat_k from the field at theta = g - size sin(k g)/k, g a uniform grid."""
    grid = 2 * np.pi * np.arange(n) / n
    theta = grid - size * np.sin(k * grid) / k
    tokens = from_angles(theta)
    velocity = np.asarray(model.velocity(0.0, Particles(tokens.points), tokens, Dense()).points)
    turning = velocity[:, 1] * np.cos(theta) - velocity[:, 0] * np.sin(theta)
    wave = np.exp(-1j * k * theta)
    return float((np.mean(-1j * k * turning * wave) / np.mean(wave)).real)


@mode_growth.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 3, figsize=(7.2, 3.1), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, data.beta.size))
    for axes, name in zip(panels, data.model.values, strict=False):
        for beta, colour in zip(data.beta.values, colours, strict=True):
            one = data.sel(model=name, beta=beta)
            axes.plot(one.mode, one.theory, ".-", color=colour, lw=0.8, ms=5, label=rf"${beta:g}$")
            axes.plot(one.mode, one.measured, "x", color=colour, ms=6, mew=1.0)
            best = int(one.theory.values.argmax())
            axes.plot(
                one.mode[best], one.theory[best], "o", ms=11, mfc="none", mec=INK, mew=0.9, zorder=4
            )
        axes.set(title=str(name), xlabel="mode $k$", xticks=data.mode.values)
    panels[0].set(ylabel=r"growth rate $\lambda_k$", yscale="log", ylim=(2e-4, None))
    panels[0].legend(title=r"$\beta$", loc="lower left", fontsize=7, title_fontsize=8, ncols=2)
    panels[1].set(ylabel=r"growth rate $\lambda_k$", ylim=(0, None))
    _draw_dominant(panels[2], data)
    key = [
        mark("o", "formula", REST, ms=3),
        mark("x", "measured", REST, ms=6),
        mark("o", "fastest mode", INK, ms=9, mfc="none"),
        stroke("-", r"$\beta$ at which it changes", FAINT, lw=0.8),
        stroke("--", r"$\sqrt{2\beta}$", PALETTE[1], lw=1.0),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _draw_dominant(axes: Any, data: xr.Dataset) -> None:
    axes.plot(data.fine_beta, data.dominant, color=INK, lw=1.4, label="$k^*$")
    axes.plot(data.fine_beta, np.sqrt(2 * data.fine_beta), "--", color=PALETTE[1], lw=1.0)
    for beta in data.switch.values:
        axes.axvline(beta, color=FAINT, lw=0.6, zorder=0)
    axes.set(title="fastest mode", xlabel=r"$\beta$", ylabel="$k^*$", xlim=(0, None))


@PAPER.figure(
    "cluster-states",
    title="As many clusters as the fastest mode has waves",
    shows="tokens drawn uniformly gather into three equal, equally spaced clusters at beta = 5 and four at "
    "beta = 7, near the places predicted from the phase of the fastest mode at t = 0, after |muhat_k| "
    "has grown like e^{lambda_k t}. Finite samples may choose otherwise: mode 3 wins in about 2/3 of "
    "draws at beta = 5, mode 4 in about 40 % (n = 2000) to 60 % (n = 20000) at beta = 7",
    quick={
        "n": 2000,
        "betas": (5.0, 7.0),
        "moments": (0.3, 0.045),
        "ends": (0.4, 0.07),
        "draws": (0, 6),
        "times": 61,
        "bins": 100,
        "modes": 5,
    },
    paper={"n": 20000, "ends": (0.6, 0.1), "draws": (3, 2)},
)
def cluster_states(job: FigureJob) -> xr.Dataset:
    """Histograms of the angles at one moment and |muhat_k|(t), USA on the circle.

    `draws` are added to the seed: the defaults are draws in which the fastest mode wins, the most
    frequent case at beta = 5 and at n = 20000. Another seed may show another number of clusters.
    """
    pieces = []
    for index, beta in enumerate(job.betas):
        pieces.append(_one_state(job, index, beta))
        job.report((index + 1) / len(job.betas))
    joined: Any = xr.concat(pieces, xr.IndexVariable("beta", list(job.betas)))
    return joined


def _one_state(job: FigureJob, index: int, beta: float) -> xr.Dataset:
    tokens = uniform(Sphere(2), job.n, job.seed + job.draws[index])
    end, moment = job.ends[index], job.moments[index]
    times = np.union1d(np.linspace(0.0, end, job.times), moment)
    run = solve(
        USA(beta),
        tokens,
        end,
        rtol=1e-5,
        atol=1e-7,
        save=Save(at=times, states=True, observe=[fourier_moments(job.modes)]),
        reduction=Tiled() if job.n > 4000 else Dense(),
    )
    best = int(dominant_mode(2, beta))
    centres = predicted_centres(np.asarray(tokens.points), best)
    x = np.asarray(run.states)[int(np.searchsorted(times, moment))]
    # Cut the circle halfway between two predicted centres.
    cut = centres[0] - np.pi / best
    edges = cut + np.linspace(0.0, 2 * np.pi, job.bins + 1)
    angles = cut + np.mod(np.arctan2(x[:, 1], x[:, 0]) - cut, 2 * np.pi)
    counts, _ = np.histogram(angles, edges, density=True)
    modes = np.arange(1, job.modes + 1)
    return xr.Dataset(
        {
            "density": (("bin",), counts),
            "angle": (("bin",), (edges[1:] + edges[:-1]) / 2),
            "time": (("save",), times),
            "moments": (("save", "mode"), np.asarray(run.array("fourier_moments"))),
            "rate": (("mode",), growth_rate(modes, 2, beta)),
            "centre": (("cluster",), _padded(centres)),
            "moment": moment,
            "fastest": best,
        },
        coords={"mode": modes},
    )


def predicted_centres(points: np.ndarray, k: int) -> np.ndarray:
    """theta_j = (2 pi j - arg muhat_k)/k in [-pi, pi), from the tokens at t = 0."""
    phase = np.angle(np.mean((points[:, 0] - 1j * points[:, 1]) ** k))
    angles = (2 * np.pi * np.arange(k) - phase) / k
    return np.sort(np.mod(angles + np.pi, 2 * np.pi) - np.pi)


def _padded(values: np.ndarray, size: int = 12) -> np.ndarray:
    return np.append(values, np.full(size - len(values), np.nan))


def seen_mode(data: xr.Dataset) -> int:
    """The mode with the largest moment when the histogram is taken, at one beta."""
    row = int(np.searchsorted(data.time.values, float(data.moment)))
    return int(data.mode[int(data.moments[row].values.argmax())])


@cluster_states.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    rows = data.sizes["beta"]
    figure, grid = plt.subplots(
        rows, 2, figsize=(7.0, 2.2 * rows + 0.5), squeeze=False, layout="constrained"
    )
    for (left, right), beta in zip(grid, data.beta.values, strict=True):
        one = data.sel(beta=beta)
        _draw_histogram(left, one)
        left.set_title(
            rf"$\beta={beta:g}$, $t={float(one.moment):g}$: fastest mode {int(one.fastest)}, "
            f"seen {seen_mode(one)}"
        )
        _draw_moments(right, one, float(one.moment))
    grid[-1, 0].set_xlabel(r"$\theta/\pi$")
    grid[-1, 1].set_xlabel("$t$")
    legend = figure.legend(
        *grid[0, 1].get_legend_handles_labels(), title="$k$", loc="outside right center"
    )
    plt.setp(legend.get_lines(), linewidth=1.5)
    key = [
        stroke("--", "places of the fastest mode", PALETTE[1], lw=1.0),
        stroke(":", "growth of the fastest mode", INK),
        stroke(":", "time of the histogram", REST, lw=0.8),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_histogram(axes: Any, one: xr.Dataset) -> None:
    width = float(one.angle[1] - one.angle[0]) / np.pi
    axes.bar(one.angle / np.pi, one.density, width=width, color=PALETTE[0], lw=0)
    for centre in one.centre.dropna("cluster").values:
        axes.axvline(centre / np.pi, color=PALETTE[1], lw=1.0, ls="--", zorder=0)
    edge = width / 2
    axes.set(ylabel="density")
    axes.set_xlim(float(one.angle[0]) / np.pi - edge, float(one.angle[-1]) / np.pi + edge)


def _draw_moments(axes: Any, one: xr.Dataset, marked: float) -> None:
    for index, k in enumerate(one.mode.values):
        best = k == int(one.fastest)
        axes.plot(
            one.time,
            one.moments.sel(mode=k),
            color=PALETTE[index],
            lw=2.0 if best else 1.1,
            label=f"{k}",
        )
    fast = one.sel(mode=int(one.fastest))
    line = fast.moments[0] * np.exp(fast.rate * one.time)
    axes.plot(one.time.where(line < 1), line.where(line < 1), ":", color=INK, lw=1.1)
    axes.axvline(marked, color=REST, lw=0.8, ls=":")
    axes.set(yscale="log", ylim=(2e-3, 1.3), ylabel=r"$|\hat\mu_k|$", xlim=(0, None))


@PAPER.figure(
    "limit-equation",
    title="The equation of infinitely many tokens makes the clusters of its fastest mode",
    shows="the density over time and angle from 1 plus small random ripples, by Fourier series until the "
    "spectrum reaches its cut-off (dashed line), then by quantiles: three clusters at beta = 5, four at "
    "beta = 7, at the places predicted from the phase of the fastest mode at t = 0 (triangles). Right: its "
    "moment grows like e^{lambda_k t} (dotted) until it saturates. The draws are chosen: of 60, mode 3 won "
    "43 at beta = 5 and mode 4 won 34 at beta = 7, the rest going to neighbours",
    quick={
        "betas": (5.0, 7.0),
        "ends": (0.5, 0.08),
        "ripples": 0.02,
        "waves": 12,
        "draws": (1, 0),
        "series": 256,
        "n": 300,
        "times": 101,
        "angles": 240,
        "modes": 5,
    },
    paper={"series": 1024, "n": 2000, "times": 201},
)
def limit_equation(job: FigureJob) -> xr.Dataset:
    """The published start with the modes above `waves` of its white noise left out, which hardly grow.

    `draws` are added to the seed: the defaults are draws in which the fastest mode wins. The ripples of
    another seed may favour a neighbour, whose rate is close.
    """
    pieces = []
    for index, beta in enumerate(job.betas):
        pieces.append(_one_limit(job, index, beta))
        job.report((index + 1) / len(job.betas))
    joined: Any = xr.concat(pieces, xr.IndexVariable("beta", list(job.betas)))
    return joined


def _one_limit(job: FigureJob, index: int, beta: float) -> xr.Dataset:
    """Both runs from one law; the series as long as it is resolved, and how far quantiles are from it."""
    law, end = ripples(job.ripples, job.waves, job.seed + job.draws[index]), job.ends[index]
    times = np.linspace(0.0, end, job.times)
    edges = np.linspace(-np.pi, np.pi, job.angles + 1)
    starts = [Density.from_law(on, law) for on in (Fourier(job.series), Quantiles(job.n))]
    save = Save(at=times, states=True, observe=[fourier_moments(job.modes)])
    runs = [
        solve(USA(beta), start, end, rtol=1e-7, atol=1e-10, save=save, throw=False)
        for start in starts
    ]
    resolved = runs[0].reached
    known = int(np.searchsorted(times, resolved))
    moments = [np.asarray(run.array("fourier_moments")) for run in runs]
    rows = _of_series(runs[0], edges), _of_quantiles(runs[1], edges)
    best, modes = int(dominant_mode(2, beta)), np.arange(1, job.modes + 1)
    centres = predicted_centres(np.asarray(starts[1].as_measure().points), best)
    return xr.Dataset(
        {
            "density": (("save", "angle"), np.concatenate([rows[0][:known], rows[1][known:]])),
            "moments": (("save", "mode"), np.concatenate([moments[0][:known], moments[1][known:]])),
            "apart": float(np.max(np.abs(moments[0][:known] - moments[1][:known]))),
            "time": (("save",), times),
            "resolved": resolved,
            "rate": (("mode",), growth_rate(modes, 2, beta)),
            "centre": (("cluster",), _padded(centres)),
            "fastest": best,
        },
        coords={"mode": modes, "angle": (edges[1:] + edges[:-1]) / 2},
    )


def _of_series(run: Trajectory, edges: np.ndarray) -> np.ndarray:
    """The density in the middle of every cell at every saved time."""
    scheme = run.blank_density.on.scheme()
    states = jnp.asarray(run.states)
    nodes = np.asarray(scheme.nodes(states[0]))
    angles, middle = np.arctan2(nodes[:, 1], nodes[:, 0]), (edges[1:] + edges[:-1]) / 2
    values = np.asarray(jax.vmap(scheme.values)(states))
    return np.stack([np.interp(middle, angles, row, period=2 * np.pi) for row in values])


def _of_quantiles(run: Trajectory, edges: np.ndarray) -> np.ndarray:
    """The mean density of every cell: mass is linear between quantiles, also where these are atoms."""
    states = np.asarray(run.states)
    # The cut moves with the flow, by less than a turn: two more turns on each side cover the circle.
    turns = np.arange(-2, 3)[:, None]
    masses = (turns + middle_masses(states.shape[-1])).ravel()
    totals = [np.interp(edges, (2 * np.pi * turns + row).ravel(), masses) for row in states]
    return np.diff(np.stack(totals), axis=-1) * (edges.size - 1)


@limit_equation.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    rows = data.sizes["beta"]
    figure, grid = plt.subplots(
        rows, 2, figsize=(7.0, 2.3 * rows + 0.5), squeeze=False, layout="constrained"
    )
    for (left, right), beta in zip(grid, data.beta.values, strict=True):
        one = data.sel(beta=beta)
        picture = _draw_history(left, one)
        left.set_title(rf"$\beta={beta:g}$: fastest mode {int(one.fastest)}")
        figure.colorbar(picture, ax=left, label="density", extend="both")
        _draw_moments(right, one, float(one.resolved))
        right.set_ylim(1e-4, 1.3)
    grid[-1, 0].set_xlabel("$t$")
    grid[-1, 1].set_xlabel("$t$")
    figure.legend(*grid[0, 1].get_legend_handles_labels(), title="$k$", loc="outside right center")
    key = [
        mark("<", "clusters of the fastest mode", PALETTE[1], ms=6),
        stroke(":", "end of the series (left: white, dashed)", REST, lw=0.8),
        stroke(":", "growth of the fastest mode", INK),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_history(axes: Any, one: xr.Dataset) -> Any:
    """The density over time, on a logarithmic scale of a hundredth to a hundred times the uniform one."""
    from matplotlib.colors import LogNorm

    shown = np.clip(one.density.values, 1e-2, 1e2)
    picture = axes.pcolormesh(
        one.time, one.angle / np.pi, shown.T, cmap="magma", norm=LogNorm(1e-2, 1e2), shading="auto"
    )
    axes.axvline(float(one.resolved), color="white", lw=0.9, ls="--")
    centres = one.centre.dropna("cluster").values
    axes.plot(
        np.full(centres.size, float(one.time[-1])),
        centres / np.pi,
        "<",
        color=PALETTE[1],
        ms=6,
        clip_on=False,
    )
    axes.set(ylabel=r"$\theta/\pi$", ylim=(-1, 1))
    return picture
