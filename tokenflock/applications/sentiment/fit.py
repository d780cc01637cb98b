"""Training: Adam on the softmax surrogate with exact derivatives, one epoch after the other.

Two networks are trained side by side: the one asked for, and its depth 0, a bag of words. After every epoch
both are evaluated on the validation reviews, as hardmax networks, and the best of each is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ...errors import SolveError
from ...progress import NotedReport
from .classifier import Classifier, Slot, draw_classifier, hard, logits, soft
from .reviews import Data, Part
from .settings import Settings

CLIP = 5.0
NETWORK, BASELINE = "network", "bag of words"
MEASURED = ("loss", "validation_accuracy", "validation_loss", "alpha")
# Reviews evaluated in one call; the last call is filled up, so that one program serves all.
TOGETHER = 250


class Trainee(NamedTuple):
    """One network in training: now, Adam's memory, its best epoch so far, one row of numbers per epoch."""

    classifier: Classifier
    memory: Any
    best: Classifier
    history: np.ndarray

    @property
    def epochs(self) -> int:
        """How many epochs are done."""
        return int(np.sum(np.isfinite(self.history[:, 0])))

    @property
    def best_epoch(self) -> int:
        """The epoch (from 1) of the best validation accuracy; of equals, that of the smallest loss."""
        accuracy, loss = self.history[: self.epochs, 1:3].T
        return 1 + int(np.lexsort((loss, -accuracy))[0])


def depths(settings: Settings) -> dict[str, int]:
    """The networks that are trained side by side, by name."""
    return {NETWORK: settings.depth, BASELINE: 0}


@functools.cache
def optimiser(rate: float) -> optax.GradientTransformation:
    """Adam after clipping the gradient at length 5: it is huge where two scores nearly tie."""
    return optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(rate))


def start(settings: Settings, words: int) -> dict[str, Trainee]:
    """Both networks before their first step, from the same random vectors."""
    classifier = draw_classifier(words, settings.d, settings.seed)
    history = np.full((settings.epochs, len(MEASURED)), np.nan)
    memory = optimiser(settings.rate).init(classifier)  # pyright: ignore[reportArgumentType]
    return {name: Trainee(classifier, memory, classifier, history) for name in depths(settings)}


def cross_entropy(
    classifier: Classifier, tokens: jax.Array, labels: jax.Array, depth: int, slot: Slot
) -> jax.Array:
    """Mean of log(1 + e^{-+ logit}) over the reviews."""
    found = logits(classifier, tokens, depth, slot)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(found, labels))


@functools.cache
def compiled_step(depth: int, tau: float, rate: float) -> Callable[..., Any]:
    """One compiled step of Adam; tau and rate belong to the program, the reviews do not."""

    def step(
        classifier: Classifier, memory: Any, tokens: jax.Array, labels: jax.Array
    ) -> tuple[Classifier, Any, jax.Array]:
        loss, slope = jax.value_and_grad(cross_entropy)(
            classifier, tokens, labels, depth, soft(tau)
        )
        change, memory = optimiser(rate).update(slope, memory)
        return eqx.apply_updates(classifier, change), memory, loss

    return jax.jit(step)


def batches(part: Part, settings: Settings, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The reviews in an order of this epoch's own; what does not fill a batch waits for another epoch."""
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(part.labels))
    for first in range(0, order.size - settings.batch + 1, settings.batch):
        rows = order[first : first + settings.batch]
        yield part.tokens[rows], part.labels[rows]


def train_epoch(
    trainee: Trainee, depth: int, data: Data, settings: Settings, report: NotedReport
) -> Trainee:
    """One pass over the training reviews, and the validation after it; report(share, loss)."""
    epoch = trainee.epochs
    step = compiled_step(depth, settings.tau, settings.rate)
    classifier, memory = trainee.classifier, trainee.memory
    total = len(data.train.labels) // settings.batch
    losses = []
    for done, (tokens, labels) in enumerate(batches(data.train, settings, epoch), start=1):
        classifier, memory, loss = step(classifier, memory, tokens, labels)
        losses.append(float(loss))
        if not np.isfinite(losses[-1]):
            raise SolveError(
                f"the loss is not finite in epoch {epoch + 1}; lower --rate, or raise --tau"
            )
        report(done / total, f"loss {losses[-1]:.3f}")
    accuracy, loss = score(classifier, data.validation, depth, hard())
    history = trainee.history.copy()
    history[epoch] = np.mean(losses), accuracy, loss, float(classifier.alpha)
    trained = Trainee(classifier, memory, classifier, history)
    return trained if trained.best_epoch == epoch + 1 else trained._replace(best=trainee.best)


@functools.cache
def _evaluation(depth: int, slot: Slot) -> Callable[..., jax.Array]:
    return jax.jit(lambda classifier, tokens: logits(classifier, tokens, depth, slot))


def evaluate(classifier: Classifier, tokens: np.ndarray, depth: int, slot: Slot) -> np.ndarray:
    """Logits of any number of reviews, in float64 for what is computed from them."""
    program = _evaluation(depth, slot)
    missing = -len(tokens) % TOGETHER
    filled = np.pad(tokens, ((0, missing), (0, 0)))
    found = [
        np.asarray(program(classifier, filled[first : first + TOGETHER]))
        for first in range(0, len(filled), TOGETHER)
    ]
    return np.concatenate(found)[: len(tokens)].astype(float)


def score(classifier: Classifier, part: Part, depth: int, slot: Slot) -> tuple[float, float]:
    """Share of reviews on the right side of the plane, and the mean cross-entropy."""
    found = evaluate(classifier, part.tokens, depth, slot)
    toward = np.where(part.labels > 0.5, found, -found)
    return float(np.mean((found > 0) == (part.labels > 0.5))), float(
        np.mean(np.logaddexp(0.0, -toward))
    )
