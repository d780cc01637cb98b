"""Pictures of density runs: the density at a few times, all of it over time, and the time series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..space import Euclidean
from ..trajectory import Trajectory
from .gaussian import draw_gaussian
from .series import draw_series, fill_series, scalar_names
from .style import INK, PALETTE, styled
from .views import quantity_text, rows_at, saved_states

KINDS = ("overview", "density", "series")
# The picture between the ends: halfway, since a density is resolved only until it sharpens.
SHOWN_MIDWAY = 0.5


def draw_density(
    run: Trajectory, kind: str | None = None, sample: tuple[int, ...] | None = None, **options: Any
) -> Any:
    """A matplotlib Figure: overview (default), density, or series."""
    kind = "overview" if kind is None else kind
    if kind not in KINDS:
        raise InputError(f"a density run is drawn as one of {', '.join(KINDS)}, got {kind!r}")
    with styled() as plt:
        if _is_gaussian(run):
            return draw_gaussian(plt, run, kind, sample)
        return {"overview": _overview, "density": _density, "series": draw_series}[kind](
            plt, run, sample, **options
        )


def _saved(run: Trajectory, sample: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and densities (time, node); only the two ends if states were not kept."""
    import jax
    import jax.numpy as jnp

    scheme = run.blank_density.on.scheme()
    times, states = saved_states(run, sample)
    rows = jnp.asarray(states)
    values = np.asarray(jax.vmap(scheme.values)(rows))
    return times, np.asarray(jax.vmap(scheme.nodes)(rows)), values


def _density(plt: Any, run: Trajectory, sample: Any, at: list[float] | None = None) -> Any:
    times, nodes, values = _saved(run, sample)
    rows = rows_at(times, at, SHOWN_MIDWAY)
    if _is_map(run):
        figure, panels = plt.subplots(1, len(rows), figsize=(2.6 * len(rows), 2.0), squeeze=False)
        _fill_maps(figure, panels[0], times, nodes, values, rows)
    else:
        figure, axes = plt.subplots(figsize=(4.6, 2.8))
        _fill_lines(axes, run, times, nodes, values, rows)
    figure.tight_layout()
    return figure


def _is_gaussian(run: Trajectory) -> bool:
    return isinstance(run.blank_density.space, Euclidean)


def _is_map(run: Trajectory) -> bool:
    return type(run.blank_density.on).__name__ == "Harmonics"


def _position(nodes: np.ndarray) -> tuple[np.ndarray, str, tuple[float, float]]:
    """The coordinate along which a density is drawn: the angle on the circle, else to the axis."""
    if nodes.shape[-1] == 2:
        angle = np.mod(np.arctan2(nodes[..., 1], nodes[..., 0]), 2 * np.pi)
        return angle, r"$\theta$", (0.0, 2 * np.pi)
    return np.arccos(np.clip(nodes[..., 0], -1, 1)), "angle to the axis", (0.0, np.pi)


def _fill_lines(
    axes: Any,
    run: Trajectory,
    times: np.ndarray,
    nodes: np.ndarray,
    values: np.ndarray,
    rows: list[int],
) -> None:
    position, label, limits = _position(nodes)
    for index, row in enumerate(rows):
        order = np.argsort(position[row])
        colour = PALETTE[index % len(PALETTE)]
        axes.plot(
            position[row][order],
            values[row][order],
            color=colour,
            lw=1.3,
            label=f"t = {times[row]:.4g}",
        )
    ticks = np.linspace(*limits, 5)
    names = {2 * np.pi: ["0", r"$\pi/2$", r"$\pi$", r"$3\pi/2$", r"$2\pi$"]}.get(
        limits[1], ["0", r"$\pi/4$", r"$\pi/2$", r"$3\pi/4$", r"$\pi$"]
    )
    axes.set_xticks(ticks, names)
    axes.set(xlabel=label, ylabel="density (uniform = 1)", xlim=limits)
    axes.legend(fontsize=7)


def _fill_maps(
    figure: Any,
    panels: Any,
    times: np.ndarray,
    nodes: np.ndarray,
    values: np.ndarray,
    rows: list[int],
) -> None:
    # The pole of the nodes is the first axis, as for zonal densities.
    longitude = np.degrees(np.mod(np.arctan2(nodes[0, :, 2], nodes[0, :, 1]), 2 * np.pi))
    latitude = np.degrees(np.arcsin(np.clip(nodes[0, :, 0], -1, 1)))
    # Nodes lie on circles of latitude: in order, they are a table of rows and columns.
    order = np.lexsort((longitude, np.round(latitude, 9)))
    rings = len(np.unique(np.round(latitude, 9)))
    across, up = longitude[order].reshape(rings, -1)[0], latitude[order].reshape(rings, -1)[:, 0]
    for axes, row in zip(panels, rows, strict=True):
        table = values[row][order].reshape(rings, -1)
        picture = axes.pcolormesh(across, up, table, cmap="viridis", shading="auto")
        figure.colorbar(picture, ax=axes, shrink=0.8)
        axes.set(title=f"t = {times[row]:.4g}", xlabel="longitude about $x_1$")
    panels[0].set_ylabel("latitude")


def _overview(plt: Any, run: Trajectory, sample: Any) -> Any:
    times, nodes, values = _saved(run, sample)
    rows, names = rows_at(times, None, SHOWN_MIDWAY), scalar_names(run)
    figure = plt.figure(figsize=(7.0, 2.9 + 1.05 * len(names)), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[2.9, 0.3 + 1.05 * len(names)])
    if _is_map(run):
        panels = top.subplots(1, len(rows), squeeze=False)[0]
        _fill_maps(top, panels, times, nodes, values, rows)
    else:
        left, right = top.subplots(1, 2)
        _fill_lines(left, run, times, nodes, values, rows)
        _fill_history(top, right, times, nodes, values)
    series = bottom.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    fill_series(run, sample, series, names)
    figure.suptitle(_caption(run, sample), fontsize=9, color=INK)
    return figure


def _fill_history(
    figure: Any, axes: Any, times: np.ndarray, nodes: np.ndarray, values: np.ndarray
) -> None:
    """The density over time and angle, on a logarithmic colour scale: peaks grow by decades."""
    from matplotlib.colors import LogNorm

    position, label, limits = _position(nodes)
    grid = np.linspace(*limits, 240)
    rows = []
    for here, row in zip(position, values, strict=True):
        order = np.argsort(here)
        period = limits[1] if nodes.shape[-1] == 2 else None
        rows.append(np.interp(grid, here[order], row[order], period=period))
    shown = np.maximum(np.stack(rows), 1e-2)
    picture = axes.pcolormesh(
        times,
        grid,
        shown.T,
        cmap="magma",
        norm=LogNorm(1e-2, max(shown.max(), 2e-2)),
        shading="auto",
    )
    axes.set(xlabel="time t", ylabel=label, ylim=limits)
    figure.colorbar(picture, ax=axes, label="density")


def _caption(run: Trajectory, sample: Any) -> str:
    betas = [part.beta for part in run.model.attentions()]
    beta = f", beta = {quantity_text(betas[0], sample)}" if betas else ""
    noise = getattr(run.model.noise, "temperature", None)
    warm = "" if noise is None else f", temperature {quantity_text(noise, sample)}"
    return (
        f"{run.attributes['label']}, infinitely many tokens on {run.blank_density.on}{beta}{warm}"
    )
