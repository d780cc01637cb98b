"""Schedules: anything of a model that changes with depth, and draws that are renewed layer by layer.

A schedule has `.at(t)`, `.jumps(t1)` and `.for_sample(index)`. It stands in the place of the matrices of
attention heads (`weights.HeadSchedule`), of the weights of a perceptron (`neurons.NeuronSchedule`), or of a
number (beta, a temperature, a matrix of a drift). A constant is the schedule that returns itself.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .errors import require
from .runtime import ArrayLike, Scalar, as_array, is_traced, known

Per = Literal["run", "sample"]
# A number of a model, or an array: as it is, or a schedule of such where it changes with depth.
Quantity = Any
# Each redraw is a time that the solver must not step over.
MOST_REDRAWS = 1_000_000


class Schedule(eqx.Module):
    """A value as a function of time."""

    # Its numbers that are times at which the value switches: fixed steps have no derivatives by them.
    switching: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def at(self, t: Scalar) -> Any:
        """The value in force at time t."""

    @property
    def is_fixed(self) -> bool:
        """Whether the value is the same at all times and for all samples, `at(0.0)`."""
        return False

    def jumps(self, t1: float) -> list[Any]:
        """Times in (0, t1) where the value is discontinuous, for the step-size controller.

        Traced times are among them whatever they are: `save.filled_jumps` leaves out those beyond t1.
        """
        return []

    def for_sample(self, index: Array) -> Schedule:
        """The schedule met by one sample of a batch."""
        return self


class Piecewise(Schedule):
    """Constant on pieces: values[m] on [times[m-1], times[m]), the last one for ever.

    `times` are the len(values) - 1 switching times, increasing and positive; values are numbers or arrays
    of one shape, `Weights`, or `Neurons`. Both may be traced: adaptive steps end at the switches, so that
    derivatives by a switching time are those of the flow. Fixed steps do not see by how much a switch moves:
    with them a derivative by a switching time is refused.
    """

    times: Float[Array, " switches"]
    stacked: Any
    switching: ClassVar[tuple[str, ...]] = ("times",)

    @known()
    def __init__(self, times: ArrayLike, values: Sequence[Any]):
        self.times = as_array(times)
        count = self.times.size
        require(
            self.times.ndim == 1,
            f"switching times must be one vector of numbers, got shape {self.times.shape}; for a batch of "
            "schedules use jax.vmap over a function of the times that makes the model and solves it",
        )
        require(
            len(values) == count + 1,
            f"{count} switching times need {count + 1} values, got {len(values)}",
        )
        if not is_traced(self.times):
            moments = np.asarray(self.times)
            require(
                bool(np.all(np.diff(moments, prepend=0.0) > 0)),
                f"switching times must be positive and increasing, got {moments.tolist()}",
            )
        pieces = [value if isinstance(value, Schedule) else as_array(value) for value in values]
        shapes = {jax.tree.structure(piece) for piece in pieces} | {
            tuple(leaf.shape for leaf in jax.tree.leaves(piece)) for piece in pieces
        }
        require(len(shapes) == 2, "all pieces must give the same arrays with the same shapes")
        self.stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *pieces)

    def at(self, t: Scalar) -> Any:
        return self.piece(jnp.searchsorted(self.times, t, side="right"))

    def piece(self, index: Any) -> Any:
        """The value between two switches."""
        return jax.tree.map(lambda leaf: leaf[index], self.stacked)

    def jumps(self, t1: float) -> list[Any]:
        if is_traced(self.times):
            return list(self.times)
        return [float(t) for t in self.times if t < t1]

    @property
    def pieces(self) -> list[Any]:
        """All values, one by one."""
        return [self.piece(index) for index in range(self.times.size + 1)]

    @property
    def is_number(self) -> bool:
        """Whether it stands for a number or an array, not for weights."""
        return not isinstance(self.stacked, Schedule)


def now(tree: Any, t: Scalar) -> Any:
    """A model, or a part of one, with the numbers in force at time t; schedules of weights stay."""
    nodes = jax.tree.leaves(tree, is_leaf=_is_schedule)
    if not any(_is_number(node) for node in nodes):
        return tree
    return jax.tree.map(
        lambda node: node.at(t) if _is_number(node) else node, tree, is_leaf=_is_schedule
    )


def is_fixed(tree: Any) -> bool:
    """Whether nothing in a model, or in a part of one, changes with time or from sample to sample."""
    nodes = jax.tree.leaves(tree, is_leaf=_is_schedule)
    return all(node.is_fixed for node in nodes if _is_schedule(node))


def jumps_in(tree: Any, t1: float) -> list[Any]:
    """The jumps of all schedules in a model or a part of one."""
    nodes = jax.tree.leaves(tree, is_leaf=_is_schedule)
    return [time for node in nodes if _is_schedule(node) for time in node.jumps(t1)]


def _is_schedule(node: Any) -> bool:
    return isinstance(node, Schedule)


def _is_number(node: Any) -> bool:
    return isinstance(node, Piecewise) and node.is_number


def as_number(value: Any, convert: Any = as_array) -> Any:
    """A number of a model through `convert`, which may refuse it; a schedule stays, its pieces are tried."""
    if not isinstance(value, Schedule):
        return convert(value)
    for piece in values_of(value):
        convert(piece)
    return value


def values_of(value: Any) -> list[Any]:
    """All values that a number of a model takes."""
    return value.pieces if isinstance(value, Piecewise) else [value]


def check_draws(period: float | None, per: str) -> None:
    """Refuse settings that no random schedule has."""
    require(per in ("run", "sample"), f"per must be 'run' or 'sample', got {per!r}")
    require(period is None or period > 0, f"period must be positive, got {period}")


def layer_key(key: Array, period: Scalar | None, t: Scalar) -> Array:
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
