"""2110.11773: Sinkformers, Transformers with doubly stochastic attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import cumulative_simpson
from scipy.stats import norm

from ...dynamics import Dynamics
from ...integrate import Save, solve
from ...kinds import L2, Kind, Sinkhorn, Softmax
from ...ledger.figure import FigureJob
from ...measure import Measure
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from ...space import Euclidean
from ...terms import Attention, Drift
from ...weights import Weights
from . import PAPER, closed_forms

KERNELS = {"K0": "$K^0$: none", "K1": "$K^1$: softmax", "Kinf": "$K^\\infty$: Sinkhorn"}


# --- three normalisations of the same scores ---


@PAPER.figure(
    "normalisations",
    title="No normalisation, softmax, Sinkhorn",
    shows="queries (dots), keys (squares) and the weights between them as lines: without normalisation one "
    "pair has nearly all the mass; softmax gives every query the same mass, and a few keys receive nearly "
    "all of it; Sinkhorn gives every key the same mass too",
    quick={"n": 10, "sweeps": 100, "stretch": 20.0},
)
def normalisations(job: FigureJob) -> xr.Dataset:
    """The points of the authors' script (its RandomState and order of draws), weights of total mass 1.

    Their script normalises K^1 over the queries; attention, and this picture, over the keys.
    """
    random, half = np.random.RandomState(4 + job.seed), job.n // 2
    first = 0.3 * random.randn(half, 2), 0.3 + 0.3 * random.rand(half, 2)
    second = (
        0.3 * random.rand(half, 2) + np.array([-0.2, 0.3]),
        0.5 + 0.3 * random.rand(half, 2) + np.array([-0.2, -0.7]),
    )
    queries, keys = (job.stretch * np.concatenate(pair) for pair in (first, second))
    scores = -queries @ keys.T
    # The largest score is taken out of K^0, which only its total mass would feel.
    steps = {"K0": 0, "K1": 1, "Kinf": 2 * job.sweeps + 1}
    plans = [closed_forms.alternating(scores - scores.max(), count) for count in steps.values()]
    return xr.Dataset(
        {
            "queries": (("token", "coordinate"), queries),
            "keys": (("token", "coordinate"), keys),
            "weights": (
                ("kernel", "token", "key"),
                np.stack([plan / plan.sum() for plan in plans]),
            ),
        },
        coords={"kernel": list(steps)},
    )


@normalisations.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 3, figsize=(7.4, 3.2), layout="constrained")
    queries, keys = data.queries.values, data["keys"].values
    for axes, kernel in zip(panels, data.kernel.values, strict=True):
        weights = data.weights.sel(kernel=kernel).values
        for i, j in zip(*np.nonzero(weights > 1e-12), strict=True):
            width = min(1.2 * len(queries) * weights[i, j], 5.0)
            axes.plot(*np.stack([queries[i], keys[j]]).T, color=REST, lw=width, zorder=1)
        received = 60 * len(keys) * weights.sum(axis=0)
        axes.scatter(*queries.T, s=16, color=PALETTE[0], zorder=3)
        axes.scatter(*keys.T, s=14, marker="s", color=PALETTE[1], zorder=3)
        axes.scatter(*keys.T, s=received, facecolor="none", edgecolor=PALETTE[1], lw=0.8, zorder=2)
        axes.set_title(KERNELS[str(kernel)])
        axes.set(xticks=[], yticks=[], aspect="equal", xlabel="$x_1$")
        axes.margins(0.12)
    panels[0].set_ylabel("$x_2$")
    key = [
        mark("o", "queries", PALETTE[0]),
        mark("s", "keys", PALETTE[1]),
        mark("o", "area: the mass a key receives", PALETTE[1], ms=8, mfc="none"),
        stroke("-", "width: the weight of a pair", REST, lw=2.0),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=4, fontsize=7.5)
    return figure


# --- the same start, two attentions ---

FLOW_KINDS: dict[str, Kind] = {"softmax": Softmax(), "sinkhorn": Sinkhorn()}


@PAPER.figure(
    "same-start",
    title="Softmax and Sinkhorn attention from the same tokens",
    shows="paths of the same tokens in the plane under W_V = -B, B = diag(1, 0.4): Sinkhorn attention "
    "descends its energy F_inf at the rate int |v|^2 dmu and moves the mean of the tokens by e^{-Bt} (dots "
    "on its curves); softmax attention follows neither law",
    quick={"n": 40, "t": 3.0, "saves": 33},
    paper={"n": 120, "saves": 65},
)
def same_start(job: FigureJob) -> xr.Dataset:
    """Tokens (kind, save, token, 2), F_inf along both, its dissipation, and the means."""
    random = np.random.default_rng(job.seed)
    B = np.diag([1.0, 0.4])
    start = random.normal(size=(job.n, 2)) * [0.9, 0.7] + [0.8, 0.5]
    times = np.linspace(0.0, job.t, job.saves)
    pieces = []
    for index, (name, kind) in enumerate(FLOW_KINDS.items()):
        model = Dynamics(None, Attention(Weights(B=B, V=-B), 1.0, kind), label=name)
        run = solve(
            model,
            Measure(Euclidean(2), start),
            job.t,
            rtol=1e-8,
            atol=1e-10,
            save=Save(at=times, states=True),
        )
        pieces.append(_energies(np.asarray(run.states), times, B))
        job.report((index + 1) / len(FLOW_KINDS))
    joined: Any = xr.concat(pieces, xr.IndexVariable("kind", list(FLOW_KINDS)))
    decay = np.exp(-np.outer(times, np.diag(B))) * start.mean(axis=0)
    return joined.assign(mean_predicted=(("time", "coordinate"), decay))


def _energies(states: np.ndarray, times: np.ndarray, B: np.ndarray) -> xr.Dataset:
    """F_inf by Newton's method, and int |v|^2 dmu of the Sinkhorn field at the same tokens."""
    masses = np.full(states.shape[1], 1.0 / states.shape[1])
    energy, dissipation = [], []
    for x in states:
        scores = x @ B @ x.T
        phi = closed_forms.coupling_potential(scores, masses)
        plan = np.exp(scores - phi[:, None] - phi) * masses
        energy.append(masses @ phi)
        dissipation.append(masses @ np.sum((plan @ x @ B) ** 2, axis=1))
    return xr.Dataset(
        {
            "states": (("time", "token", "coordinate"), states),
            "energy": ("time", np.asarray(energy)),
            "dissipation": ("time", np.asarray(dissipation)),
            "mean": (("time", "coordinate"), states.mean(axis=1)),
        },
        coords={"time": times},
    )


