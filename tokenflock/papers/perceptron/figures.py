"""2601.21366: perceptrons and localization of attention's mean-field landscape."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...dynamics import Dynamics
from ...integrate import Save, solve
from ...ledger.figure import FigureJob
from ...meanfield.landscape import (
    CriticalPoint,
    certify,
    continue_branch,
    critical_near,
    crowding,
    find_critical,
    reversed_model,
    switch_branch,
)
from ...models import SA, USA
from ...plot.key import mark, stroke
from ...plot.style import INK, PALETTE, REST
from ...space import Sphere
from ...starts import uniform
from ...terms.perceptron import GELU, RELU, Activation, Perceptron
from . import PAPER

# Two neurons whose potential has one minimum, far from symmetric about it: v''' = 1.25 v'' in size.
OMEGA, TURNS = np.array([-1.2, -0.84]), np.array([0.4, 1.8])
EVENTS = {"bifurcation": "o", "fold": "D", "kink": "x"}
# Atoms closer than this angle, in radians, all along a branch are at one place.
TOGETHER = 1e-6


def _two_neurons(size: float) -> Perceptron:
    a = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=-1)
    return Perceptron.gradient(size * OMEGA, a, GELU)


@PAPER.figure(
    "bifurcations",
    title="Two atoms split as attention outweighs the perceptron",
    shows="descent with a GELU perceptron: for a strong perceptron or a small beta both atoms rest at the "
    "minimum of v (black). Where repulsion wins, that state loses its stability (dashed) and meets the "
    "branch on which the atoms are apart. Neither the potential nor the masses are symmetric: that branch "
    "crosses the state and turns at a fold, between which and the crossing two states are SOPD (stable to "
    "second order: no direction lowers the energy)",
    quick={
        "masses": (0.85, 0.15),
        "beta": 4.0,
        "size": 4.0,
        "least_scale": 0.35,
        "form_a_size": 17.0,
        "least_beta": 1.4,
        "largest_beta": 3.0,
        "largest_step": 0.05,
    },
    paper={"largest_step": 0.01},
)
def bifurcations(job: FigureJob) -> xr.Dataset:
    """Branches of two atoms in the scale of the perceptron (form B) and in beta (form A)."""
    panels = {
        "scale": (USA(job.beta, "metastability", plus=_two_neurons(job.size)), job.least_scale),
        "beta": (USA(job.least_beta, plus=_two_neurons(job.form_a_size)), job.largest_beta),
    }
    pieces = []
    for done, (parameter, (model, to)) in enumerate(panels.items()):
        pieces += _family(_together(model, job.masses), parameter, to, job.largest_step)
        job.report((done + 1) / len(panels))
    return _stacked(pieces)


def _together(model: Dynamics, masses: tuple[float, ...]) -> CriticalPoint:
    """All atoms at the minimum of the perceptron's potential."""
    angles = np.linspace(-np.pi, np.pi, 2001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    found = [term.potential(0.0, jnp.asarray(circle)) for term in model.parts()]
    potential = sum(np.asarray(values) for values in found if values is not None)
    lowest = circle[int(np.argmin(potential))]
    return critical_near(model, np.repeat(lowest[None], len(masses), axis=0), masses)


def _family(point: CriticalPoint, parameter: Any, to: float, largest: float) -> list[xr.Dataset]:
    """The branch of atoms together and, from its first simple bifurcation, both sides of the other."""
    together = continue_branch(point, parameter, to, largest=largest)
    found = [together]
    simple = (together.event_kind == "bifurcation") & (together.event_multiplicity == 1)
    for event in np.flatnonzero(simple)[:1]:
        for side in (1.0, -1.0):
            found.append(
                switch_branch(point, together, int(event), side, step=1e-3, largest=largest)
            )
    return found


def _stacked(pieces: list[xr.Dataset]) -> xr.Dataset:
    """Branches of unequal lengths as one dataset, padded with NaN."""
    rows = []
    for piece in pieces:
        name = piece.attrs["parameter"]
        kept = piece[["angle", "kappa", "negative", "energy"]].drop_vars(name)
        kept["value"] = (("step",), piece[name].values)
        kept["event_value"], kept["event_kind"] = piece.event_parameter, piece.event_kind
        kept["event_angle"] = (
            ("event", "atom"),
            np.arctan2(piece.event_points[..., 1].values, piece.event_points[..., 0].values),
        )
        kept["parameter"] = name
        kept = kept.assign_coords(step=np.arange(piece.sizes["step"]))
        rows.append(kept.assign_coords(event=np.arange(piece.sizes["event"])))
    joined: Any = xr.concat(rows, "branch", join="outer", fill_value={"event_kind": ""})
    return joined


@bifurcations.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(7.0, 2.9), layout="constrained", sharey=True)
    labels = {"scale": "scale of the perceptron (form B)", "beta": r"$\beta$ (form A)"}
    for axes, name in zip(panels, labels, strict=True):
        for branch in np.flatnonzero(data.parameter.values == name):
            _draw_branch(axes, data.isel(branch=int(branch)))
        axes.set_xlabel(labels[name])
    panels[0].set_ylabel("angle of the atoms [rad]")
    panels[0].set_title(rf"$\beta={data.attrs['settings']['beta']:g}$")
    panels[1].set_title(f"scale {data.attrs['settings']['form_a_size']:g} of the perceptron")
    figure.legend(handles=_branch_key(data), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _branch_key(data: xr.Dataset) -> list[Any]:
    """What colours, lines and marks of the branches mean."""
    masses = data.attrs["settings"]["masses"]
    apart = [
        stroke("-", f"atom of mass {mass:g}, apart", colour)
        for mass, colour in zip(masses, PALETTE, strict=False)
    ]
    stable = [stroke("-", "SOPD: stable", REST), stroke("--", "not SOPD: unstable", REST)]
    events = [mark(EVENTS[kind], kind) for kind in ("bifurcation", "fold")]
    return [stroke("-", "both atoms together", INK), *apart, *stable, *events]


def _draw_branch(axes: Any, one: xr.Dataset) -> None:
    """A line for each atom, or a single one for the branch on which they are together."""
    one = one.dropna("step", subset=["value"])
    stable = one.negative.values == 0
    together = float((one.angle.max("atom") - one.angle.min("atom")).max()) < TOGETHER
    for atom in range(1 if together else one.sizes["atom"]):
        angle = one.angle[:, atom].values
        colour = INK if together else PALETTE[atom]
        for mask, line in ((stable, "-"), (~stable, "--")):
            # A line reaches to the first point of the other kind, so that no gap is left.
            shown = mask | np.roll(mask, 1) | np.roll(mask, -1)
            axes.plot(one.value, np.where(shown, angle, np.nan), line, color=colour, lw=1.2)
    for event in range(one.sizes["event"]):
        kind = str(one.event_kind[event].item())
        if kind in EVENTS:
            places = one.event_angle[event].values
            axes.plot(np.full(places.shape, float(one.event_value[event])), places, EVENTS[kind],
                      color=INK, ms=4, zorder=4)  # fmt: skip


@PAPER.figure(
    "atom-counts",
    title="Atoms and heaviest clusters against the square root of beta",
    shows="limits of descent from random tokens, with a small ReLU perceptron and without (null). With it "
    "tokens gather in fewer atoms than there are tokens, and no crowd of atoms exceeds its bound; without "
    "it descent spreads the tokens evenly, and there is nothing to count but the tokens themselves",
    quick={"betas": (1.0, 4.0, 9.0, 16.0), "n": 24, "seeds": 2, "scale": 0.1},
    paper={"betas": (0.5, 1.0, 3.0, 5.0, 7.0, 10.0, 15.0, 25.0, 35.0), "n": 200, "seeds": 10},
)
def atom_counts(job: FigureJob) -> xr.Dataset:
    """Counts and masses of descent limits (form B, circle) for seeds of weights and tokens."""
    rows, total = [], len(job.betas) * job.seeds
    for index in range(total):
        beta, seed = job.betas[index // job.seeds], job.seed + index % job.seeds
        rows.append([_counted(job, beta, seed, scale) for scale in (job.scale, 0.0)])
        job.report((index + 1) / total)
    shape = (len(job.betas), job.seeds, 2, len(COUNTED))
    values = np.asarray(rows, dtype=float).reshape(shape)
    return xr.Dataset(
        {
            name: (("beta", "seed", "case"), values[..., column])
            for column, name in enumerate(COUNTED)
        },
        coords={"beta": list(job.betas), "case": ["perceptron", "null"]},
    )


def drawn_neurons(d: int, seed: int, scale: float, activation: Activation) -> Perceptron:
    """d neurons with omega_j of N(0, scale^2), the paper's law: ours divides by the width, d."""
    return Perceptron.random(d, d, seed, scale * d**0.5, gradient=True, activation=activation)


CASES = {"perceptron": "with a perceptron, mean", "null": "without (null), mean"}
COUNTED = ("atoms", "clusters", "heaviest", "crowded", "mass_bound", "residual", "kappa", "scale")


def _counted(job: FigureJob, beta: float, seed: int, scale: float) -> tuple[float, ...]:
    term = drawn_neurons(2, seed, scale, RELU)
    start = uniform(Sphere(2), job.n, 1000 + seed)
    point = find_critical(USA(beta, "metastability", plus=term), start)
    counted, certificate = crowding(point), certify(point)
    return (
        counted.atoms,
        counted.clusters,
        counted.heaviest,
        counted.crowded,
        counted.mass_bound,
        point.residual,
        certificate.transverse_kappa,
        scale,
    )


@atom_counts.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 2.9), layout="constrained")
    root = np.sqrt(data.beta)
    for case, colour in zip(data.case.values, PALETTE, strict=False):
        one = data.sel(case=case)
        left.plot(root, one.atoms, "o", color=colour, ms=4, mfc="none")
        left.plot(root, one.atoms.mean("seed"), color=colour, lw=1.0, label=CASES[str(case)])
    one = data.sel(case="perceptron")
    right.plot(root, one.heaviest, "o", color=PALETTE[0], ms=4, mfc="none")
    right.plot(
        root, one.heaviest.mean("seed"), color=PALETTE[0], lw=1.0, label="heaviest cluster, mean"
    )
    right.plot(root, one.crowded, "^", color=INK, ms=4)
    right.plot([], [], "^", color=INK, ms=4, label="crowd of two or more atoms")
    right.plot(root, np.minimum(one.mass_bound, 1.0), "_", color=INK, ms=12, mew=1.2)
    right.plot([], [], "_", color=INK, ms=12, label="its bound")
    left.set(xlabel=r"$\sqrt{\beta}$", ylabel="atoms", ylim=(0, None))
    right.set(xlabel=r"$\sqrt{\beta}$", ylabel="mass", ylim=(0, 1.05))
    for axes in (left, right):
        handles, _ = axes.get_legend_handles_labels()
        key = [*handles, mark("o", "one seed", REST, mfc="none")]
        axes.legend(handles=key, fontsize=7, loc="best")
    return figure


