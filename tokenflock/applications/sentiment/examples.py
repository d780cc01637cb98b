"""Data sets that need no file, with the settings that suit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .reviews import Reviews
from .synthetic import WORDS, synthetic_reviews


@dataclass(frozen=True)
class Example:
    """Reviews that are made, and what differs from the usual settings."""

    reviews: Callable[[], Reviews]
    settings: Mapping[str, Any]


EXAMPLES = {"synthetic": Example(synthetic_reviews, {"length": WORDS, "epochs": 30})}
