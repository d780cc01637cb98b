"""random-depth: ten thousand random networks of two thousand layers, in one compiled call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .timing import Samples

LOOP, BATCH = "NumPy, a loop over chains and layers", "NumPy, all chains at once"


class Size(NamedTuple):
    """One case: tokens, dimensions, chains and layers of ours, and how much of it the peers do."""

    n: int
    d: int
    chains: int
    layers: int
    loop: tuple[int, int]
    batch: tuple[int, int]


@benchmark(
    "random-depth",
    says="chains of random layers (fresh V and A = W W'^T in every layer), all in one compiled call",
    quick={
        "beta": 1.0,
        "eta": 0.1,
        "sizes": (
            (2, 8, 10_000, 2000, (20, 500), (10_000, 20)),
            (4, 64, 500, 100, (2, 100), (500, 4)),
        ),
        "repeats": 1,
        "budget": 60.0,
    },
    full={"repeats": 3, "budget": 600.0},
)
def random_depth(job: BenchJob) -> list[Row]:
    """A row per size: ours whole; NumPy chain by chain and in a batch at a part of it, scaled."""
    rows = []
    for index, size in enumerate(job.sizes):
        job.report(index / len(job.sizes), f"d = {size[1]}")
        rows.append(_row(job, Size(*size)))
    return rows


def _row(job: BenchJob, size: Size) -> Row:
    """The error is the difference of the mean overlap from NumPy's after the layers of its batch, in
    standard errors: below 4 they agree.
    """
    # Depth is a number to the compiled program: a few layers of as many chains warm it up.
    _ours(job, size, size.chains, 1)()
    short = _ours(job, size, *size.batch)()
    samples = job.race(
        {
            OURS: _ours(job, size, size.chains, size.layers),
            LOOP: lambda: [
                numpy_chains(job, size, 1, size.loop[1], k) for k in range(size.loop[0])
            ],
            BATCH: lambda: numpy_chains(job, size, *size.batch, 0),
        }
    )
    theirs = numpy_chains(job, size, *size.batch, 1)
    error = float(np.sqrt((short.var() + theirs.var()) / size.batch[0]))
    return Row(
        f"{size.chains} chains of {size.layers} layers, n={size.n}, d={size.d}, beta={job.beta:g}, float64",
        samples[OURS].median,
        "s",
        abs(float(short.mean() - theirs.mean())) / error,
        peers=dict(
            _scaled(size, name, part, samples[name])
            for name, part in ((LOOP, size.loop), (BATCH, size.batch))
        ),
        spread=samples[OURS].spread,
        bound=4.0,
    )


def _scaled(size: Size, name: str, part: tuple[int, int], taken: Samples) -> tuple[str, float]:
    """A peer's name and its seconds at full size: the cost grows with chains times layers."""
    factor = size.chains * size.layers / (part[0] * part[1])
    return f"{name} (extrapolated from {part[0]} chains of {part[1]} layers)", taken.median * factor


def _ours(job: BenchJob, size: Size, chains: int, layers: int) -> Callable[[], np.ndarray]:
    """The overlap of the first two tokens at the end of every chain."""
    from ...random_depth import HeadLaw, overlaps, random_chains
    from ...space import Sphere
    from ...starts import equiangular

    law, x0 = HeadLaw.gaussian(size.d, job.beta), equiangular(Sphere(size.d), size.n, 0.0)

    def run() -> np.ndarray:
        found: Any = random_chains(law, x0, layers, job.eta, chains=chains, observe=[overlaps])
        return found.array("overlaps")[:, -1, 0]

    return run


def numpy_chains(job: BenchJob, size: Size, chains: int, layers: int, seed: int) -> np.ndarray:
    """The same chains as one would write them: V, W and W' drawn whole, R_12 at the end."""
    random = np.random.default_rng(seed)
    x = np.tile(np.eye(size.n, size.d), (chains, 1, 1))
    for _ in range(layers):
        V, W, other = random.standard_normal((3, chains, size.d, size.d)) / np.sqrt(size.d)
        logits = job.beta * (x @ other) @ (x @ W).swapaxes(1, 2)
        weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
        m = weight / weight.sum(axis=-1, keepdims=True) @ x
        x = x + job.eta * m @ V.swapaxes(1, 2)
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return np.sum(x[:, 0] * x[:, 1], axis=-1)
