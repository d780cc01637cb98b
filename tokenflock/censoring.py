"""Stop times of a batch, some of which are not known: who reached t1 first has a later one.

Of a sample that stopped the time is known. Of one that reached t1, or broke off, only that its stop
comes later: it is censored (from the right) at the time it reached. Means of the reached times are
then too small; the quantiles of the product-limit estimate are not (Kaplan and Meier, J. Amer. Statist.
Assoc. 53, 457-481, 1958).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .errors import InputError, require
from .outcomes import GOOD
from .runtime import ArrayLike

if TYPE_CHECKING:
    import xarray as xr

    from .trajectory import Trajectory


def stop_quantiles(times: np.ndarray, stopped: np.ndarray, levels: ArrayLike) -> np.ndarray:
    """Quantiles of the stop times of one group: the first t with S(t) <= 1 - q, infinite if there is none.

    S(t) = prod_{t_i <= t} (1 - d_i/n_i) over the times of stops: d_i stop at t_i, of n_i still on
    their way.
    """
    from scipy.stats import CensoredData, ecdf

    shares = np.asarray(levels, dtype=float)
    if not np.any(stopped):
        return np.full(shares.size, np.inf)
    curve = ecdf(CensoredData.right_censored(times, ~stopped)).sf
    # A product of ratios is 0.5 only up to rounding.
    reached = curve.probabilities[None] <= 1 - shares[:, None] + 1e-12
    first = np.argmax(reached, axis=1)
    return np.where(reached.any(axis=1), curve.quantiles[first], np.inf)


def stop_summary(
    run: Trajectory, over: Sequence[str] | None, quantiles: Sequence[float]
) -> xr.Dataset:
    """How many stopped, are censored, or broke off, and quantiles of their stop times."""
    import xarray as xr

    over = _counted_axes(run) if over is None else _known_axes(run, over)
    levels = np.asarray(quantiles, dtype=float).ravel()
    require(
        levels.size > 0 and bool(np.all((levels > 0) & (levels < 1))),
        f"quantiles lie between 0 and 1, got {list(quantiles)}",
    )
    kept = tuple(axis for axis in run.batch_axes if axis not in over)
    times = _grouped(run, np.asarray(run.arrays["final_time"], dtype=float), kept)
    names = _grouped(run, np.asarray(run.outcomes.values).astype(str), kept)
    stopped = names == "stopped"
    shape = tuple(len(run.coords[axis]) for axis in kept)
    found = [stop_quantiles(t, s, levels) for t, s in zip(times, stopped, strict=True)]

    def count(which: np.ndarray, says: str) -> tuple:
        return kept, which.sum(axis=1).reshape(shape), {"long_name": says, "units": "1"}

    says = "time by which this share had stopped (Kaplan-Meier); infinite: later than t1"
    return xr.Dataset(
        {
            "stopped": count(stopped, "met their stop"),
            "censored": count(names == "finished", "reached t1 without a stop"),
            "failed": count(~np.isin(names, GOOD), "broke off before"),
            "stop_time": (
                (*kept, "quantile"),
                np.reshape(found, (*shape, levels.size)),
                {"long_name": says, "units": "time"},
            ),
        },
        coords={**{axis: run.coords[axis] for axis in kept}, "quantile": levels},
    )


def _counted_axes(run: Trajectory) -> tuple[str, ...]:
    """Samples are draws of one thing; betas are different things."""
    return tuple(axis for axis in run.batch_axes if axis != "beta")


def _known_axes(run: Trajectory, over: Sequence[str]) -> tuple[str, ...]:
    names = (over,) if isinstance(over, str) else tuple(over)
    for name in names:
        if name not in run.batch_axes:
            raise InputError(
                f"this run has no batch axis {name!r}; over takes some of "
                f"({', '.join(run.batch_axes) or 'none: it is a single run'})"
            )
    return names


def _grouped(run: Trajectory, values: np.ndarray, kept: tuple[str, ...]) -> np.ndarray:
    """One row for each entry of the kept axes."""
    order = [run.batch_axes.index(axis) for axis in kept]
    rest = [index for index in range(values.ndim) if index not in order]
    groups = int(np.prod([values.shape[index] for index in order], dtype=int))
    return np.transpose(values, (*order, *rest)).reshape(groups, -1)
