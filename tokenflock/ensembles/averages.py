"""Averages over the samples of a run, with their standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import require
from ..trajectory import Trajectory

if TYPE_CHECKING:
    import xarray as xr


def mean_and_error(
    run: Trajectory, name: str, over: str = "sample"
) -> tuple[xr.DataArray, xr.DataArray]:
    """The mean of run[name] over an axis of independent members, and the standard error of that mean.

    The error is s/sqrt(m) with s^2 = sum (x_i - mean)^2/(m - 1), and 0 of a single member. NaN where a
    member has no value: a mean over those that got there would be another quantity.
    """
    import xarray as xr

    values, dims = run.array(name), run.axes[name]
    require(over in dims, f"{name} has the axes {', '.join(dims)}, and no {over!r} to average over")
    # Where the numbers are: of an ensemble on a GPU only the averages come to the host.
    library = jnp if isinstance(values, jax.Array) else np
    axis = dims.index(over)
    members = np.shape(values)[axis]
    mean = library.mean(values, axis=axis)
    error = library.std(values, axis=axis, ddof=min(1, members - 1)) / np.sqrt(members)
    left = [dim for dim in dims if dim != over]
    coords = {dim: run.coords[dim] for dim in left if dim in run.coords}

    def labelled(found: object, label: str) -> xr.DataArray:
        return xr.DataArray(np.asarray(found), dims=left, coords=coords, name=label)

    return labelled(mean, name), labelled(error, f"{name}_error")