@same_start.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(2, 2, figsize=(7.0, 6.0), layout="constrained")
    (left, right), (energy, mean) = panels
    for axes, kind, colour in zip((left, right), FLOW_KINDS, PALETTE, strict=False):
        one, name = data.sel(kind=kind), {"softmax": "softmax", "sinkhorn": "Sinkhorn"}[kind]
        axes.plot(*np.moveaxis(one.states.values, -1, 0), color=colour, lw=0.6, alpha=0.6)
        axes.plot(*one.states.values[0].T, "o", mfc="white", mec=REST, ms=2.6, zorder=2)
        axes.plot(*one.states.values[-1].T, "o", color=colour, ms=2.6, zorder=3)
        axes.set(title=name, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
        energy.plot(one.time, one.energy, color=colour, lw=1.5, label=name)
        mean.plot(one.time, _length(one["mean"].values), color=colour, lw=1.5, label=name)
    every = slice(None, None, 4)
    dissipated = float(data.energy.sel(kind="sinkhorn")[0]) - dissipation_so_far(data)
    dots = {"color": INK, "ms": 3, "ls": "", "marker": "o"}
    label = "$F(0)-\\int\\!\\int|v|^2 d\\mu\\,dt$"
    energy.plot(data.time[every], dissipated[every], label=label, **dots)
    expected = _length(data.mean_predicted.values)
    mean.plot(data.time[every], expected[every], label="$|e^{-Bt}$ mean$(0)|$", **dots)
    energy.set(xlabel="$t$", ylabel="$F_\\infty$ of the tokens")
    mean.set(xlabel="$t$", ylabel="length of the mean", yscale="log")
    energy.legend(fontsize=7)
    mean.legend(fontsize=7)
    key = [mark("o", "start", REST, mfc="white"), mark("o", "end", INK)]
    left.legend(handles=key, fontsize=7, loc="upper left")
    mean.set_yticks([0.2, 0.4, 0.6, 1.0], ["0.2", "0.4", "0.6", "1"])
    mean.minorticks_off()
    return figure


def _length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def dissipation_so_far(data: xr.Dataset) -> np.ndarray:
    """int_0^t int |v|^2 dmu of the Sinkhorn flow, by Simpson's rule in the saved times."""
    rate = data.dissipation.sel(kind="sinkhorn").values
    return cumulative_simpson(rate, x=data.time.values, initial=0.0)


# --- the heat equation ---

# Mass, mean and deviation of the two Gaussians of the start.
MIXTURE = ((0.6, -1.0, 0.45), (0.4, 1.0, 0.35))


def mixture(x: np.ndarray, t: float, of: str = "pdf") -> np.ndarray:
    """Density (or cdf) of the mixture after the heat equation has run for a time t."""
    law = norm.pdf if of == "pdf" else norm.cdf
    return sum((m * law(x, c, np.sqrt(s**2 + 2 * t)) for m, c, s in MIXTURE), np.zeros_like(x))


def quantiles(levels: np.ndarray, t: float) -> np.ndarray:
    """The inverse of the cdf, by interpolation on a fine grid (error 1e-6)."""
    grid = np.linspace(-9.0, 9.0, 20001)
    return np.interp(levels, mixture(grid, t, "cdf"), grid)


def heat_model(kind: str, bandwidth: float) -> Dynamics:
    """x' = -(2/eps)(E_inf[y|x] - x), or -(1/eps)(E_gauss[y|x] - x) with normalised rows."""
    rate = (2.0 if kind == "sinkhorn" else 1.0) / bandwidth
    weights = Weights(V=-rate * np.eye(1))
    attention = (
        Attention(weights, 1.0 / bandwidth, Sinkhorn(threshold=1e-8))
        if kind == "sinkhorn"
        else Attention(weights, 0.5 / bandwidth, L2())
    )
    return Dynamics(None, attention + Drift(rate), label=kind)


@PAPER.figure(
    "heat-flow",
    title="Attention of small bandwidth is the heat equation",
    shows="left: the law of tokens under Sinkhorn attention x' = -(2/eps)(E[y|x] - x) with dot-product "
    "scores x y/eps (steps) on the solution of the heat equation (lines); right: the distance W2 of the "
    "tokens from it at the end, against eps, for Sinkhorn and, several times farther, for a Gaussian kernel "
    "with normalised rows. The middle four fifths of the tokens (hollow) are off by order eps (dashed): with "
    "n = 100 by factors of 2.4 and 2.2 for Sinkhorn, 2.1 and 2.0 for the Gaussian kernel per halving. The "
    "outermost tokens, farther apart than sqrt(eps), no longer see each other, and all tokens together "
    "(full) follow that order less well: 2.1 and 2.4, 1.8 and 1.5. Crosses: the closed form for a Gaussian "
    "start and infinitely many tokens",
    quick={"n": 100, "t": 0.25, "bandwidths": (0.16, 0.08, 0.04), "saves": 3},
    paper={"n": 300, "bandwidths": (0.16, 0.08, 0.04, 0.02)},
)
def heat_flow(job: FigureJob) -> xr.Dataset:
    """Tokens (kind, bandwidth, save, token), W2 to the heat equation, and the Gaussian closed forms."""
    levels = (np.arange(job.n) + 0.5) / job.n
    times = np.linspace(0.0, job.t, job.saves)
    start = Measure(Euclidean(1), quantiles(levels, 0.0)[:, None])
    exact = quantiles(levels, job.t)
    kinds, states = ("sinkhorn", "gauss"), []
    for kind in kinds:
        for bandwidth in job.bandwidths:
            save = Save(at=times, states=True)
            run = solve(heat_model(kind, bandwidth), start, job.t, rtol=1e-5, atol=1e-7, save=save)
            states.append(np.asarray(run.states)[..., 0])
            job.report(len(states) / (len(kinds) * len(job.bandwidths)))
    shape = (len(kinds), len(job.bandwidths), len(times), job.n)
    points = np.stack(states).reshape(shape)
    squares, tenth = (points[:, :, -1] - exact) ** 2, job.n // 10
    return xr.Dataset(
        {
            "points": (("kind", "bandwidth", "time", "token"), points),
            "w2": (("kind", "bandwidth"), np.sqrt(squares.mean(axis=-1))),
            "inner": (
                ("kind", "bandwidth"),
                np.sqrt(squares[..., tenth : job.n - tenth].mean(axis=-1)),
            ),
            "gaussian_w2": (("kind", "bandwidth"), _gaussian_distance(job)),
        },
        coords={"kind": list(kinds), "bandwidth": list(job.bandwidths), "time": times},
    )


def _gaussian_distance(job: FigureJob) -> np.ndarray:
    """|sqrt(S(t)) - sqrt(S_0 + 2t)| from S_0 = 0.2: closed forms of both flows."""
    eps, variance = np.asarray(job.bandwidths), 0.2
    found = [
        closed_forms.sinkhorn_heat_variance(job.t, variance, eps),
        closed_forms.softmax_heat_variance(job.t, variance, eps),
    ]
    return np.abs(np.sqrt(np.stack(found)) - np.sqrt(variance + 2 * job.t))


@heat_flow.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="constrained")
    grid = np.linspace(-3.6, 3.6, 400)
    finest = data.sel(kind="sinkhorn").isel(bandwidth=-1)
    for index, time in enumerate(data.time.values):
        colour = PALETTE[index % len(PALETTE)]
        left.plot(grid, mixture(grid, float(time)), color=colour, lw=1.5, label=f"$t={time:.3g}$")
        left.stairs(*histogram(finest.points.values[index]), color=colour, lw=0.9, alpha=0.8)
    left.set(xlabel="$x$", ylabel="density", xlim=(-3.6, 3.6))
    left.set_title(f"Sinkhorn, $\\epsilon={float(finest.bandwidth):g}$ (steps), heat (lines)")
    left.legend(fontsize=7)
    names = {"sinkhorn": "Sinkhorn, dot products", "gauss": "softmax, Gaussian kernel"}
    for kind, colour in zip(names, PALETTE, strict=False):
        one = data.sel(kind=kind)
        right.plot(one.bandwidth, one.w2, "o-", color=colour, lw=1.3, ms=4, label=names[kind])
        right.plot(one.bandwidth, one.inner, "o:", color=colour, lw=1.0, ms=4, mfc="white")
        right.plot(one.bandwidth, one.gaussian_w2, "x", color=colour, ms=5)
    eps = data.bandwidth.values
    level = float(data.inner.sel(kind="sinkhorn")[0]) / eps[0]
    right.plot(eps, 0.6 * level * eps, color=FAINT, ls="--", lw=1.0, label="$\\propto\\epsilon$")
    right.set(xscale="log", yscale="log", xlabel="bandwidth $\\epsilon$")
    right.set_xticks(eps, [f"{each:g}" for each in eps])
    right.set_xticks([], minor=True)
    right.set(ylabel="$W_2$ to the heat equation")
    right.set_title(f"at $t={float(data.time[-1]):g}$")
    handles, _ = right.get_legend_handles_labels()
    other = [
        mark("o", "middle 4/5 of the mass alone", REST, mfc="white", ls=":"),
        mark("x", "from a Gaussian", REST, ms=5),
    ]
    right.legend(handles=[*handles, *other], fontsize=6.5)
    return figure


def histogram(points: np.ndarray, each: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Density of tokens in cells that hold five each (the last may hold fewer), and the cells' edges.

    The width of a cell says the density. Edges lie halfway between tokens, and as far beyond the outermost.
    """
    ordered = np.sort(points)
    halfway = (ordered[1:] + ordered[:-1]) / 2
    ends = 2 * ordered[[0, -1]] - halfway[[0, -1]]
    edges = np.concatenate([ends[:1], halfway[each - 1 :: each], ends[1:]])
    counts = np.histogram(ordered, edges)[0]
    return counts / len(points) / np.diff(edges), edges
