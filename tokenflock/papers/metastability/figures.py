"""2410.06833v1: Dynamic metastability in the self-attention model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from ...dynamics import Clusters, Dynamics, Particles
from ...integrate import Layers, LogTime, Merge, Save, solve
from ...kinds import Softmax, Unnormalised
from ...ledger.figure import FigureJob
from ...measure import Measure, from_angles, from_array
from ...models import SA, USA
from ...observables import clusters, merge_events, scaled_energy
from ...plot.key import stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from ...reduce import Dense, Reduction
from ...runtime import ArrayLike, Scalar
from ...space import Sphere
from ...terms import Attention
from ...theory import merge_fraction, plateau_energy
from ...trajectory import Trajectory
from . import PAPER

Name = Literal["SA", "USA"]
MODELS: dict[Name, Callable[[ArrayLike], Dynamics]] = {
    "SA": SA,
    "USA": lambda beta: USA(beta, convention="metastability"),
}

# The start of the authors' staircase.py.
STAIRCASE = 0.5 * np.array([0.0, 0.5, 2.0, 4.0, 7.0]) * np.log(2000) / np.sqrt(2000)
# The start of the authors' kinetic.py.
KINETIC = (
    (0.99806638, 0.06215705),
    (0.97712061, 0.21268594),
    (-0.24578194, 0.96932515),
    (-0.97354734, 0.2284854),
    (-0.99892629, -0.04632772),
)
# Longest way that the five clusters of STAIRCASE travel together, with room to spare.
FARTHEST = 0.8


class UnitSpeed(Attention):
    """Attention divided by the norm of all clusters' velocities: time is then the path's arc length.

    The normalised gradient flow of the paper's staircase (there with Euler steps). Merged tokens have
    no mass and are not counted; a single cluster rests.
    """

    def tangent_field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        speed = mu.space.project(x, super().tangent_field(t, x, mu, reduction))
        own = jnp.where(mu.weights[:, None] > 0, speed, 0.0)
        # Speeds are as small as e^{-c beta}: their squares would underflow.
        largest = jnp.max(jnp.abs(own))
        scale = jnp.where(largest > 0, largest, 1.0)
        return speed / scale / jnp.where(largest > 0, jnp.linalg.norm(own / scale), 1.0)


@PAPER.figure(
    "staircase",
    title="The energy climbs a staircase",
    shows="for every beta the energy Ehat rests on the plateaus .28, .44 and .52 (the sum of the squared "
    "cluster masses) between fast rises, and ends at 1. The rises happen at the same arc length "
    "for all beta; in time they tend, as beta grows, to log t = beta (1 - cos of the gap that closes)",
    quick={
        "betas": (500.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0),
        "models": ("USA", "SA"),
        "radius": 1e-3,
        "spacing": 5e-4,
    },
    paper={"spacing": 1e-4},
)
def staircase(job: FigureJob) -> xr.Dataset:
    """Ehat along the path, which is followed at unit speed with clusters glued at `radius`.

    `log_time` is the logarithm of the flow's own time there: t = int ds/|v|.
    """
    arc = job.spacing * np.arange(int(FARTHEST / job.spacing) + 1)
    runs, clocks, merges = [], [], []
    for row, name in enumerate(job.models):
        model = MODELS[name](np.asarray(job.betas))
        run = _follow(model, arc, job.radius)
        runs.append(run["scaled_energy"].transpose("beta", "time").values)
        states, owners = np.asarray(run.array("states")), np.asarray(run.array("owners"))
        counts = np.asarray(run.array("clusters"))
        for column, beta in enumerate(job.betas):
            speed = _log_speeds(MODELS[name](beta), run.initial, states[column], owners[column])
            clocks.append(log_clock(arc, np.asarray(speed)))
            merges.append([event.time for event in merge_events(arc, counts[column])])
        job.report((row + 1) / len(job.models))
    shape = (len(job.models), len(job.betas), -1)
    return xr.Dataset(
        {
            "energy": (("model", "beta", "arc_length"), np.stack(runs)),
            "log_time": (("model", "beta", "arc_length"), np.reshape(clocks, shape)),
            "merge_arc_length": (("model", "beta", "merge"), np.reshape(merges, shape)),
            "gap": (("model", "merge"), [closing_gaps(STAIRCASE, name) for name in job.models]),
            "level": (("merge",), plateaus(STAIRCASE)),
        },
        coords={"model": list(job.models), "beta": list(job.betas), "arc_length": arc},
    )


def _follow(model: Dynamics, arc: np.ndarray, radius: float) -> Trajectory:
    """The path of the five tokens in arc length, to one cluster and beyond."""
    plain = model.attentions()[0]
    return solve(
        Dynamics(
            None,
            UnitSpeed(plain.weights, plain.beta, plain.kind, plain.mask),
            label="at unit speed",
        ),
        from_angles(STAIRCASE),
        float(arc[-1]),
        rtol=1e-8,
        atol=1e-10,
        merge=Merge(radius),
        save=Save(at=arc, states=True, observe=[clusters(angle=radius), scaled_energy]),
    )


def log_clock(arc: np.ndarray, log_speed: np.ndarray) -> np.ndarray:
    """log of the time t = int ds/|v| that the flow needs to each point of its path; inf at rest.

    |v| changes by factors between two points, so it is integrated as an exponential of s. At a merge
    it jumps between two points, which leaves log t uncertain by beta sin(gap) times their distance.
    """
    moving = np.isfinite(log_speed)
    slope = np.diff(-log_speed[moving]) / np.diff(arc[moving])
    steep = np.where(np.abs(slope) < 1e-9, 1e-9, slope)
    steps = -log_speed[moving][:-1] + np.log(np.expm1(steep * np.diff(arc[moving])) / steep)
    clock = np.full(arc.shape, np.inf)
    clock[moving] = np.concatenate([[-np.inf], np.logaddexp.accumulate(steps)])
    return clock


@eqx.filter_jit
def _log_speeds(model: Dynamics, tokens: Measure, states: Array, owners: Array) -> Array:
    """log |v| over the clusters at every saved time, with the masses of merged tokens added up."""

    def one(points: Array, owner: Array) -> Array:
        masses = jnp.zeros(tokens.n).at[owner].add(tokens.weights)
        state = Particles(points, None, Clusters(masses, owner.astype(float)))
        velocity = model.velocity(0.0, state, tokens, Dense()).points
        own = jnp.where(masses[:, None] > 0, velocity, 0.0)
        largest = jnp.max(jnp.abs(own))
        return jnp.log(largest) + jnp.log(jnp.linalg.norm(own / largest))

    return jax.vmap(one)(jnp.asarray(states), jnp.asarray(owners).astype(int))


def _greedy(angles: np.ndarray, model: Name) -> list[tuple[float, np.ndarray]]:
    """(gap, masses afterwards) of each merge when the closest pair always merges first.

    The limit beta -> inf of the flow on an arc: a pair meets where `theory.merge_fraction` says.
    """
    kind = Softmax() if model == "SA" else Unnormalised("metastability")
    place, mass = np.sort(angles), np.full(len(angles), 1.0 / len(angles))
    steps = []
    while len(place) > 1:
        k = int(np.argmin(np.diff(place)))
        gap = place[k + 1] - place[k]
        place[k] += gap * float(merge_fraction(mass[k], mass[k + 1], kind))
        mass[k] += mass[k + 1]
        place, mass = np.delete(place, k + 1), np.delete(mass, k + 1)
        steps.append((float(gap), mass.copy()))
    return steps


def closing_gaps(angles: np.ndarray, model: Name) -> np.ndarray:
    """1 - cos of the gap closed by each merge: the limit of (log t)/beta at that merge."""
    return np.array([1.0 - np.cos(gap) for gap, _ in _greedy(angles, model)])


def plateaus(angles: np.ndarray) -> np.ndarray:
    """Energy level sum p^2 after each merge."""
    return np.array([float(plateau_energy(mass)) for _, mass in _greedy(angles, "USA")])


@staircase.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    names = data.model.values
    figure, grid = plt.subplots(
        len(names),
        2,
        figsize=(6.8, 2.1 * len(names) + 0.7),
        sharex="col",
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    limit = None
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, data.beta.size))
    for (left, right), name in zip(grid, names, strict=True):
        for axes in (left, right):
            for level in data.level.values:
                axes.axhline(level, color=FAINT, lw=0.7, zorder=0)
        for gap in data.gap.sel(model=name).values:
            limit = right.axvline(gap, color=REST, lw=0.9, ls=":", zorder=0)
        for beta, colour in zip(data.beta.values, colours, strict=True):
            one = data.sel(model=name, beta=beta)
            left.plot(one.arc_length, one.energy, color=colour, lw=1.2, label=rf"${beta:g}$")
            # The single cluster at the end rests for ever: its time is infinite.
            right.plot(np.minimum(one.log_time / beta, 1.0), one.energy, color=colour, lw=1.2)
        left.set_ylabel(rf"{name}:  $\hat E$")
        left.set_yticks(np.append(data.level.values, 0.2))
    grid[0, 0].set(title="in arc length", ylim=(0.18, 1.03))
    last = float(data.merge_arc_length.max())
    grid[-1, 0].set(xlabel="arc length $s$", xlim=(0, min(1.1 * last, float(data.arc_length[-1]))))
    grid[0, 1].set_title("in time")
    grid[-1, 1].set(xlabel=r"$(\log\,t)/\beta$", xlim=(0, 1.25 * float(data.gap.max())))
    lines, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        [*lines, limit],
        [*labels, r"$\to\infty$: merges"],
        loc="outside right center",
        title=r"$\beta$",
        handlelength=1.2,
    )
    return figure


@PAPER.figure(
    "kinetic",
    title="Five tokens merge one pair at a time",
    shows="five tokens become one cluster by four separate merges; between the third and the fourth two "
    "clusters drift together for a time longer by orders of magnitude. Layers of step 0.1, the "
    "published scheme, are about ten percent late at every merge",
    quick={"beta": 4.0, "end": 400.0, "times": 4000, "threshold": 0.999, "step": 0.1},
    paper={},
)
def kinetic(job: FigureJob) -> xr.Dataset:
    """Angles, cluster counts (single linkage at <x_i,x_j> >= threshold) and merge times."""
    start = from_array(Sphere(2), KINETIC, normalise=True)
    count = clusters(angle=float(np.arccos(job.threshold)))
    flow = solve(
        SA(job.beta),
        start,
        job.end,
        rtol=1e-10,
        atol=1e-12,
        clock=LogTime(),
        save=Save(log=(0.05, job.times), states=True, observe=[count]),
    )
    job.report(0.6)
    layers = solve(
        SA(job.beta),
        start,
        job.end,
        method=Layers(job.step),
        save=Save(every=job.step, observe=[count]),
    )
    states = np.asarray(flow.states)
    # Cut the circle at -pi/2, where no token is: the lines then do not jump.
    turned = np.arctan2(-states[..., 0], states[..., 1])
    angles = np.unwrap(turned, axis=0) + np.pi / 2
    late = [event.time for event in merge_events(layers.time, layers.array("clusters"))]
    return xr.Dataset(
        {
            "angle": (("time", "token"), angles),
            "clusters": (("time",), np.asarray(flow.array("clusters"))),
            "merge_time": (("merge",), merge_times(flow, job.threshold)),
            "layer_merge_time": (("layer_merge",), np.array(late)),
        },
        coords={"time": np.asarray(flow.time)},
        attrs={"beta": job.beta, "threshold": job.threshold, "step": job.step},
    )


def merge_times(run: Trajectory, threshold: float) -> np.ndarray:
    """When the number of clusters drops, between two saves by interpolation.

    Pairs that meet close in exponentially, so log(1 - <x_i,x_j>) is taken as linear in t.
    """
    time, states = np.asarray(run.time), np.asarray(run.states)
    goal, found = np.log(1.0 - threshold), []
    for k in np.flatnonzero(np.diff(np.asarray(run.array("clusters"), dtype=int)) < 0):
        before, after = (_log_gaps(states[i]) for i in (k, k + 1))
        met = (before > goal) & (after <= goal)
        share = np.min((before[met] - goal) / (before[met] - after[met]))
        found.append(time[k] + share * (time[k + 1] - time[k]))
    return np.array(found)


def _log_gaps(points: np.ndarray) -> np.ndarray:
    """log(1 - <x_i,x_j>) of the pairs i < j."""
    first, second = np.triu_indices(len(points), 1)
    gaps = np.sum((points[first] - points[second]) ** 2, axis=-1) / 2.0
    return np.log(np.maximum(gaps, np.finfo(float).tiny))


@kinetic.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(5.6, 4.0), sharex=True, height_ratios=(2.2, 1), layout="constrained"
    )
    later = data.time.values > 0
    for token in range(data.sizes["token"]):
        angle, colour = data.angle[later, token] / np.pi, PALETTE[token]
        upper.plot(data.time[later], angle, color=colour, lw=1.6, label=f"token {token + 1}")
    for axes in (upper, lower):
        for time in data.merge_time.values:
            axes.axvline(time, color=INK, lw=0.7, ls=":")
    for time in data.merge_time.values:
        upper.annotate(
            f"{time:.3g}",
            (time, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    upper.set_ylabel(r"angle $\theta_i/\pi$")
    handles, _ = upper.get_legend_handles_labels()
    key = [*handles, stroke(":", "two have merged", lw=0.7)]
    upper.legend(handles=key, fontsize=7, loc="center right", bbox_to_anchor=(0.92, 0.45), ncols=2)
    lower.plot(
        data.time[later],
        data.clusters[later],
        color=INK,
        lw=1.4,
        drawstyle="steps-post",
        label="flow",
    )
    first = float(data.time[later][0])
    count = np.arange(data.sizes["token"], data.sizes["token"] - data.sizes["layer_merge"] - 1, -1)
    lower.step(
        np.append(first, data.layer_merge_time),
        count,
        where="post",
        color=PALETTE[1],
        lw=1.2,
        ls="--",
        label=f"layers, step {data.attrs['step']:g}",
    )
    lower.set(xscale="log", xlabel="$t$", ylabel="clusters", yticks=range(1, 6), ylim=(0.6, 5.4))
    lower.set_xlim(first, float(data.time[-1]))
    lower.legend(loc="upper right")
    return figure
