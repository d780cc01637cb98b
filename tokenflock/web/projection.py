"""Tokens of any dimension in the two or three a page can draw."""

from __future__ import annotations

import numpy as np

SHOWN = 3
# Axes are found from at most this many tokens, evenly chosen: an eigenproblem of that size is quick.
MOST_ROWS = 2_000
# Clusters: connected components at this distance in R^d; on a sphere the rule "spacing" finds an angle.
CLUSTER_DISTANCE = 0.1
# Products of coordinates that may be spent on them, about ten seconds.
MOST_PRODUCTS = 2e11


def project(points: np.ndarray, on_sphere: bool) -> tuple[np.ndarray, str | None]:
    """Points (frames, n, d) with d = 2 or 3, and how a larger d was brought there.

    The axes are the principal ones of all frames together, so that frames can be compared. On a
    sphere they are taken about its centre, so that directions stay directions, and what is projected
    is put back on the sphere; in R^d they are taken about the mean.
    """
    d = points.shape[-1]
    if d == 1:
        return np.concatenate(
            [points, np.zeros_like(points)], axis=-1
        ), "a line, drawn in the plane"
    if d <= SHOWN:
        return points, None
    flat = points.reshape(-1, d)
    flat = flat if on_sphere else flat - flat.mean(axis=0)
    shown = flat @ principal_axes(flat)
    share = float(np.sum(shown**2) / max(np.sum(flat**2), np.finfo(float).tiny))
    says = (
        f"{d} dimensions on their {SHOWN} principal axes over all frames, which hold {share:.0%} of the "
        f"{'squared length' if on_sphere else 'variance'}"
    )
    if on_sphere:
        length = np.linalg.norm(shown, axis=-1, keepdims=True)
        shown = shown / np.maximum(length, np.finfo(float).tiny)
        says += "; put back on the sphere"
    return shown.reshape(*points.shape[:-1], SHOWN), says


def principal_axes(rows: np.ndarray) -> np.ndarray:
    """The leading right singular vectors, (d, 3), with signs that do not depend on rounding."""
    chosen = rows[spread(len(rows), MOST_ROWS)]
    axes = np.linalg.svd(chosen, full_matrices=False)[2][:SHOWN]
    if len(axes) < SHOWN:
        axes = np.vstack([axes, np.zeros((SHOWN - len(axes), rows.shape[1]))])
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return (axes * np.where(largest < 0, -1.0, 1.0)).T


def clusters_of(points: np.ndarray, on_sphere: bool) -> np.ndarray | None:
    """The cluster of every token (frames, n) in its own dimension; None where that takes too long.

    Connected components at the spacing of as many uniform tokens, at CLUSTER_DISTANCE in R^d: what is far
    apart in d dimensions may lie together in a picture.
    """
    from scipy.sparse.csgraph import connected_components

    from ..theory import spacing_angle

    frames, n, d = points.shape
    if frames * n * n * d > MOST_PRODUCTS:
        return None
    reach = 2.0 * np.sin(float(spacing_angle(n, d)) / 2) if on_sphere else CLUSTER_DISTANCE
    return np.stack([connected_components(_close(frame, reach))[1] for frame in points])


def _close(frame: np.ndarray, reach: float) -> np.ndarray:
    squares = np.sum(frame**2, axis=-1)
    return squares[:, None] + squares[None, :] - 2.0 * frame @ frame.T <= reach**2


def spread(count: int, most: int) -> np.ndarray:
    """At most so many indices, evenly spread, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.round(np.linspace(0, count - 1, most)).astype(int))
