"""Pictures of Gaussian measures on R^d: ellipses in the plane, mean and spread over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trajectory import Trajectory
from .style import INK, PALETTE
from .views import saved_states


def draw_gaussian(plt: Any, run: Trajectory, kind: str, sample: Any) -> Any:
    """Ellipses of one standard deviation at three times, and the spread along the principal axes."""
    times, means, covariances = _moments(run, sample)
    if kind == "series" or means.shape[-1] == 1:
        figure, axes = plt.subplots(figsize=(4.6, 2.8), layout="constrained")
        _spread(axes, times, means, covariances)
        return figure
    if kind == "density":
        figure, axes = plt.subplots(figsize=(3.4, 3.2), layout="constrained")
        _ellipses(axes, times, means, covariances)
        return figure
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.1), layout="constrained")
    _ellipses(left, times, means, covariances)
    _spread(right, times, means, covariances)
    label, d = run.attributes["label"], means.shape[-1]
    figure.suptitle(f"{label}, a Gaussian measure on R^{d}", fontsize=9, color=INK)
    return figure


def _moments(run: Trajectory, sample: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, means (time, d) and covariances (time, d, d); only the ends if states were not kept."""
    times, states = saved_states(run, sample)
    return times, states[:, 0], states[:, 1:]


def _ellipses(axes: Any, times: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> None:
    """{m + S^{1/2} e : |e| = 1} in the first two coordinates."""
    turn = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    rows = sorted({0, len(times) // 2, len(times) - 1})
    for index, row in enumerate(rows):
        values, vectors = np.linalg.eigh(covariances[row][:2, :2])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        x, y = means[row][:2, None] + root @ circle
        colour = PALETTE[index % len(PALETTE)]
        axes.plot(x, y, color=colour, lw=1.3, label=f"t = {times[row]:.4g}")
        axes.plot(*means[row][:2], "+", color=colour, ms=6)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="$x_1$", ylabel="$x_2$")
    axes.legend(fontsize=7)


def _spread(axes: Any, times: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> None:
    deviations = np.sqrt(np.maximum(np.linalg.eigvalsh(covariances), 0.0))[:, ::-1]
    for index in range(deviations.shape[-1]):
        axes.plot(
            times,
            deviations[:, index],
            color=PALETTE[0],
            lw=1.3,
            alpha=1 - 0.7 * index / deviations.shape[-1],
            label="standard deviations" if index == 0 else None,
        )
    axes.plot(times, np.linalg.norm(means, axis=-1), color=PALETTE[1], lw=1.3, label="|mean|")
    axes.set(xlabel="time t", ylabel="length")
    axes.legend(fontsize=7)
