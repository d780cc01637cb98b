"""Events read off a finished run: when clusters merge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from ..errors import require


class MergeEvent(NamedTuple):
    """The number of clusters went from `from_count` to `to_count`, first seen at `time`."""

    time: float
    from_count: int
    to_count: int


def merge_events(time: ArrayLike, clusters: ArrayLike) -> list[MergeEvent]:
    """Times at which the number of clusters drops, in one run.

    `time` (T,) increases and `clusters` (T,) has one count per time. The merge happened between the
    previous saved time and the one reported: save often enough. Rises are no events.
    """
    moments, counts = np.asarray(time, dtype=float), np.asarray(clusters, dtype=int)
    require(
        counts.ndim == 1 and moments.shape == counts.shape,
        f"merge_events reads one run: time and clusters of one shape (T,), got {moments.shape} and "
        f"{counts.shape}; select one sample first",
    )
    require(bool(np.all(np.diff(moments) > 0)), "merge_events needs increasing times")
    return [
        MergeEvent(float(moments[k + 1]), int(counts[k]), int(counts[k + 1]))
        for k in np.flatnonzero(np.diff(counts) < 0)
    ]
