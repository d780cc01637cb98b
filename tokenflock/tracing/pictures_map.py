"""Maps of the token paths: all layers in the directions in which the tokens vary most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plot.style import PALETTE, REST
from ..trajectory import Trajectory
from .pictures_series import WIDTH
from .trace_values import facts, groups, labels
from .wording import drawn, shown

# Up to this many tokens every one is named, if there is room; beyond, only what has merged.
NAMED = 120
# Paths that are drawn; more would only cover one another.
MOST_PATHS = 500
# Directions beyond those drawn that make the iteration converge fast, and how often it runs.
SPARE, ITERATIONS = 8, 8
# Height of a line, start and width of a letter of a name, as parts of the axes.
LINE, INDENT, LETTER = 0.03, 0.012, 0.0125


def plane(plt: Any, run: Trajectory) -> Any:
    """Paths in two dimensions, with names at the ends where there is room."""
    paths, held = leading(np.asarray(run.states), 2)
    colours = _colours(run)
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2))
    for token in _drawn_paths(colours):
        path = paths[:, token]
        axes.plot(path[:, 0], path[:, 1], color=colours[token], lw=0.6, alpha=0.55)
    axes.scatter(*paths[0].T, s=14, facecolors="none", edgecolors=colours, lw=0.7)
    axes.scatter(*paths[-1].T, s=16, color=colours, zorder=3)
    axes.set_aspect("equal", "datalim")
    axes.set(xlabel=_axis(1, held), ylabel=_axis(2, held))
    figure.tight_layout(pad=0.5)
    _name_ends(axes, run, paths[-1], colours)
    return figure


def room(plt: Any, run: Trajectory) -> Any:
    """Paths in three dimensions."""
    paths, held = leading(np.asarray(run.states), 3)
    colours = _colours(run)
    figure = plt.figure(figsize=(WIDTH, 5.2))
    axes = figure.add_axes((0.0, 0.02, 0.96, 0.98), projection="3d")
    for token in _drawn_paths(colours):
        axes.plot(*paths[:, token].T, color=colours[token], lw=0.6, alpha=0.55)
    axes.scatter(*paths[-1].T, s=14, c=colours, depthshade=False)
    axes.set(xlabel=_axis(1, held), ylabel=_axis(2, held), zlabel=_axis(3, held))
    axes.tick_params(labelsize=6.5)
    return figure


def leading(states: np.ndarray, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (time, token, dimensions) in the principal directions of all layers together.

    Also the share of the variance that each direction holds. Subspace iteration from a fixed start
    (Halko et al. 2011): close directions may mix a little, which no picture shows. Signs are fixed, so
    that the same run gives the same picture. O(L n d) per iteration and direction.
    """
    flat = states.reshape(-1, states.shape[-1])
    centred = flat - flat.mean(axis=0)
    size = min(flat.shape[-1], dimensions + SPARE)
    basis = np.random.default_rng(0).normal(size=(flat.shape[-1], size))
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    _, lengths, turn = np.linalg.svd(centred @ basis, full_matrices=False)
    chosen = basis @ turn[:dimensions].T
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    held = lengths[:dimensions] ** 2 / max(float((centred**2).sum()), 1e-300)
    return (centred @ chosen).reshape(*states.shape[:-1], -1), held


def _axis(index: int, held: np.ndarray) -> str:
    return f"direction {index} ({held[index - 1]:.0%} of the variance)"


def _colours(run: Trajectory) -> np.ndarray:
    """A colour per cluster at the end, grey for a token alone; by place where nothing has merged."""
    n = len(labels(run)[0])
    found = groups(run, facts(run)["cluster_angle"])
    if not found or len(found[0]) == n:
        return _by_place(n)
    colours = np.full(n, REST, dtype=object)
    for index, group in enumerate(found):
        colours[group] = PALETTE[index % (len(PALETTE) - 1)]
    return colours


def _by_place(n: int) -> np.ndarray:
    """Dark blue at the first token, yellow at the last."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    shades = mpl.colormaps["cividis"](np.linspace(0.0, 0.95, n))
    return np.array([to_hex(shade) for shade in shades], dtype=object)


def _drawn_paths(colours: np.ndarray) -> np.ndarray:
    """Tokens whose path is drawn, evenly chosen; grey first, so that coloured ones lie on top."""
    order = np.argsort(colours != REST, kind="stable")
    step = -(-len(order) // MOST_PATHS)
    return order[::-1][::step][::-1]


def _name_ends(axes: Any, run: Trajectory, ends: np.ndarray, colours: np.ndarray) -> None:
    """Names beside the last points, left out where they would cover one another."""
    from matplotlib.patheffects import withStroke

    names = labels(run)[0]
    halo = [withStroke(linewidth=1.8, foreground="white")]
    box = axes.transAxes.inverted()
    taken: list[tuple[float, float, float]] = []
    for token in np.argsort(colours == REST, kind="stable"):
        if len(names) > NAMED and colours[token] == REST:
            continue
        x, y = box.transform(axes.transData.transform(ends[token]))
        name = shown(names[token], most=12)
        wide = INDENT + LETTER * len(name)
        free = all(abs(y - b) > LINE or x + wide < a or x > a + w for a, b, w in taken)
        if free:
            axes.annotate(
                drawn(name),
                ends[token],
                xytext=(3, 1),
                textcoords="offset points",
                fontsize=7,
                color="black",
                path_effects=halo,
            )
            taken.append((x, y, wide))
