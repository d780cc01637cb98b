"""Drawing shared by the figures: trails, tokens and hulls, in the plane and in space alike."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ....plot.style import FAINT, INK, PALETTE, REST

START = {"s": 9, "facecolors": "white", "edgecolors": REST, "linewidths": 0.7}
END = {"s": 17, "linewidths": 0.4, "edgecolors": "white"}
# Tokens closer than this at the end are drawn as one corner of a hull.
SAME_CORNER = 1e-3
# Sides of the drawn box, whatever the scales of its axes.
BOX = (4.0, 4.0, 3.2)
# Width of an empty column right of a space, whose labels matplotlib does not reckon with.
GAP = 0.08


def flat(axes: Any, names: tuple[str, str] = ("$z_1$", "$z_2$")) -> Any:
    """A plane with named axes and equal scales."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=names[0], ylabel=names[1])
    return axes


def solid(
    figure: Any,
    place: Any,
    names: tuple[str, str, str] = ("$z_1$", "$z_2$", "$z_3$"),
    view: tuple[float, float] = (18.0, -60.0),
) -> Any:
    """A space with named axes and quiet panes; `view` is (elevation, azimuth) in degrees."""
    axes = figure.add_subplot(place, projection="3d", proj_type="ortho", computed_zorder=False)
    axes.view_init(*view)
    axes.set_box_aspect(BOX, zoom=1.2)
    axes.set(xlabel=names[0], ylabel=names[1], zlabel=names[2])
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.line.set_color(FAINT)
        axis._axinfo["grid"].update(color="#E8E8E8", linewidth=0.5)
        axis.labelpad = -8
        axis.set_tick_params(labelsize=7, pad=-3)
    axes.locator_params(nbins=4)
    return axes


def paths(axes: Any, states: np.ndarray, colours: Any, width: float = 0.7) -> None:
    """The trail of each token from its start (hollow) to its end (filled)."""
    for path, colour in zip(np.swapaxes(states, 0, 1), colours, strict=True):
        axes.plot(*path.T, color=colour, lw=width, alpha=0.55, zorder=2)
    axes.scatter(*states[0].T, zorder=3, **START, **_depth(axes))
    axes.scatter(*states[-1].T, c=list(colours), zorder=4, **END, **_depth(axes))


def _depth(axes: Any) -> dict[str, bool]:
    """In space matplotlib fades distant points unless told not to, which would hide colours."""
    return {"depthshade": False} if axes.name == "3d" else {}


def hull(axes: Any, points: np.ndarray, colour: str = PALETTE[0]) -> None:
    """The convex hull of points of the plane or of space, filled lightly."""
    from scipy.spatial import ConvexHull

    corners = distinct(points)
    found = ConvexHull(corners)
    if points.shape[-1] == 2:
        outline = corners[found.vertices]
        axes.fill(*outline.T, facecolor=colour, alpha=0.10, zorder=0)
        axes.fill(*outline.T, fill=False, edgecolor=colour, lw=1.2, zorder=1)
        return
    faces = corners[found.simplices]
    facing = found.equations[:, :3] @ towards_viewer(axes) > 0
    _facets(axes, faces[~facing], colour, {"lw": 0.5, "alpha": 0.45, "ls": (0, (3, 2))})
    _facets(axes, faces[facing], colour, {"lw": 0.9, "alpha": 0.95})


def _facets(axes: Any, faces: np.ndarray, colour: str, edges: dict[str, Any]) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    fill = Poly3DCollection(list(faces), facecolor=colour, alpha=0.05, edgecolor="none", zorder=0)
    axes.add_collection3d(fill)
    for face in faces:
        axes.plot(*np.vstack([face, face[:1]]).T, color=colour, zorder=1, **edges)


def towards_viewer(axes: Any) -> np.ndarray:
    """The direction, in the coordinates of the data, from which a space is seen."""
    elevation, azimuth = np.radians([axes.elev, axes.azim])
    flat_part = np.array([np.cos(azimuth), np.sin(azimuth)]) * np.cos(elevation)
    sides = np.diff([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])[:, 0]
    return np.append(flat_part, np.sin(elevation)) * sides / BOX


def distinct(points: np.ndarray) -> np.ndarray:
    """The points, those nearer than SAME_CORNER to an earlier one left out."""
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > SAME_CORNER for other in kept):
            kept.append(point)
    return np.array(kept)


def level_set(axes: Any, form: np.ndarray, level: float, box: np.ndarray, colour: str) -> None:
    """The part of the line or plane <form, z> = level inside a box (rows: low and high corner)."""
    corners = cut(form, level, box)
    if len(form) == 2:
        axes.plot(*corners.T, color=colour, lw=1.4, zorder=1)
        return
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    face = Poly3DCollection([corners], facecolor=colour, edgecolor=colour, alpha=0.16, zorder=0)
    axes.add_collection3d(face)


def cut(form: np.ndarray, level: float, box: np.ndarray) -> np.ndarray:
    """Corners of {<form, z> = level} inside a box, in order around their centre."""
    d = len(form)
    found = []
    for axis in range(d):
        others = [k for k in range(d) if k != axis]
        for sides in product((0, 1), repeat=d - 1):
            corner = np.zeros(d)
            corner[others] = [box[side, k] for side, k in zip(sides, others, strict=True)]
            if form[axis] != 0:
                corner[axis] = (level - form[others] @ corner[others]) / form[axis]
                if box[0, axis] <= corner[axis] <= box[1, axis]:
                    found.append(corner)
    points = np.array(found)
    middle = points - points.mean(axis=0)
    across, along = np.linalg.svd(middle)[2][:2]
    return points[np.argsort(np.arctan2(middle @ along, middle @ across))]


def frame_of(states: np.ndarray, margin: float = 0.06) -> np.ndarray:
    """The box around all states, as rows (low corner, high corner), with a margin."""
    every = states.reshape(-1, states.shape[-1])
    low, high = every.min(axis=0), every.max(axis=0)
    return np.stack([low - margin * (high - low), high + margin * (high - low)])


def token_key(plt: Any, start: str, end: str, colour: str = INK) -> list[Any]:
    """Legend entries for the two ends of a trail."""
    line = plt.Line2D
    hollow = {"markerfacecolor": "white", "markeredgecolor": REST}
    return [
        line([], [], ls="", marker="o", ms=3.5, label=start, **hollow),
        line([], [], ls="", marker="o", ms=4.5, color=colour, label=end),
    ]
