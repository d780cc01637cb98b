"""spectral-circle, spectral-sphere: attention in O(n) by a series, against all pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .peers import Field, finufft_circle, gather
from .sums import chosen_rows, direct_rows, errors_of, evaluation, sphere_tokens
from .timing import Contestant, Samples

TILED = "Tiled"
COMMON = {
    "beta": 9.0,
    "sizes": (100_000, 1_000_000),
    "rows": 200,
    # At most this many pairs are summed directly for the error; fewer rows of many tokens.
    "reference_pairs": 300_000_000,
    "repeats": 7,
    "budget": 25.0,
}
LONGER = {"sizes": (100_000, 1_000_000, 10_000_000), "repeats": 9, "budget": 200.0}
PAIRS_N = 16_384
LARGEST_EXPONENT = 1.1


@benchmark(
    "spectral-circle",
    says="attention of n tokens on the circle by Spectral(1e-10), against all pairs",
    quick={**COMMON, "d": 2, "tol": 1e-10, "pairs_n": PAIRS_N, "promised": 2000.0},
    full=LONGER,
)
def spectral_circle(job: BenchJob) -> list[Row]:
    """Rows of growing n on the circle, and how the cost grows."""
    return _rows(job)


@benchmark(
    "spectral-sphere",
    says="attention of n tokens on the sphere S^2 by Spectral(1e-8), against all pairs",
    quick={**COMMON, "d": 3, "tol": 1e-8, "pairs_n": PAIRS_N, "promised": 200.0},
    full=LONGER,
)
def spectral_sphere(job: BenchJob) -> list[Row]:
    """Rows of growing n on the sphere, and how the cost grows."""
    return _rows(job)


def _rows(job: BenchJob) -> list[Row]:
    """All sizes run in one race, so that a slow minute does not bend the growth."""
    fields: dict[int, tuple[Field, dict[str, float]]] = {}
    for index, n in enumerate(job.sizes):
        job.report(0.5 * index / len(job.sizes), f"n = {n:.0e}")
        fields[n] = _field(job, n)
    contestants = {
        (name, n): call
        for n, entry in fields.items()
        for name, call in entry[0].contestants.items()
    }
    tiled = _tiled(job)
    tiled()
    job.report(0.5, "race")
    samples = job.race({**contestants, (TILED, job.pairs_n): tiled})
    rows = [_row(job, n, *entry, samples) for n, entry in fields.items()]
    return [*rows, _growth({n: samples[OURS, n].median for n in fields})]


def _field(job: BenchJob, n: int) -> tuple[Field, dict[str, float]]:
    """Ours and the peer at one size, warm, with their errors on some rows."""
    from ...reduce import Spectral

    x = sphere_tokens(n, job.d, "float64")
    by_hand = {"finufft by hand": lambda: finufft_circle(x, job.beta, job.tol)}
    peers = by_hand if job.d == 2 else {}
    field = gather(job, lambda: evaluation(Spectral(job.tol), x, job.beta), peers)
    some = chosen_rows(n, max(1, min(job.rows, job.reference_pairs // n)))
    return field, errors_of(field.outputs, some, direct_rows(x, job.beta, some))


def _tiled(job: BenchJob) -> Contestant:
    from ...reduce import Tiled

    return evaluation(Tiled(), sphere_tokens(job.pairs_n, job.d, "float64"), job.beta)


def _row(
    job: BenchJob,
    n: int,
    field: Field,
    errors: dict[str, float],
    samples: Mapping[tuple[str, int], Samples],
) -> Row:
    from ...reduce import Spectral

    all_pairs = f"{TILED} (extrapolated from n={job.pairs_n})"
    bound = Spectral(job.tol).error_bound(n)
    others = {name: error for name, error in errors.items() if name != OURS}
    row = Row(
        f"n={n:.0e}, d={job.d}, beta={job.beta:g}, tol={job.tol:g}, float64",
        samples[OURS, n].median,
        "s",
        errors[OURS],
        peers={
            all_pairs: samples[TILED, job.pairs_n].median * (n / job.pairs_n) ** 2,
            **{name: samples[name, n].median for name in others},
        },
        peer_errors=others,
        missing=field.missing,
        spread=samples[OURS, n].spread,
        bound=bound,
    )
    row.bar_error(bound, "error within the bound")
    return row.bar_against(all_pairs, job.promised) if n == 1_000_000 else row


def _growth(seconds: Mapping[int, float]) -> Row:
    """The exponent p of time ~ n^p, by least squares in logarithms."""
    sizes = list(seconds)
    exponent = float(np.polyfit(np.log(sizes), np.log(list(seconds.values())), 1)[0])
    row = Row(f"growth from n={min(sizes):.0e} to {max(sizes):.0e}", exponent, "exponent")
    return row.bar_below(LARGEST_EXPONENT) if max(sizes) >= 10_000_000 else row
