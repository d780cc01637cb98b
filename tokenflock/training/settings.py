"""What a training is defined by: the sizes of the network, of the texts and of the optimisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import InputError, require

WHOLE = {
    "d": "the dimension of a word",
    "depth": "the number of layers",
    "epochs": "the number of passes over the training reviews",
    "batch": "the number of reviews in a step",
    "length": "the number of words kept of a review",
    "vocabulary": "the number of words known",
}
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
            value = getattr(self, name)
            require(value >= 1, f"{name}, {meaning}, must be at least 1; got {value}")
        for name, meaning in POSITIVE.items():
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name}, {meaning}, must be positive; got {value:g}")
        for name, meaning in SHARES.items():
            value = getattr(self, name)
            require(0 < value < 1, f"{name}, {meaning}, must lie between 0 and 1; got {value:g}")
        require(
            self.validation + self.test < 1,
            f"validation and test take {self.validation + self.test:g} of the reviews, which leaves none to "
            "train with; lower one of them",
        )
        require(self.seed >= 0, f"the seed must not be negative; got {self.seed}")

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
