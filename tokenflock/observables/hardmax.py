"""Leaders: the tokens that attend only to their own location (2407.01602).

A leader never moves under hardmax attention and stays one; followers converge to leaders. Followers
collapse onto their leader to rounding after some 50 layers, and argmax then names any of the
coincident tokens, so leaders are recognised by location, with tolerances, and never by index.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ..connected_components import component_labels
from ..errors import require
from .base import Observable, Snapshot
from .pairs import squared_chords
from .reading import compared, first_attention
from .registry import register

TIE_TOLERANCE = 1e-12
SAME_PLACE = 1e-6
SAME_LEADER = 1e-4


def _leader_mask(snapshot: Snapshot) -> Bool[Array, " n"]:
    """Token i leads iff all j with S_ij >= max_j S_ij - 1e-12 max|S| lie within 1e-6 of x_i.

    S_ij = <Q x_i, K x_j> are the scores of the single head. Followers that have reached their
    leader are labelled too. Tokens without mass (`measure.padded`) are not there: they neither lead nor
    are attended to. O(n^2 d).
    """
    mu, attention = compared(snapshot), first_attention(snapshot.model, "leaders")
    weights = attention.weights.at(snapshot.t)
    require(weights.heads == 1, f"leaders need a single head, got {weights.heads}")
    queries, keys = weights.queries(mu.points)[0], weights.keys(mu.points)[0]
    scores = attention.kind.scores(queries, keys, jnp.ones(()))
    there = mu.weights > 0
    slack = TIE_TOLERANCE * jnp.max(jnp.abs(scores), where=there[:, None] & there, initial=0.0)
    seen = jnp.where(there, scores, -jnp.inf)
    attended = seen >= jnp.max(seen, axis=-1, keepdims=True) - slack
    here = snapshot.measure.points
    elsewhere = squared_chords(here, here) > SAME_PLACE**2
    return there & ~jnp.any(attended & elsewhere, axis=-1)


def _leaders(snapshot: Snapshot) -> Int[Array, ""]:
    """Number of leader locations: leaders joined when closer than 1e-4. Non-decreasing in depth."""
    points, leads = snapshot.measure.points, _leader_mask(snapshot)
    joined = (squared_chords(points, points) <= SAME_LEADER**2) & leads[:, None] & leads[None, :]
    labels = component_labels(joined)
    return jnp.sum(leads & (labels == jnp.arange(labels.size)))


leader_mask = register(
    Observable(
        "leader_mask",
        "1",
        _leader_mask,
        axes=("token",),
        says="Whether a token attends only to tokens at its own place",
    )
)
leaders = register(
    Observable("leaders", "locations", _leaders, says="Number of distinct places held by leaders")
)
