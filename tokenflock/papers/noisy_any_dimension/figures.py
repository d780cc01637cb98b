"""2606.05140: order against temperature, below and above beta_*, and the phase diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ... import theory
from ...density import Density
from ...integrate import Save, solve
from ...ledger.figure import FigureJob
from ...ledger.measure import KINDS
from ...meanfield.laws import uniform
from ...meanfield.stationary import Branch, branch, sweep_temperature
from ...meanfield.zonal import Zonal
from ...models import SA, USA, NoisyUSA
from ...observables import order_parameter
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from . import PAPER


@PAPER.figure(
    "branches",
    title="How noise gives way to order: continuously, or by a jump",
    shows="below beta_* the ordered branch leaves the uniform state at T_1 towards the cold and nothing "
    "depends on the past; above it the branch leaves towards the warm, unstable (dashed) until it folds "
    "(stability as seen by densities with the same axis, which are not all), and the equation swept "
    "down (triangles down) and up (triangles up) shows a loop between T_1 and the fold. Tokens (dots, bars "
    "3/sqrt(n)) drawn from the law of the branch stay on it, less tightly next to a continuous threshold, "
    "where fluctuations are large. Below: the free energy of ordered states crosses that of the uniform "
    "state at the dotted line, before T_1",
    quick={
        "dimensions": (2, 3),
        "ratios": (0.75, 1.6),
        "lowest": 0.88,
        "warmest": 1.16,
        "size": 40,
        "steps": 8,
        "rest": 300.0,
        "warmth": (0.89, 0.93),
        "n": 256,
        "token_steps": 300,
        "points": 60,
    },
    paper={"steps": 24, "rest": 2000.0, "n": 4000, "token_steps": 4000, "size": 64},
)
def branches_figure(job: FigureJob) -> xr.Dataset:
    """Branches, a sweep down and up, and tokens, for beta = ratio beta_* in every dimension."""
    pieces, done = [], 0
    for d in job.dimensions:
        row = []
        for ratio in job.ratios:
            row.append(_one_transition(job, d, ratio * float(theory.continuity_beta(d))))
            done += 1
            job.report(done / (len(job.dimensions) * len(job.ratios)))
        pieces.append(xr.concat(row, xr.IndexVariable("ratio", list(job.ratios))))
    joined: Any = xr.concat(pieces, xr.IndexVariable("d", list(job.dimensions)))
    return joined


def _one_transition(job: FigureJob, d: int, beta: float) -> xr.Dataset:
    on, start = Zonal(d, job.size), float(theory.critical_temperature(1, d, beta))
    found = branch(USA(beta), on, (job.lowest * start, 2 * start))
    folds, crossings = found.folds(), found.first_order_points()
    cooled = np.linspace(job.warmest, job.lowest + 0.02, job.steps)
    down, up = _swept(job, on, beta, start, cooled)
    warmth = np.array(job.warmth)
    return xr.Dataset(
        {
            "beta": beta,
            "temperature": (("point",), _filled(found.temperatures / start, job.points)),
            "order": (("point",), _filled(found.orders, job.points)),
            "advantage": (("point",), _filled(found.advantages / start, job.points)),
            "unstable": (("point",), _filled(found.unstable, job.points)),
            "fold": folds[0] / start if folds else np.nan,
            "jump": crossings[-1] / start if crossings else np.nan,
            "down": (("step",), down),
            "up": (("step",), up),
            "swept": (("step",), cooled),
            "tokens": (("dot",), [_tokens(job, found, beta, start, float(w)) for w in warmth]),
            "expected": (("dot",), [_expected(found, start * w) for w in warmth]),
            "warmth": (("dot",), warmth),
        }
    )


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    """Padded with NaN, so that branches of different lengths fit in one table."""
    room = np.full(size, np.nan)
    room[: min(size, len(values))] = values[:size]
    return room


def _swept(
    job: FigureJob, on: Zonal, beta: float, start: float, cooled: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Order after `rest`/T_1 at each temperature, cooling from uniform and warming back up."""
    rest = job.rest / start
    still = Density.from_law(on, uniform())
    down, densities = sweep_temperature(USA(beta), still, list(start * cooled), rest, seed=1e-3)
    up, _ = sweep_temperature(USA(beta), densities[-1], list(start * cooled[::-1]), rest, seed=1e-3)
    return down, up[::-1]


def _expected(found: Branch, temperature: float) -> float:
    """Order of the stable state of the branch at a temperature."""
    return float(found.equation.scheme.order_parameter(found.at(temperature)[-1].state))


def _tokens(job: FigureJob, found: Branch, beta: float, start: float, warmth: float) -> float:
    """Mean order over the last half of 6/T_1, from tokens drawn from the law of the branch."""
    end = 6.0 / start
    x0 = found.at(warmth * start)[-1].sample(job.n, job.seed)
    run = solve(
        NoisyUSA(beta, warmth * start),
        x0,
        end,
        dt=end / job.token_steps,
        seed=job.seed,
        save=Save(at=np.linspace(end / 2, end, 11), observe=[order_parameter]),
    )
    return float(np.mean(run.array("order_parameter")[1:]))


