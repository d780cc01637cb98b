"""spectral-circle, spectral-sphere: attention in O(n) by a series, against all pairs."""

from __future__ import annotations

import numpy as np

from .core import OURS, Job, Row, benchmark
from .peers import finufft_circle, gather
from .sums import chosen_rows, direct_rows, errors_of, evaluation, sphere_tokens
from .timing import Samples

COMMON = {"beta": 9.0, "sizes": (100_000, 1_000_000), "rows": 200, "repeats": 5, "budget": 20.0}
LONGER = {"sizes": (100_000, 1_000_000, 10_000_000), "repeats": 7, "budget": 60.0}
PAIRS_N = 16_384
LARGEST_EXPONENT = 1.1


@benchmark(
    "spectral-circle",
    says="attention of n tokens on the circle by Spectral(1e-10), against all pairs",
    quick={**COMMON, "d": 2, "tol": 1e-10, "pairs_n": PAIRS_N, "promised": 2000.0},
    full=LONGER,
)
def spectral_circle(job: Job) -> list[Row]:
    """Rows of growing n on the circle, and how the cost grows."""
    return _rows(job)


@benchmark(
    "spectral-sphere",
    says="attention of n tokens on the sphere S^2 by Spectral(1e-8), against all pairs",
    quick={**COMMON, "d": 3, "tol": 1e-8, "pairs_n": PAIRS_N, "promised": 200.0},
    full=LONGER,
)
def spectral_sphere(job: Job) -> list[Row]:
    """Rows of growing n on the sphere, and how the cost grows."""
    return _rows(job)


def _rows(job: Job) -> list[Row]:
    rows, seconds = [], []
    for index, n in enumerate(job.sizes):
        job.report(index / len(job.sizes), f"n = {n:.0e}")
        row, samples = _row(job, n)
        rows.append(row)
        seconds.append(samples.median)
    return [*rows, _growth(job.sizes, seconds)]


def _row(job: Job, n: int) -> tuple[Row, Samples]:
    from ..reduce import Spectral, Tiled

    x = sphere_tokens(n, job.d, "float64")
    by_hand = {"finufft by hand": lambda: finufft_circle(x, job.beta, job.tol)}
    reduction = Spectral(job.tol)
    ours = lambda: evaluation(reduction, x, job.beta)  # noqa: E731
    field = gather(job, ours, by_hand if job.d == 2 else {})
    some = chosen_rows(n, job.rows)
    errors = errors_of(field.outputs, some, direct_rows(x, job.beta, some))
    tiled = evaluation(Tiled(), x[: job.pairs_n], job.beta)
    tiled()
    samples = job.race({**field.contestants, "Tiled": tiled})
    all_pairs = f"Tiled (extrapolated from n={job.pairs_n})"
    row = Row(
        f"n={n:.0e}, d={job.d}, beta={job.beta:g}, tol={job.tol:g}, float64",
        samples[OURS].median,
        "s",
        errors.pop(OURS),
        peers={
            all_pairs: samples["Tiled"].median * (n / job.pairs_n) ** 2,
            **{name: samples[name].median for name in errors},
        },
        peer_errors=errors,
        missing=field.missing,
        spread=samples[OURS].spread,
        bound=reduction.error_bound(n),
    )
    row.bar_error(reduction.error_bound(n), "error within the bound")
    if n == 1_000_000:
        row.bar_against(all_pairs, job.promised)
    return row, samples[OURS]


def _growth(sizes: tuple[int, ...], seconds: list[float]) -> Row:
    """The exponent p of time ~ n^p, by least squares in logarithms."""
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    row = Row(f"growth from n={min(sizes):.0e} to {max(sizes):.0e}", exponent, "exponent")
    return row.bar_below(LARGEST_EXPONENT)
