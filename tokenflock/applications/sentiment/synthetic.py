"""Made-up reviews whose truth is known: a majority of polar words among neutral ones."""

from __future__ import annotations

import itertools

import numpy as np

from .reviews import Reviews, make_reviews

_POSITIVE = (
    "wonderful superb brilliant moving charming delightful gripping masterful touching excellent "
    "hilarious stunning clever graceful perfect inspired elegant radiant joyful unforgettable"
)
POSITIVE = tuple(_POSITIVE.split())
_NEGATIVE = (
    "awful dreadful boring clumsy tedious pointless lifeless wooden ridiculous terrible annoying "
    "shallow messy dull unwatchable insulting bland forgettable hollow painful"
)
NEGATIVE = tuple(_NEGATIVE.split())
WORDS = 32
FEWEST, MOST = 3, 7
FLIPPED = 0.2


def neutral_words() -> tuple[str, ...]:
    """160 words that mean nothing: barafo, barago, ..."""
    parts = itertools.product(("ba", "de", "ki", "lo", "mu"), ("ra", "ne", "si", "to"), "fghklmnp")
    return tuple(f"{first}{second}{last}o" for first, second, last in parts)


def synthetic_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Reviews of 32 words as (text, label).

    A review has a mood, 3 to 7 polar words in random places of which each contradicts the mood with
    probability 1/5, and neutral words elsewhere. Its label is what most of its polar words say; a tie
    loses its last polar word, so that counting decides every review.
    """
    rng = np.random.default_rng(seed)
    neutral = neutral_words()
    pairs = []
    for _ in range(count):
        mood = rng.choice((-1, 1))
        signs = mood * np.where(rng.random(rng.integers(FEWEST, MOST + 1)) < FLIPPED, -1, 1)
        signs = signs if signs.sum() else signs[:-1]
        polar = [rng.choice(POSITIVE if sign > 0 else NEGATIVE) for sign in signs]
        words = np.array([*polar, *rng.choice(neutral, WORDS - len(polar))])
        label = "positive" if signs.sum() > 0 else "negative"
        pairs.append((" ".join(rng.permutation(words)), label))
    return pairs


def synthetic_reviews(count: int = 6000, seed: int = 0) -> Reviews:
    """The synthetic reviews as data to train with."""
    return make_reviews(synthetic_pairs(count, seed), "the synthetic generator")
