"""Schedules: anything of a model that changes with depth, and draws that are renewed layer by layer.

A schedule has `.at(t)`, `.jumps(t1)` and `.for_sample(index)`. `weights.HeadSchedule` gives the matrices
of attention heads, `neurons.Neurons` and `neurons.RandomNeurons` the weights of a perceptron; a constant
is the schedule that returns itself.
"""

from __future__ import annotations

import abc
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from .errors import require
from .runtime import Scalar

Per = Literal["run", "sample"]
# Each redraw is a time that the solver must not step over.
MOST_REDRAWS = 1_000_000


class Schedule(eqx.Module):
    """A value as a function of time."""

    @abc.abstractmethod
    def at(self, t: Scalar) -> Any:
        """The value in force at time t."""

    def jumps(self, t1: float) -> list[float]:
        """Times in (0, t1) where the value is discontinuous, for the step-size controller."""
        return []

    def for_sample(self, index: Array) -> Schedule:
        """The schedule met by one sample of a batch."""
        return self


def check_draws(period: float | None, per: str) -> None:
    """Refuse settings that no random schedule has."""
    require(per in ("run", "sample"), f"per must be 'run' or 'sample', got {per!r}")
    require(period is None or period > 0, f"period must be positive, got {period}")


def layer_key(key: Array, period: float | None, t: Scalar) -> Array:
    """The key of the layer [m period, (m+1) period) that t lies in; the key itself without a period."""
    if period is None:
        return key
    # Compared with m * period itself, the number `switches` gives the step-size controller: a step
    # that ends just before a switch must not see the draw after it.
    nearest = jnp.round(jnp.asarray(t) / period)
    layer = jnp.where(t < nearest * period, nearest - 1, nearest).astype(jnp.int32)
    return jr.fold_in(key, layer)


def switches(period: float | None, t1: float) -> list[float]:
    """The times in (0, t1) where something is drawn anew."""
    if period is None:
        return []
    require(
        t1 / period <= MOST_REDRAWS,
        f"period = {period} redraws the weights {t1 / period:.3g} times up to t1; the limit is "
        f"{MOST_REDRAWS}",
    )
    return [float(m * period) for m in range(1, int(np.ceil(t1 / period)))]