FLOWS = {"ascent, ReLU": ("ascent", RELU), "descent, GELU": ("descent", GELU)}
MODELS = {"USA": lambda beta, plus: USA(beta, "metastability", plus=plus), "SA": SA}


@PAPER.figure(
    "gallery",
    title="Ascent and descent with a perceptron, on the circle and on the sphere",
    shows="ascent (ReLU) gathers the tokens in one or a few atoms at maxima of v, descent (GELU) spreads "
    "them over more places. Circle: angles against time; sphere: the tokens at the end, by longitude and "
    "latitude",
    quick={"n": 40, "beta": 5.0, "scale": 1.0, "end": 300.0, "times": 60, "weights": (777, 111)},
    paper={"n": 500, "times": 200},
)
def readme_gallery(job: FigureJob) -> xr.Dataset:
    """{USA, SA} x {ascent ReLU, descent GELU} on S^1 and S^2, from uniform tokens."""
    pieces: dict[str, Any] = {}
    times = np.concatenate([[0.0], np.geomspace(0.05, job.end, job.times - 1)])
    for d, space in ((2, "circle"), (3, "sphere")):
        states = [_path(job, d, name, flow, times) for name in MODELS for flow in FLOWS]
        shape = (len(MODELS), len(FLOWS), job.times, job.n, d)
        dims = ("model", "flow", "time", "token", f"coordinate_{d}")
        pieces[space] = (dims, np.asarray(states).reshape(shape))
        job.report((d - 1) / 2)
    coords = {"model": list(MODELS), "flow": list(FLOWS), "time": times}
    return xr.Dataset(pieces, coords=coords)


