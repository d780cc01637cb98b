"""Pictures of tokens: on the sphere, on the circle, in the plane. Each view can be updated in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..schedule import values_of
from ..space import Sphere
from ..trajectory import Trajectory
from .style import FAINT, PALETTE, REST

# Direction from which the sphere is seen: azimuth and elevation in degrees.
VIEWPOINT = (35.0, 20.0)


def camera(azimuth: float, elevation: float) -> np.ndarray:
    """Rows: right, up, towards the viewer."""
    a, e = np.radians([azimuth, elevation])
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def principal_axes(states: np.ndarray, count: int) -> np.ndarray:
    """The `count` directions that carry most of the tokens' second moment (rows)."""
    flat = states.reshape(-1, states.shape[-1])
    _, vectors = np.linalg.eigh(flat.T @ flat)
    return vectors[:, ::-1][:, :count].T


def cluster_colours(labels: np.ndarray) -> np.ndarray:
    """A colour per token: the palette for the largest clusters, grey for the rest and for singles."""
    names, counts = np.unique(labels, return_counts=True)
    order = names[np.argsort(-counts, kind="stable")]
    sizes = dict(zip(names.tolist(), counts.tolist(), strict=True))
    rank = {name: index for index, name in enumerate(order.tolist())}
    return np.array(
        [
            PALETTE[rank[label]] if rank[label] < len(PALETTE) and sizes[label] > 1 else REST
            for label in labels.tolist()
        ]
    )


class SphereView:
    """Orthographic view of S^2, or of the top three principal axes for d > 3."""

    def __init__(self, axes: Any, states: np.ndarray, colours: np.ndarray):
        self.basis = np.eye(3) if states.shape[-1] == 3 else principal_axes(states, 3)
        self.camera = camera(*VIEWPOINT)
        self.colours = colours
        self.axes = axes
        self._globe()
        if states.shape[-1] > 3:
            axes.set_xlabel("3 principal axes", fontsize=7)
        self.dots = axes.scatter([], [], s=26, linewidths=0.4, edgecolors="white", zorder=3)

    def _globe(self) -> None:
        turn = np.linspace(0, 2 * np.pi, 181)
        self.axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.9)
        for level in np.radians([-60, -30, 0, 30, 60]):
            ring = np.stack(
                [
                    np.cos(level) * np.cos(turn),
                    np.cos(level) * np.sin(turn),
                    np.full_like(turn, np.sin(level)),
                ]
            )
            self._front(ring)
        for meridian in np.radians(np.arange(0, 180, 30)):
            ring = np.stack(
                [np.cos(turn) * np.cos(meridian), np.cos(turn) * np.sin(meridian), np.sin(turn)]
            )
            self._front(ring)
        self.axes.set_aspect("equal")
        self.axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), xticks=[], yticks=[])
        for side in self.axes.spines.values():
            side.set_visible(False)

    def _front(self, ring: np.ndarray) -> None:
        across, up, depth = self.camera @ ring
        hidden = depth < 0
        self.axes.plot(
            np.where(hidden, np.nan, across), np.where(hidden, np.nan, up), color=FAINT, lw=0.35
        )

    def show(self, points: np.ndarray) -> list[Any]:
        """Move the dots; those behind the sphere are fainter and smaller."""
        across, up, depth = self.camera @ (points @ self.basis.T).T
        order = np.argsort(depth)
        self.dots.set_offsets(np.stack([across, up], axis=-1)[order])
        self.dots.set_facecolors(self.colours[order])
        self.dots.set_alpha(np.where(depth[order] < 0, 0.35, 0.95))
        self.dots.set_sizes(np.where(depth[order] < 0, 16.0, 28.0))
        return [self.dots]


class CircleView:
    """Tokens on the circle, pushed outwards where several overlap."""

    def __init__(self, axes: Any, states: np.ndarray, colours: np.ndarray):
        turn = np.linspace(0, 2 * np.pi, 361)
        axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.9)
        axes.set_aspect("equal")
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[], yticks=[])
        for side in axes.spines.values():
            side.set_visible(False)
        self.dots = axes.scatter([], [], s=20, linewidths=0.3, edgecolors="white", zorder=3)
        self.colours = colours

    def show(self, points: np.ndarray) -> list[Any]:
        """Move the dots, stacking coincident tokens radially."""
        angle = np.arctan2(points[:, 1], points[:, 0])
        bins = np.round(angle / 0.05).astype(int)
        height = np.zeros(len(angle))
        for name in np.unique(bins):
            inside = np.flatnonzero(bins == name)
            height[inside] = np.minimum(np.arange(len(inside)) * 0.035, 0.42)
        radius = 1.0 + height
        self.dots.set_offsets(np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1))
        self.dots.set_facecolors(self.colours)
        return [self.dots]


