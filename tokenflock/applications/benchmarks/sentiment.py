"""sentiment: one step of training the hardmax classifier, against the same step in torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .peers import gather
from .timing import Contestant

TORCH = "torch, autograd and Adam"


@benchmark(
    "sentiment",
    says="one step of training the hardmax sentiment classifier: loss, exact derivatives, clipping, Adam",
    quick={
        "batch": 64,
        "length": 128,
        "depth": 8,
        "vocabulary": 20_000,
        "dimensions": (2, 16),
        "tau": 1e-3,
        "rate": 1e-2,
        "repeats": 15,
        "budget": 20.0,
        "rest": 0.0,
    },
    full={"repeats": 60, "budget": 60.0},
)
def sentiment(job: BenchJob) -> list[Row]:
    """One row per dimension of the words."""
    return job.row_per_dimension(_row)


def _row(job: BenchJob, d: int) -> Row:
    tokens, labels = _reviews(job)
    field = gather(
        job,
        lambda: _ours(job, d, tokens, labels),
        {TORCH: lambda: _torch(job, d, tokens, labels)},
    )
    truth = _loss_in_float64(job, d, tokens, labels)
    errors = {name: abs(float(loss) - truth) / truth for name, loss in field.outputs.items()}
    samples = job.race(field.contestants)
    return Row(
        f"d={d}, {job.batch} reviews of {job.length} words out of {job.vocabulary}, depth {job.depth}, "
        "float32",
        samples[OURS].median,
        "s",
        errors.pop(OURS),
        peers={name: taken.median for name, taken in samples.items() if name != OURS},
        peer_errors=errors,
        missing=field.missing,
        spread=samples[OURS].spread,
    )


def _reviews(job: BenchJob) -> tuple[np.ndarray, np.ndarray]:
    """Word numbers as frequent as words are (Zipf's law), reviews of different lengths."""
    rng = np.random.default_rng(0)
    chance = 1.0 / np.arange(1, job.vocabulary + 1)
    shape = (job.batch, job.length)
    tokens = 1 + rng.choice(job.vocabulary, size=shape, p=chance / chance.sum())
    lengths = rng.integers(job.length // 2, job.length + 1, size=(job.batch, 1))
    kept = np.where(np.arange(job.length) < lengths, tokens, 0)
    return kept.astype(np.int32), rng.integers(0, 2, job.batch).astype(np.float32)


def _ours(job: BenchJob, d: int, tokens: np.ndarray, labels: np.ndarray) -> Contestant:
    """The compiled step of `tokenflock train`, always from the same start."""
    from ..sentiment.classifier import draw_classifier
    from ..sentiment.fit import compiled_step, optimiser

    classifier = draw_classifier(job.vocabulary, d, seed=0)
    memory = optimiser(job.rate).init(classifier)  # pyright: ignore[reportArgumentType]
    step = compiled_step(job.depth, job.tau, job.rate)
    return lambda: np.asarray(step(classifier, memory, tokens, labels)[2])


def _loss_in_float64(job: BenchJob, d: int, tokens: np.ndarray, labels: np.ndarray) -> float:
    import jax

    from ..sentiment.classifier import draw_classifier, soft
    from ..sentiment.fit import cross_entropy

    exact = jax.tree.map(lambda leaf: leaf.astype(float), draw_classifier(job.vocabulary, d, 0))
    loss = jax.jit(
        lambda model, words, goal: cross_entropy(model, words, goal, job.depth, soft(job.tau))
    )
    return float(loss(exact, tokens, labels.astype(float)))


def _torch(job: BenchJob, d: int, tokens: np.ndarray, labels: np.ndarray) -> Contestant:
    """The same network in torch, as one would write it there, always from the same start."""
    import torch

    from ..sentiment.classifier import draw_classifier
    from ..sentiment.fit import CLIP

    start = draw_classifier(job.vocabulary, d, seed=0)
    parts: list[Any] = [
        torch.tensor(np.asarray(part), requires_grad=True)
        for part in (start.embedding, start.free_alpha, start.direction, start.bias)
    ]
    embedding, free_alpha, direction, bias = parts
    words, goal = torch.from_numpy(tokens).long(), torch.from_numpy(labels)
    present = words != 0
    # A rate of zero keeps the place; Adam does the same work.
    adam = torch.optim.Adam(parts, lr=0.0)

    def step() -> Any:
        adam.zero_grad()
        alpha = torch.nn.functional.softplus(free_alpha)
        z = embedding[words]
        for _ in range(job.depth):
            scores = (z @ z.transpose(1, 2)) / job.tau
            weights = torch.softmax(scores.masked_fill(~present[:, None, :], -torch.inf), dim=-1)
            z = (z + alpha * (weights @ z)) / (1 + alpha)
        mean = (z * present[..., None]).sum(1) / present.sum(1, keepdim=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(mean @ direction + bias, goal)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parts, CLIP)
        adam.step()
        return loss.detach()

    return step