def _path(job: FigureJob, d: int, name: str, flow: str, times: np.ndarray) -> np.ndarray:
    direction, activation = FLOWS[flow]
    term = drawn_neurons(d, job.weights[d - 2], job.scale, activation)
    ascent = MODELS[name](job.beta, plus=term)
    model = ascent if direction == "ascent" else reversed_model(ascent)
    start = uniform(Sphere(d), job.n, 42 + job.seed)
    saved = Save(at=times, states=True)
    run = solve(model, start, job.end, rtol=1e-6, atol=1e-8, save=saved)
    return np.asarray(run.states)


@readme_gallery.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, grid = plt.subplots(2, 4, figsize=(8.4, 4.0), layout="constrained")
    pairs = [(model, flow) for flow in data.flow.values for model in data.model.values]
    for column, (model, flow) in enumerate(pairs):
        one = data.sel(model=model, flow=flow)
        angle = np.arctan2(one.circle[..., 1], one.circle[..., 0]).values
        jumps = np.abs(np.diff(angle, axis=0, prepend=angle[:1])) > np.pi
        grid[0, column].plot(one.time, np.where(jumps, np.nan, angle), color=PALETTE[0], lw=0.5)
        grid[0, column].set(title=f"{model}, {flow}", xscale="symlog", xlabel="$t$")
        grid[0, column].set_ylim(-np.pi, np.pi)
        last = one.sphere[-1].values
        place = np.arctan2(last[:, 1], last[:, 0]), np.arcsin(np.clip(last[:, 2], -1, 1))
        grid[1, column].plot(*place, "o", color=PALETTE[1], ms=4, alpha=0.5, mew=0)
        grid[1, column].set(xlim=(-np.pi, np.pi), ylim=(-np.pi / 2, np.pi / 2))
        grid[1, column].set_xlabel("longitude [rad]")
        grid[0, column].title.set_fontsize(8)
    grid[0, 0].set_ylabel("circle: angle [rad]")
    grid[1, 0].set_ylabel("sphere: latitude [rad]")
    return figure