@branches_figure.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    columns = data.sizes["d"] * data.sizes["ratio"]
    figure, grid = plt.subplots(
        2, columns, figsize=(1.9 * columns, 4.2), sharex="col", layout="constrained",
        height_ratios=(1.6, 1), squeeze=False,
    )  # fmt: skip
    column = 0
    for d in data.d.values:
        for ratio in data.ratio.values:
            one = data.sel(d=d, ratio=ratio)
            _draw_order(grid[0, column], one, data.attrs["settings"]["n"])
            _draw_advantage(grid[1, column], one)
            sign = "<" if ratio <= 1 else ">"
            grid[0, column].set_title(rf"$d={d}$, $\beta={float(one.beta):.2f}{sign}\beta_*$")
            column += 1
    grid[0, 0].set_ylabel(r"order $|\int x\,d\mu|$")
    for axes in grid[1]:
        axes.set_ylabel(r"$(A-A_{\rm uniform})/T_1$", fontsize=7)
    handles, _ = grid[0, 0].get_legend_handles_labels()
    handles.append(stroke(":", "free energies cross", INK, lw=0.9))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=7)
    return figure


def _draw_order(axes: Any, one: xr.Dataset, n: int) -> None:
    span = np.array([float(one.swept.min()) - 0.02, 1.0, float(one.swept.max()) + 0.02])
    axes.plot(span[:2], [0, 0], "--", color=PALETTE[0], lw=1.2)
    axes.plot(span[1:], [0, 0], color=PALETTE[0], lw=1.6)
    _draw_by_stability(axes, one, one.order, "stable along the axis", "unstable")
    axes.plot(one.swept, one.down, "v", color=PALETTE[1], ms=4, mfc="none", label="cooling")
    axes.plot(one.swept, one.up, "^", color=PALETTE[2], ms=4, mfc="none", label="warming")
    axes.errorbar(
        one.warmth,
        one.tokens,
        3 / np.sqrt(n),
        fmt="o",
        color=INK,
        ms=3,
        lw=0.7,
        label=f"{n} tokens",
    )
    axes.set(xlim=(span[0], span[2]), ylim=(-0.03, 1))


def _draw_by_stability(axes: Any, one: xr.Dataset, values: xr.DataArray, *labels: str) -> None:
    """The branch, solid where it is stable; its start lies at the threshold."""
    calm = one.unstable.values == 0
    for keep, style, label in ((calm, "-", labels[:1]), (~calm, "--", labels[1:])):
        # one point of overlap, so that the two parts meet
        shown = keep | np.roll(keep, 1) | np.roll(keep, -1) if style == "--" else keep
        where = shown & np.isfinite(one.temperature.values)
        axes.plot(
            one.temperature.where(xr.DataArray(where, dims="point")), values, style,
            color=PALETTE[0], lw=1.6 if style == "-" else 1.2, label="".join(label) or None,
        )  # fmt: skip


def _draw_advantage(axes: Any, one: xr.Dataset) -> None:
    axes.axhline(0.0, color=REST, lw=0.8)
    axes.axvline(1.0, color=FAINT, lw=0.8)
    _draw_by_stability(axes, one, one.advantage)
    if np.isfinite(float(one.jump)):
        axes.axvline(float(one.jump), color=INK, lw=0.9, ls=":")
    inside = one.advantage.where(one.temperature > 0.97)
    top = 1.2 * float(inside.max())
    axes.set(xlabel=r"$T/T_1$", ylim=(min(-0.15 * top, 1.5 * float(inside.min())), top))
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))


