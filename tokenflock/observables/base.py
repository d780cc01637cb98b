"""What an observable is: a named pure function of a snapshot, with units and labelled axes.

The same value is computed during a solve (so states need not be stored) and from stored states
(`run.observe`); it is written for one snapshot and vectorised over time and batch by the caller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..density import HeldDensity
from ..dynamics import Dynamics
from ..errors import InputError
from ..measure import Measure
from ..reduce import Reduction

FACTORY_SAYS_SO = (
    "a function that makes an observable from parameters says so, for example "
    "def above(level: float) -> Observable"
)


class Snapshot(eqx.Module):
    """Everything an observable may look at: time, tokens or a density, the model that moves them."""

    t: Array
    here: Measure | HeldDensity
    model: Dynamics
    reduction: Reduction

    def now(self) -> Snapshot:
        """With the numbers that the model has at this time, where they change."""
        model = self.model.now(self.t)
        return self if model is self.model else dataclasses.replace(self, model=model)

    @property
    def measure(self) -> Measure:
        """The tokens, or points and weights with the same integrals as the density."""
        return self.here.as_measure()


class Observable(eqx.Module):
    """`compute(snapshot, **parameters, **data)` with the name, units and axes of its value.

    `parameters` are plain values (they select a compiled program), `data` are arrays. `axes` names
    the dimensions of the value; `coords` labels them. The axis "token" has the size n. Left out, axes are
    found from the value (`settle`). A plain function of a snapshot is accepted wherever this is. `notes`
    says what the parameters come to on given tokens, to be written beside the values.
    """

    name: str = eqx.field(static=True)
    units: str = eqx.field(static=True)
    compute: Callable[..., Array] = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())
    parameters: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())
    labels: tuple[tuple[str, tuple[float | int, ...]], ...] = eqx.field(static=True, default=())
    data: dict[str, Array] = eqx.field(default_factory=dict)
    says: str = eqx.field(static=True, default="")
    notes: Callable[..., dict[str, Any]] | None = eqx.field(static=True, default=None)
    # The name it was made with, if it goes under another one.
    made_as: str = eqx.field(static=True, default="")
    # The registered function that made it from parameters.
    maker: Callable[..., Any] | None = eqx.field(static=True, default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        """The value at one snapshot."""
        value = self._value(snapshot)
        if isinstance(value, Observable):
            raise InputError(f"{self.name!r} gave an observable and no numbers; {FACTORY_SAYS_SO}")
        try:
            return jnp.asarray(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the observable {self.name!r} must give one array of numbers, and gave "
                f"{type(value).__name__}; give several values as several observables"
            ) from error

    def _value(self, snapshot: Snapshot) -> Any:
        """By the formula that a density has for it, or from points and weights, at the numbers in force."""
        snapshot = snapshot.now()
        own = snapshot.here.functional(self.quantity) if self.is_ours else None
        if own is not None:
            return own(snapshot.model, snapshot.t, **dict(self.parameters))
        return self.compute(snapshot, **dict(self.parameters), **self.data)

    @property
    def is_ours(self) -> bool:
        """Whether it is the library's own: a user's function of the same name is another quantity."""
        return str(getattr(self.compute, "__module__", "")).startswith("tokenflock.")

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

    def attributes_on(self, measure: Measure) -> dict[str, Any]:
        """The attributes, with what the parameters come to on these tokens."""
        more = {} if self.notes is None else self.notes(measure, **dict(self.parameters))
        return {**self.attributes, **more}
