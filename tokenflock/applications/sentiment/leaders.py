"""Which words lead, in how many reviews, and what they vote for.

A word leads at a layer if it attends only to its own place; it then stays there for ever, and what attends to
it follows. Once everybody follows, the mean of the words is the vote of the leaders, each with the share of
words that follow it, up to diam (1 + alpha)^{-layers since} (control.md 4.10): that is what can be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ...measure import Measure
from ...observables.base import Snapshot
from ...observables.hardmax import SAME_LEADER, leader_mask
from ...observables.pairs import squared_chords
from ...reduce import Dense
from .classifier import Classifier, all_layers, hard, network, review
from .texts import PAD

TOGETHER = 100


class Following(NamedTuple):
    """Who leads whom in one review (or, with a first axis, in many).

    `leader` marks one word per place held by leaders after the last layer, the one that led first; `born`
    is the layer it began to lead at; `follows` is the leader at the end of every word's chain of attention;
    `sentiment` is <v, z> + b of the words after the last layer; `logit` the network's and `vote` the
    leaders', each weighted by its followers.
    """

    leader: Any
    born: Any
    follows: Any
    sentiment: Any
    logit: Any
    vote: Any


def _follow(classifier: Classifier, tokens: Int[Array, " n"], depth: int) -> Following:
    present, start = tokens != PAD, review(classifier, tokens)
    path = all_layers(classifier, start, depth, hard())
    leading = _leading(start, path)
    born = jnp.where(jnp.any(leading, axis=0), jnp.argmax(leading, axis=0), depth + 1)
    last = path[-1]
    first_here = _first_of_its_place(last, leading[-1], born)
    leader = leading[-1] & (first_here == jnp.arange(tokens.size))
    follows = _ends_of_chains(last, present, leading[-1], first_here)
    sentiment = classifier.sentiment(last)
    vote = jnp.sum(jnp.where(present, sentiment[follows], 0.0)) / jnp.maximum(present.sum(), 1)
    logit = classifier.sentiment(start.weights @ last)
    return Following(leader, born, follows, sentiment, logit, vote)


def _leading(start: Measure, path: Float[Array, "layers n d"]) -> Bool[Array, "layers n"]:
    """`observables.leader_mask` at every layer."""
    model, depth = network(hard(), path.dtype), jnp.zeros(())

    def at_layer(z: Float[Array, "n d"]) -> Bool[Array, " n"]:
        return leader_mask(Snapshot(depth, start.at(z), model, Dense()))

    return jax.vmap(at_layer)(path)


def _first_of_its_place(
    z: Float[Array, "n d"], leads: Bool[Array, " n"], born: Int[Array, " n"]
) -> Int[Array, " n"]:
    """For a word that leads, which word at its place led first: followers collapse onto their leader."""
    here = (squared_chords(z, z) <= SAME_LEADER**2) & leads[None, :] & leads[:, None]
    age = born * z.shape[0] + jnp.arange(z.shape[0])
    return jnp.argmin(jnp.where(here, age, jnp.iinfo(age.dtype).max), axis=1)


def _ends_of_chains(
    z: Float[Array, "n d"],
    present: Bool[Array, " n"],
    leads: Bool[Array, " n"],
    first_here: Int[Array, " n"],
) -> Int[Array, " n"]:
    """Follow attention from word to word; every step is to a longer word, so that it ends at a leader."""
    attended = jnp.argmax(jnp.where(present[None, :], z @ z.T, -jnp.inf), axis=1)
    target = jnp.where(leads, first_here, attended)
    for _ in range(int(np.ceil(np.log2(max(z.shape[0], 2)))) + 1):
        target = target[target]  # twice the steps each time
    return target


@functools.cache
def _many(depth: int) -> Callable[..., Following]:
    return jax.jit(
        jax.vmap(lambda classifier, tokens: _follow(classifier, tokens, depth), in_axes=(None, 0))
    )


def follow(classifier: Classifier, tokens: np.ndarray, depth: int) -> Following:
    """Leaders and followers in every review (reviews, n), in float64."""
    exact = classifier.exact()
    filled = np.pad(tokens, ((0, -len(tokens) % TOGETHER), (0, 0)))
    pieces = [
        jax.tree.map(np.asarray, _many(depth)(exact, filled[first : first + TOGETHER]))
        for first in range(0, len(filled), TOGETHER)
    ]
    return Following(*(np.concatenate(p)[: len(tokens)] for p in zip(*pieces, strict=True)))


class WordCounts(NamedTuple):
    """Per word (number 1, 2, ...): reviews it is in, leads in, leads in at once; mean sentiment there."""

    occurs: np.ndarray
    leads: np.ndarray
    at_once: np.ndarray
    sentiment: np.ndarray


def count_words(found: Following, tokens: np.ndarray, words: int) -> WordCounts:
    """Sum over the reviews; a word that occurs twice in a review counts once."""
    size = words + 1
    distinct = [np.unique(review[review != PAD]) for review in tokens]
    occurs = np.bincount(np.concatenate(distinct), minlength=size) if distinct else np.zeros(size)
    chosen = tokens[found.leader]
    leads = np.bincount(chosen, minlength=size)
    at_once = np.bincount(tokens[found.leader & (found.born == 0)], minlength=size)
    total = np.bincount(chosen, weights=found.sentiment[found.leader], minlength=size)
    with np.errstate(invalid="ignore"):
        mean = total / leads
    return WordCounts(occurs[1:], leads[1:], at_once[1:], mean[1:])