@PAPER.figure(
    "phase-diagram",
    title="Where the uniform and the ordered state are stable",
    shows="in units of the linear threshold T_1: from beta_* (star) on, the temperature of the jump, where "
    "free energies cross, and that of the fold, the end of the ordered state, rise above T_1; between T_1 "
    "and the fold both states are stable (the ordered one as seen by densities with the same axis, which "
    "are not all). Right: the curvature g of the branch at its threshold, T = T_1 (1 "
    "+ g r^2), measured (crosses) and in theory (lines): USA changes sign at beta_*, SA stays negative, so "
    "that its onset is continuous at every beta shown",
    quick={
        "dimensions": (2, 3),
        "betas": (2.0, 2.2, 2.6, 3.0, 3.5, 4.0, 5.0),
        "size": 64,
        "curved": (0.5, 1.5, 3.0, 5.0),
        "largest": 6.0,
    },
    paper={"betas": (1.9, 2.0, 2.2, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0), "size": 96},
)
def phase_diagram(job: FigureJob) -> xr.Dataset:
    """T_c/T_1 and T_fold/T_1 for betas above beta_*; curvatures of USA and SA."""
    shape = (len(job.dimensions), len(job.betas))
    jump, fold = np.full(shape, np.nan), np.full(shape, np.nan)
    for row, d in enumerate(job.dimensions):
        for column, beta in enumerate(job.betas):
            job.report((row * shape[1] + column) / (shape[0] * shape[1]))
            if beta <= theory.continuity_beta(d):
                continue
            start = float(theory.critical_temperature(1, d, beta))
            found = branch(USA(beta), Zonal(d, job.size), (0.999 * start, 3 * start))
            fold[row, column] = found.folds()[0] / start
            jump[row, column] = found.first_order_points()[-1] / start
    fine = np.linspace(0.0, job.largest, 200)
    models = ("USA", "SA")
    curves = [
        [theory.pitchfork_curvature(d, fine, KINDS[m]) for d in job.dimensions] for m in models
    ]
    return xr.Dataset(
        {
            "jump": (("d", "beta"), jump),
            "fold": (("d", "beta"), fold),
            "star": (("d",), np.asarray(theory.continuity_beta(np.array(job.dimensions)))),
            "curvature": (("model", "d", "fine_beta"), np.asarray(curves)),
            "measured": (("model", "d", "curved"), _curvatures(job, models)),
        },
        coords={
            "d": list(job.dimensions),
            "beta": list(job.betas),
            "fine_beta": fine,
            "curved": list(job.curved),
            "model": list(models),
        },
    )


def _curvatures(job: FigureJob, models: tuple[str, ...]) -> np.ndarray:
    """(T/T_1 - 1)/r^2 at the first point of the branch, r about 0.015."""
    makers = {"USA": USA, "SA": SA}
    found = np.zeros((len(models), len(job.dimensions), len(job.curved)))
    for index in np.ndindex(found.shape):
        name, d, beta = models[index[0]], job.dimensions[index[1]], job.curved[index[2]]
        start = float(theory.critical_temperature(1, d, beta, KINDS[name]))
        near = branch(makers[name](beta), Zonal(d, 16), (0.5 * start, 2 * start), points=1)
        found[index] = (near.temperatures[0] / start - 1) / near.orders[0] ** 2
    return found


@phase_diagram.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    count = data.sizes["d"]
    figure, panels = plt.subplots(
        1, count + 1, figsize=(2.5 * (count + 1), 2.9), layout="constrained"
    )
    for axes, d in zip(panels, data.d.values, strict=False):
        _draw_regions(axes, data.sel(d=d))
        axes.set(title=f"$d={d}$", xlabel=r"$\beta$", ylabel="$T/T_1$")
    for name, style in zip(data.model.values, ("-", "--"), strict=False):
        for index, d in enumerate(data.d.values):
            one = data.sel(model=name, d=d)
            colour = PALETTE[index]
            panels[-1].plot(
                one.fine_beta, one.curvature, style, color=colour, label=f"{name}, $d={d}$"
            )
            panels[-1].plot(one.curved, one.measured, "x", color=colour, ms=5)
    panels[-1].axhline(0.0, color=REST, lw=0.8)
    panels[-1].set(title="curvature at the threshold", xlabel=r"$\beta$", ylabel="$g$")
    handles, _ = panels[-1].get_legend_handles_labels()
    panels[-1].legend(handles=[*handles, mark("x", "measured", REST, ms=5)], fontsize=7)
    return figure


def _draw_regions(axes: Any, one: xr.Dataset) -> None:
    kept = one.dropna("beta")
    star = float(one.star)
    beta = np.concatenate([[star], kept.beta.values])
    fold, jump = (np.concatenate([[1.0], kept[name].values]) for name in ("fold", "jump"))
    axes.fill_between(beta, 1.0, fold, color=PALETTE[4], alpha=0.25, lw=0)
    axes.axhline(1.0, color=PALETTE[0], lw=1.5, label=r"$T_1$: uniform loses stability")
    axes.plot(beta, jump, ".-", color=INK, lw=1.2, ms=4, label="jump: free energies cross")
    axes.plot(beta, fold, ".-", color=PALETTE[1], lw=1.2, ms=4, label="fold: order ends")
    axes.plot(star, 1.0, "*", color=INK, ms=9, zorder=4, ls="", label=r"$\beta_*$")
    top = 1 + 1.5 * (float(np.max(fold)) - 1)
    axes.set(xlim=(0.0, beta[-1]), ylim=(1 - 0.3 * (top - 1), top))
    axes.text(0.8, 0.28, "both", transform=axes.transAxes, fontsize=8, color=REST)
    axes.text(0.05, 0.5, "uniform", transform=axes.transAxes, fontsize=8, color=REST)
    axes.text(0.05, 0.06, "ordered", transform=axes.transAxes, fontsize=8, color=REST)
    axes.legend(fontsize=6.5, loc="upper left")
