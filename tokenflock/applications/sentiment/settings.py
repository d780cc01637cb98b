"""What a training is defined by: the sizes of the network, of the texts and of the optimisation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from ...errors import InputError, require

WHOLE = {
    "d": "the dimension of a word",
    "depth": "the number of layers",
    "epochs": "the number of passes over the training reviews",
    "batch": "the number of reviews in a step",
    "length": "the number of words kept of a review",
    "vocabulary": "the number of words known",
}
# A row of numbers is kept per epoch; the paper's trainings have a hundred and one.
MOST_EPOCHS = 100_000
POSITIVE = {"tau": "the temperature of the softmax", "rate": "the learning rate"}
SHARES = {"validation": "the share of reviews for validation", "test": "the share for testing"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything but the texts; the same settings, texts and seed give the same numbers.

    The defaults are those of 2407.01602 (depth 8, tau = 1e-3, batches of 64 reviews of 128 words) but for a
    learning rate ten times larger, so that a few epochs do what a hundred did.
    """

    d: int = 2
    depth: int = 8
    epochs: int = 8
    batch: int = 64
    tau: float = 1e-3
    rate: float = 1e-2
    length: int = 128
    vocabulary: int = 20_000
    validation: float = 0.1
    test: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, meaning in WHOLE.items():
            value = self._whole(name, meaning)
            require(value >= 1, f"{name}, {meaning}, must be at least 1; got {value}")
        require(
            self.epochs <= MOST_EPOCHS,
            f"epochs, {WHOLE['epochs']}, must be at most {MOST_EPOCHS:,}; got {self.epochs:,}",
        )
        for name, meaning in POSITIVE.items():
            value = self._number(name, meaning)
            require(0 < value < math.inf, f"{name}, {meaning}, must be positive; got {value:g}")
        for name, meaning in SHARES.items():
            value = self._number(name, meaning)
            require(0 < value < 1, f"{name}, {meaning}, must lie between 0 and 1; got {value:g}")
        require(
            self.validation + self.test < 1,
            f"validation and test take {self.validation + self.test:g} of the reviews, which leaves none to "
            "train with; lower one of them",
        )
        seed = self._whole("seed", "the seed of split, start and order")
        require(seed >= 0, f"the seed must not be negative; got {seed}")

    def _whole(self, name: str, meaning: str) -> int:
        """A whole number as a plain int, which JSON can hold; 2.0 is no whole number here."""
        value = getattr(self, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        require(whole, f"{name}, {meaning}, must be a whole number, such as 2; got {value!r}")
        object.__setattr__(self, name, int(value))
        return int(value)

    def _number(self, name: str, meaning: str) -> float:
        """A real number as a plain float."""
        value = getattr(self, name)
        real = isinstance(value, Real) and not isinstance(value, bool)
        require(real, f"{name}, {meaning}, must be a number; got {value!r}")
        object.__setattr__(self, name, float(value))
        return float(value)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)


def resolve(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Settings from a start's own defaults and from what a user has said (None: nothing)."""
    said = {name: value for name, value in given.items() if value is not None}
    return Settings(**{**defaults, **said})


def resume_with(stored: Settings, given: Mapping[str, Any], place: object) -> Settings:
    """The stored settings, unless the user asks for others."""
    for name, value in given.items():
        if value is not None and value != getattr(stored, name):
            raise InputError(
                f"the training in {place} has {name} = {getattr(stored, name)}, not {value}; resume it "
                f"without --{name}, or start another one in a new --out"
            )
    return stored
