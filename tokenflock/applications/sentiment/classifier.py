"""The classifier of 2407.01602: word vectors, hardmax attention, the mean, one decision plane.

    z_i^0 = E[word_i],   z_i^{k+1} = (z_i^k + alpha mean_{j in C_i} z_j^k)/(1 + alpha),
    C_i = argmax_j <z_i, z_j>,   logit = <v, mean_i z_i^K> + b,

with one alpha > 0 for all K layers. The layers are those of a `Dynamics` on R^d, whose attention is a slot:
`hard()` is the network itself, `soft(tau)` its surrogate, softmax of <z_i, z_j>/tau, whose derivatives exist.
A review is a measure. Places beyond its end (PAD) have no mass: nobody attends to them, and they do not enter
the mean; in the published code they did both. K = 0 is a bag of words: <v, mean_i E[word_i]> + b.
O(K n^2 d) per review.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...dynamics import Dynamics, Particles
from ...kinds import Hardmax, Kind, Softmax
from ...measure import Measure, padded
from ...space import Euclidean
from ...terms import Attention, Drift
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

    @property
    def step(self) -> Float[Array, ""]:
        """The residual weight alpha/(1 + alpha) of a layer."""
        return self.alpha / (1 + self.alpha)

    def exact(self) -> Classifier:
        """The same in float64: where leaders are told apart, float32 would merge near ties."""
        return jax.tree.map(lambda leaf: leaf.astype(float), self)

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


def network(slot: Slot, dtype: Any) -> Dynamics:
    """z_i' = sum_j a_ij z_j - z_i on R^d (`HardmaxFlow`, where the slot is hard), in a precision.

    Its layer of step h = alpha/(1 + alpha) is z + h (m - z) = (z + alpha m)/(1 + alpha).
    """
    model = Dynamics(None, Attention(None, slot.beta, slot.kind) + Drift(-1.0), label="classifier")
    return jax.tree.map(lambda leaf: leaf.astype(dtype), model)


def review(classifier: Classifier, tokens: Int[Array, " n"]) -> Measure:
    """The words of one review at layer 0: equal masses, and none where there is no word."""
    places = classifier.embedding[tokens]
    return padded(Euclidean(places.shape[-1]), places, tokens != PAD)


def all_layers(
    classifier: Classifier, start: Measure, depth: int, slot: Slot
) -> Float[Array, "layers n d"]:
    """Places of the words of one review after 0, 1, ..., depth layers."""
    model, step = network(slot, start.points.dtype), classifier.step
    path = [Particles(start.points)]
    # Not a scan: a training step takes half as long again through it.
    for number in range(depth):
        path.append(model.layer(number * step, path[-1], start, step))
    return jnp.stack([state.points for state in path])


def logits(
    classifier: Classifier, tokens: Int[Array, "reviews n"], depth: int, slot: Slot
) -> Float[Array, " reviews"]:
    """<v, mean_i z_i^K> + b for every review; above 0 is positive."""

    def one(words: Int[Array, " n"]) -> Float[Array, ""]:
        start = review(classifier, words)
        last = all_layers(classifier, start, depth, slot)[-1]
        return classifier.sentiment(start.weights @ last)

    return jax.vmap(one)(tokens)