class PlaneView:
    """Tokens of R^d in the plane of the first two coordinates, or principal axes for d > 2."""

    def __init__(self, axes: Any, states: np.ndarray, colours: np.ndarray):
        d = states.shape[-1]
        self.basis = np.eye(d)[:2] if d <= 2 else principal_axes(states, 2)
        seen = states.reshape(-1, d) @ self.basis.T
        seen = seen if d > 1 else np.concatenate([seen, np.zeros_like(seen)], axis=-1)
        low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
        middle, half = (low + high) / 2, 0.55 * max(float(np.max(high - low)), 1e-9)
        axes.set(
            xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half)
        )
        axes.set_aspect("equal")
        axes.set_xlabel("coordinate 1" if d <= 2 else "principal axis 1")
        axes.set_ylabel("coordinate 2" if d <= 2 else "principal axis 2")
        self.dots = axes.scatter([], [], s=20, linewidths=0.3, edgecolors="white", zorder=3)
        self.colours = colours

    def show(self, points: np.ndarray) -> list[Any]:
        """Move the dots."""
        seen = points @ self.basis.T
        flat = seen if seen.shape[-1] == 2 else np.concatenate([seen, np.zeros_like(seen)], -1)
        self.dots.set_offsets(flat)
        self.dots.set_facecolors(self.colours)
        return [self.dots]


def view_of(run: Trajectory, axes: Any, states: np.ndarray, colours: np.ndarray) -> Any:
    """The view that fits the space of a run."""
    space = run.blank_measure.space
    if not isinstance(space, Sphere):
        return PlaneView(axes, states, colours)
    return CircleView(axes, states, colours) if space.d == 2 else SphereView(axes, states, colours)


def one_sample(run: Trajectory, name: str, sample: tuple[int, ...] | None) -> np.ndarray:
    """One member of a batch of stored arrays (the array itself if there is no batch)."""
    array, dims = np.asarray(run.arrays[name]), run.axes[name]
    # In front of the tokens at an end may stand axes of the state itself, such as those of sampled prompts.
    front = dims[: dims.index("token")] if "token" in dims and "time" not in dims else ()
    batch = [dim for dim in dims if dim in (*run.batch_axes, *front)]
    chosen = (0,) * len(batch) if sample is None else sample
    if len(chosen) < len(batch):
        raise InputError(f"sample must give an index for each of {batch}, got {sample}")
    # Tokens at t = 0 are shared by all betas, so they may have fewer batch axes.
    return array[tuple(chosen[len(chosen) - len(batch) :])]


def saved_states(run: Trajectory, sample: tuple[int, ...] | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and finite states of one member of a batch; only the two ends if states were not kept."""
    if "states" in run:
        times, states = np.asarray(run.time), one_sample(run, "states", sample)
    else:
        kind = "state" if run.is_density else "points"
        ends = [one_sample(run, f"{end}_{kind}", sample) for end in ("initial", "final")]
        times = np.array([0.0, float(one_sample(run, "final_time", sample))])
        states = np.stack(ends)
    done = np.all(np.isfinite(states.reshape(len(states), -1)), axis=-1)
    return times[done], states[done]


def rows_at(times: np.ndarray, at: list[float] | None, middle: float) -> list[int]:
    """The rows nearest to these times; without them the first, one at this share of time, and the last."""
    if at is not None:
        return [int(np.argmin(np.abs(times - t))) for t in at]
    early = int(np.searchsorted(times, middle * times[-1]))
    return sorted({0, min(early, len(times) - 1), len(times) - 1})


def quantity_text(value: Any, sample: Any) -> str:
    """A number of a model in words: of the chosen member of a batch, or from where to where it changes."""
    found = np.concatenate([np.ravel(np.asarray(piece)) for piece in values_of(value)])
    if len(values_of(value)) > 1:
        return f"{found.min():g} to {found.max():g}"
    return f"{found[(sample or (0,))[0] if found.size > 1 else 0]:g}"
