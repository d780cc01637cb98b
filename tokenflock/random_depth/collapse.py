"""Depth to collapse: after how many layers the mean overlap of a random network reaches a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..errors import require
from ..measure import Measure
from ..space import Sphere
from ..starts import equiangular, uniform
from ..trajectory import Trajectory
from .chains import diffusive_time, layers_of, random_chains
from .laws import AmongTokens, HeadLaw, Normal, ProductScores, Values

if TYPE_CHECKING:
    import xarray as xr

LOOKS = 200


def depth_to_collapse(
    d: Sequence[int],
    n: Sequence[int],
    beta: Sequence[float],
    heads: Sequence[int] = (1,),
    step: Sequence[float] = (0.1,),
    *,
    level: float = 0.9,
    chains: int = 64,
    longest: float = 10.0,
    seed: int = 0,
    report: Callable[[float], None] = lambda done: None,
) -> xr.Dataset:
    """Median depth at which the mean overlap |mean|^2 reaches `level`, for all combinations.

    Gaussian heads with sigma_V^2 = sigma_A^2 = 1/d, tokens orthogonal (or uniform where n > d), depth up to
    `longest` H/eta^2 layers seen at up to 200 looks. `layers` and `tau` = (eta^2/H) layers with the
    half-width of a 95 % interval of the median (`tau_error`, from order statistics; inf where its upper end
    has not arrived); NaN where half the chains or more have not arrived, and `arrived` is the share that has.
    """
    import xarray as xr

    require(0 < level < 1, f"the level must lie in (0, 1), got {level}")
    require(0 < longest < np.inf, f"the longest time tau must be positive, got {longest}")
    require(all(one > 0 for one in step), f"the steps eta must be positive, got {list(step)}")
    require(chains >= 8, f"a median with an interval needs at least 8 chains, got {chains}")
    axes = {
        "d": list(d),
        "n": list(n),
        "beta": list(beta),
        "heads": list(heads),
        "step": list(step),
    }
    cells = list(product(d, n, beta, heads, step))
    found = np.full((len(cells), 4), np.nan)
    for index, (d_, n_, beta_, heads_, step_) in enumerate(cells):
        law, x0 = _gaussian_heads(d_, beta_), _start(n_, d_, seed)
        # Always as many looks, which compile once; those beyond the longest time are not counted.
        every = int(np.ceil(longest * heads_ / step_**2 / LOOKS))
        run = random_chains(
            law, x0, LOOKS * every, step_, heads=heads_, chains=chains, seed=seed, every=every
        )
        found[index] = _arrival(run, longest, level)
        report((index + 1) / len(cells))
    shape = [len(values) for values in axes.values()]
    names = ("layers", "tau", "tau_error", "arrived")
    data = {
        name: (tuple(axes), column.reshape(shape))
        for name, column in zip(names, found.T, strict=True)
    }
    return xr.Dataset(
        data, axes, {"level": level, "chains": chains, "longest": longest, "seed": seed}
    )


def _gaussian_heads(d: int, beta: float) -> HeadLaw:
    """Gaussian heads that draw their scores at every beta: one program for all of them."""
    return HeadLaw(Values(d**-0.5, entries=Normal()), ProductScores(d**-0.5), AmongTokens(beta))


def _start(n: int, d: int, seed: int) -> Measure:
    return equiangular(Sphere(d), n, 0.0) if n <= d else uniform(Sphere(d), n, seed)


def _arrival(run: Trajectory, longest: float, level: float) -> tuple[float, float, float, float]:
    """Median layer and tau of the first look at or above the level, its half interval, the share there."""
    tau = diffusive_time(run)
    reached = (run.array("mean_overlap") >= level) & (tau <= longest * (1 + 1e-9))
    arrived = reached.any(axis=1)
    first = np.where(arrived, tau[reached.argmax(axis=1)], np.inf)
    low, middle, high = np.sort(first)[_median_ranks(first.size)]
    if not np.isfinite(middle):
        return np.nan, np.nan, np.nan, float(arrived.mean())
    look = float(tau[1])
    layers = round(middle / look) * int(layers_of(run)[1])
    return float(layers), float(middle), float(max(high - low, look) / 2), float(arrived.mean())


def _median_ranks(count: int) -> list[int]:
    """Ranks of the median and of a 95 % interval for it: count/2 +- 0.98 sqrt(count)."""
    reach = int(np.ceil(0.98 * np.sqrt(count)))
    middle = count // 2
    return [max(0, middle - reach), middle, min(count - 1, middle + reach)]
