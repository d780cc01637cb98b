"""What an observable is: a named pure function of a snapshot, with units and labelled axes.

The same value is computed during a solve (so states need not be stored) and from stored states
(`run.observe`); it is written for one snapshot and vectorised over time and batch by the caller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from ..dynamics import Dynamics
from ..measure import Measure
from ..reduce import Reduction


class Snapshot(eqx.Module):
    """Everything an observable may look at: time, tokens, the model that moves them."""

    t: Array
    measure: Measure
    model: Dynamics
    reduction: Reduction


class Observable(eqx.Module):
    """`compute(snapshot, **parameters, **data)` with the name, units and axes of its value.

    `parameters` are plain numbers (they select a compiled program), `data` are arrays. `axes` names
    the dimensions of the value; `coords` labels them. The axis "token" has the size n.
    """

    name: str = eqx.field(static=True)
    units: str = eqx.field(static=True)
    compute: Callable[..., Array] = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())
    parameters: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())
    labels: tuple[tuple[str, tuple[float, ...]], ...] = eqx.field(static=True, default=())
    data: dict[str, Array] = eqx.field(default_factory=dict)
    says: str = eqx.field(static=True, default="")
    # The name it was made with, if it goes under another one.
    made_as: str = eqx.field(static=True, default="")

    def __call__(self, snapshot: Snapshot) -> Array:
        """The value at one snapshot."""
        return self.compute(snapshot, **dict(self.parameters), **self.data)

    def named(self, name: str) -> Observable:
        """The same observable under another name, to keep two of one sort in one run."""
        return dataclasses.replace(self, name=name, made_as=self.quantity)

    @property
    def quantity(self) -> str:
        """What is observed, whatever name it goes under here."""
        return self.made_as or self.name

    @property
    def coords(self) -> dict[str, np.ndarray]:
        """Coordinate values of the axes that have them."""
        return {axis: np.asarray(values) for axis, values in self.labels}

    @property
    def attributes(self) -> dict[str, Any]:
        """What is written beside the values: units, meaning, parameters."""
        return {"units": self.units, "long_name": self.says, **dict(self.parameters)}
