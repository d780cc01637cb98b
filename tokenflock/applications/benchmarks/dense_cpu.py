"""dense-cpu: all pairs of n tokens, the sum that every step of every run evaluates."""

from __future__ import annotations

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .peers import gather, keops, numpy_matrix, numpy_published, plain_jnp, torch_naive, torch_sdpa
from .sums import direct_rows, evaluation, relative_error, sphere_tokens
from .timing import again, calls_within

SDPA = "torch SDPA"
PUBLISHED = "NumPy float64, as published"
# (d, at least this many times faster than torch SDPA, and than NumPy)
PROMISED = {3: (1.8, 10.0), 64: (1.0, None)}


@benchmark(
    "dense-cpu",
    says="one softmax attention over all pairs of tokens, float32, by Tiled",
    quick={
        "n": 8192,
        "dimensions": (3, 64),
        "beta": 9.0,
        "keops_rows": {3: 8192, 64: 1024},
        "repeats": 7,
        "budget": 10.0,
        "rest": 0.25,
        "sample": 0.3,
    },
    full={"keops_rows": {3: 8192, 64: 8192}, "repeats": 25, "budget": 120.0},
)
def dense_cpu(job: BenchJob) -> list[Row]:
    """One row per dimension."""
    return job.row_per_dimension(_row)


def _row(job: BenchJob, d: int) -> Row:
    from ...reduce import Tiled

    n, x = job.n, sphere_tokens(job.n, d, "float32")
    part = job.keops_rows[d]
    peers = {
        SDPA: lambda: torch_sdpa(x, job.beta),
        "torch naive": lambda: torch_naive(x, job.beta),
        _keops(part, n): lambda: keops(x, job.beta, part),
        "plain jnp": lambda: plain_jnp(x, job.beta),
        "NumPy float32": lambda: numpy_matrix(x, job.beta),
        PUBLISHED: lambda: numpy_published(x, job.beta),
    }
    field = gather(job, lambda: evaluation(Tiled(), x, job.beta), peers)
    truth = direct_rows(x, job.beta, np.arange(n))
    errors = {name: relative_error(out, truth[: len(out)]) for name, out in field.outputs.items()}
    calls = {name: calls_within(call, job.sample) for name, call in field.contestants.items()}
    runs = {name: again(call, calls[name]) for name, call in field.contestants.items()}
    samples = job.race(runs)
    pairs = {name: n * (part if name == _keops(part, n) else n) for name in samples}
    speeds = {name: calls[name] * pairs[name] / samples[name].median for name in samples}
    row = Row(
        f"d={d}, n={n}, beta={job.beta:g}, float32",
        speeds.pop(OURS),
        "pairs/s",
        errors.pop(OURS),
        peers=speeds,
        peer_errors=errors,
        missing=field.missing,
        spread=samples[OURS].spread,
    )
    return _promised(row, d)


def _keops(rows: int, n: int) -> str:
    return "KeOps" if rows == n else f"KeOps ({rows} of the rows)"


def _promised(row: Row, d: int) -> Row:
    faster, than_numpy = PROMISED.get(d, (None, None))
    if faster is not None:
        row.bar_against(SDPA, faster)
    if than_numpy is not None:
        row.bar_against(PUBLISHED, than_numpy)
    return row
