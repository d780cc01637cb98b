"""The classifier of 2407.01602: word vectors, hardmax attention, the mean, one decision plane.

    z_i^0 = E[word_i],   z_i^{k+1} = (z_i^k + alpha mean_{j in C_i} z_j^k)/(1 + alpha),
    C_i = argmax_j <z_i, z_j>,   logit = <v, mean_i z_i^K> + b,

with one alpha > 0 for all K layers. Attention is a slot: `hard()` is the network itself, `soft(tau)` its
surrogate, softmax of <z_i, z_j>/tau, whose derivatives exist. Words beyond the end of a review (PAD) neither
attend, nor are attended to, nor enter the mean; in the published code they did all three. K = 0 is a bag of
words: <v, mean_i E[word_i]> + b. O(K n^2 d) per review.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..kinds import Hardmax, Kind, Softmax
from .texts import PAD

# The paper draws alpha between 0 and 1.
FIRST_ALPHA = 0.5


class Classifier(eqx.Module):
    """Trainable parts: vectors of words, the step, the plane. alpha = softplus(free_alpha) is positive."""

    embedding: Float[Array, "words d"]
    free_alpha: Float[Array, ""]
    direction: Float[Array, " d"]
    bias: Float[Array, ""]

    @property
    def alpha(self) -> Float[Array, ""]:
        """alpha = log(1 + e^free_alpha) > 0; the published code leaves the sign of alpha free."""
        return jax.nn.softplus(self.free_alpha)

    def sentiment(self, places: Float[Array, "*many d"]) -> Float[Array, "*many"]:
        """<v, z> + b: on which side of the plane, and how far in units of 1/|v|."""
        return places @ self.direction + self.bias


class Slot(NamedTuple):
    """A kind of attention and the factor of its scores."""

    kind: Kind
    beta: float


def soft(tau: float) -> Slot:
    """Softmax of <z_i, z_j>/tau, to train with."""
    return Slot(Softmax(), 1.0 / tau)


def hard() -> Slot:
    """Hardmax, the network that is meant, used and evaluated."""
    return Slot(Hardmax(), 1.0)


def draw_classifier(words: int, d: int, seed: int) -> Classifier:
    """A random start for `words` words in float32: Gaussian vectors, a random plane, alpha = 1/2."""
    rng = np.random.default_rng([seed, d])
    embedding = rng.normal(size=(words + 1, d))
    embedding[PAD] = 0.0
    direction = rng.normal(size=d) / np.sqrt(d)
    inverse_softplus = np.log(np.expm1(FIRST_ALPHA))
    parts = (embedding, inverse_softplus, direction, 0.0)
    return Classifier(*(jnp.asarray(part, np.float32) for part in parts))


def layer(
    z: Float[Array, "n d"], present: Bool[Array, " n"], alpha: Float[Array, ""], slot: Slot
) -> Float[Array, "n d"]:
    """One layer among the words that are there; the others stay where they are."""
    beta = jnp.asarray(slot.beta, z.dtype)
    scores = slot.kind.scores(z, z, beta)
    log_mass = jnp.where(present, 0.0, -jnp.inf).astype(z.dtype)
    everybody = jnp.broadcast_to(log_mass, scores.shape)
    attended = slot.kind.dense(scores, everybody, z, beta, jnp.ones((), z.dtype))
    moved = (z + alpha * attended) / (1 + alpha)
    return jnp.where(present[:, None], moved, z)


def all_layers(
    classifier: Classifier, tokens: Int[Array, " n"], depth: int, slot: Slot
) -> Float[Array, "layers n d"]:
    """Places of the words of one review after 0, 1, ..., depth layers."""
    present = tokens != PAD
    path = [classifier.embedding[tokens]]
    for _ in range(depth):
        path.append(layer(path[-1], present, classifier.alpha, slot))
    return jnp.stack(path)


def mean_place(z: Float[Array, "n d"], present: Bool[Array, " n"]) -> Float[Array, " d"]:
    """Mean of the words that are there; the origin for a review without a known word."""
    total = jnp.sum(jnp.where(present[:, None], z, 0.0), axis=0)
    return total / jnp.maximum(jnp.sum(present), 1).astype(z.dtype)


def logits(
    classifier: Classifier, tokens: Int[Array, "reviews n"], depth: int, slot: Slot
) -> Float[Array, " reviews"]:
    """<v, mean_i z_i^K> + b for every review; above 0 is positive."""

    def one(review: Int[Array, " n"]) -> Float[Array, ""]:
        last = all_layers(classifier, review, depth, slot)[-1]
        return classifier.sentiment(mean_place(last, review != PAD))

    return jax.vmap(one)(tokens)
