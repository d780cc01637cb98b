"""What a claim is: one statement of one paper as data, and a measurement that could refute it.

A claim holds parameters (`given`), the hypotheses they must satisfy (`needs`), a function that
measures a `Case` and compares it with what the statement predicts, a control (settings that break a
hypothesis and must make the comparison fail), and errata (settings that select the printed, wrong
form). Control and errata are settings of the same measurement, so `tokenflock check ID --set ...`
reaches each of them by hand. `resolves` names where the measurement, not the theorem, has its limits:
beyond them it cannot tell, and the verdict is inconclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InputError, require
from .case import Settled

if TYPE_CHECKING:
    from ..runtime import ArrayLike
    from .paper import Paper

Value = int | float | str
Settings = Mapping[str, Value]
Relation = Literal["=", "<=", ">="]
Scale = Literal["quick", "paper"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
# Names that `check` and `Case` use themselves: a parameter of this name could not be set or read.
TAKEN = frozenset({"claim_id", "scale", "seed", "values", "rtol", "atol", "refine"})


@dataclass(frozen=True)
class Comparison:
    """A measured number beside the number the statement predicts for it."""

    what: str
    measured: float
    relation: Relation
    predicted: float
    tolerance: float

    @property
    def margin(self) -> float:
        """How far the measurement lies inside (positive) or outside (negative) what is allowed."""
        excess = self.measured - self.predicted
        if self.relation == "=":
            return self.tolerance - abs(excess)
        return self.tolerance + (excess if self.relation == ">=" else -excess)

    @property
    def holds(self) -> bool:
        """Whether the measurement agrees with the prediction; NaN never does."""
        return bool(self.margin >= 0)


def equals(what: str, measured: ArrayLike, predicted: ArrayLike, tolerance: float) -> Comparison:
    """measured = predicted up to tolerance; of arrays, the entry that is farthest off."""
    values, targets = np.broadcast_arrays(np.asarray(measured, float), np.asarray(predicted, float))
    worst = _first_nan_or(np.argmax, np.abs(values - targets))
    return Comparison(what, float(values.flat[worst]), "=", float(targets.flat[worst]), tolerance)


def at_most(what: str, measured: ArrayLike, bound: ArrayLike, tolerance: float = 0.0) -> Comparison:
    """measured <= bound + tolerance; of arrays, the entry closest to breaking it."""
    values, bounds = np.broadcast_arrays(np.asarray(measured, float), np.asarray(bound, float))
    worst = _first_nan_or(np.argmax, values - bounds)
    return Comparison(what, float(values.flat[worst]), "<=", float(bounds.flat[worst]), tolerance)


def at_least(
    what: str, measured: ArrayLike, bound: ArrayLike, tolerance: float = 0.0
) -> Comparison:
    """measured >= bound - tolerance; of arrays, the entry closest to breaking it."""
    values, bounds = np.broadcast_arrays(np.asarray(measured, float), np.asarray(bound, float))
    worst = _first_nan_or(np.argmin, values - bounds)
    return Comparison(what, float(values.flat[worst]), ">=", float(bounds.flat[worst]), tolerance)


def _first_nan_or(pick: Callable[[np.ndarray], np.intp], excess: np.ndarray) -> int:
    """Index of the decisive entry; one that is not a number decides at once."""
    missing = np.isnan(excess)
    return int(np.argmax(missing) if missing.any() else pick(excess))


class Case(Settled):
    """One draw from the hypotheses: the parameters as attributes, a seed, the solver's tolerances.

    `refine` is 1, or 2 when the same case is measured again with halved tolerances: rtol and atol are
    halved already, a fixed step has to be divided by it.
    """

    def __init__(self, values: Settings, seed: int, rtol: float, atol: float, refine: int = 1):
        super().__init__(values)
        self.seed = seed
        self.rtol = rtol / refine
        self.atol = atol / refine
        self.refine = refine


Measure = Callable[[Case], Sequence[Comparison]]
Condition = Callable[[Case], bool]
Hypotheses = Mapping[str, Condition]


@dataclass(frozen=True)
class Variant:
    """The same measurement with other settings, which must fail where `when` says so, and why."""

    why: str
    settings: Settings
    when: Condition = lambda case: True


def broken(why: str, **settings: Value) -> Variant:
    """A control: settings that break a hypothesis, so that the claim must fail."""
    return Variant(why, settings)


def misprint(why: str, when: Condition = lambda case: True, **settings: Value) -> Variant:
    """An erratum: settings that select the form as printed, which is wrong at least `when` it is."""
    return Variant(why, settings, when)


@dataclass(frozen=True)
class Claim:
    """One statement of one paper version; see the module's docstring."""

    id: str
    paper: Paper
    where: str
    says: str
    given: Settings
    at_paper_scale: Settings
    options: Mapping[str, Sequence[str]]
    needs: Hypotheses
    resolves: Hypotheses
    control: Variant
    errata: tuple[Variant, ...]
    note: str
    rtol: float
    atol: float
    measure: Measure

    @property
    def asks(self) -> str:
        """The setting only a user can give, such as the path of a checkpoint; mostly none."""
        blank = (name for name, value in self.given.items() if value == "")
        return next(blank, "")

    def values(self, scale: Scale, settings: Settings = MappingProxyType({})) -> dict[str, Value]:
        """The parameters at a scale with the settings laid over them, checked and typed."""
        sized = {**self.given, **(self.at_paper_scale if scale == "paper" else {})}
        return {**sized, **{name: self._typed(name, value) for name, value in settings.items()}}

    def case(self, values: Settings, seed: int, refine: int = 1) -> Case:
        """The case of these parameters."""
        return Case(values, seed, self.rtol, self.atol, refine)

    def outside(self, values: Settings, seed: int = 0) -> list[str]:
        """The hypotheses that these parameters break."""
        return _unmet(self.needs, self.case(values, seed))

    def unresolved(self, values: Settings, seed: int = 0) -> list[str]:
        """The limits of the measurement that these parameters exceed."""
        return _unmet(self.resolves, self.case(values, seed))

    def _typed(self, name: str, value: Value) -> Value:
        if name not in self.given:
            known = ", ".join(self.given)
            raise InputError(f"{self.id} has no parameter {name!r}; it has {known}")
        default = self.given[name]
        if isinstance(default, str):
            options = self.options.get(name)
            if options is None:
                return str(value)
            require(value in options, f"{name} must be one of {', '.join(options)}, got {value!r}")
            return value
        return _number(name, value, default)


def _unmet(conditions: Hypotheses, case: Case) -> list[str]:
    return [text for text, satisfied in conditions.items() if not satisfied(case)]


def _number(name: str, value: Value, default: int | float) -> Value:
    try:
        number = float(value)
    except ValueError:
        raise InputError(f"{name} must be a number, got {value!r}") from None
    require(np.isfinite(number), f"{name} must be finite, got {value!r}")
    if isinstance(default, int):
        require(number == int(number), f"{name} must be a whole number, got {value!r}")
        require(number >= 1 or default < 1, f"{name} must be at least 1, got {value!r}")
        return int(number)
    return number
