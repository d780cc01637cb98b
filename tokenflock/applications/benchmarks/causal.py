"""causal: attention to the past in linear time, by prefix sums of moments, against all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .core import OURS, BenchJob, Row, benchmark
from .peers import Maker, gather, numpy_causal, torch_sdpa
from .sums import chosen_rows, direct_rows, evaluation, relative_error, sphere_tokens
from .timing import Samples

PROMISED = 100.0
TILED = "Tiled"


@benchmark(
    "causal",
    says="causal attention of n tokens on the circle in linear time by Spectral, against all pairs",
    quick={
        "n": 100_000,
        "beta": 9.0,
        "tol": 1e-10,
        "rows": 200,
        "pairs_n": {TILED: 16_384, "NumPy": 8192, "torch": 16_384},
        "repeats": 5,
        "budget": 30.0,
    },
    full={"pairs_n": {TILED: 100_000, "NumPy": 32_768, "torch": 100_000}, "budget": 400.0},
)
def causal(job: BenchJob) -> list[Row]:
    """One row: ours at n, the peers at a size they manage, scaled by n^2."""
    from ...masks import Causal
    from ...reduce import Spectral, Tiled

    x = sphere_tokens(job.n, 2, "float64")
    sizes: Mapping[str, int] = job.pairs_n
    some = chosen_rows(job.n, job.rows)
    first = {name: x[:size] for name, size in sizes.items()}
    peers: dict[str, Maker] = {
        TILED: lambda: evaluation(Tiled(), first[TILED], job.beta, Causal()),
        "torch SDPA float32": lambda: torch_sdpa(first["torch"].astype("float32"), job.beta, True),
        "torch SDPA float64": lambda: torch_sdpa(first["torch"], job.beta, True),
        "NumPy in blocks of rows": lambda: numpy_causal(first["NumPy"], job.beta),
    }
    field = gather(job, lambda: evaluation(Spectral(job.tol), x, job.beta, Causal()), peers)
    job.report(0.3, "race")
    truth = direct_rows(x, job.beta, some, causal=True)
    samples = job.race(field.contestants)
    seconds = _scaled(samples, sizes, job.n)
    row = Row(
        f"circle, n={job.n:.0e}, beta={job.beta:g}, tol={job.tol:g}, float64",
        samples[OURS].median,
        "s",
        relative_error(field.outputs[OURS][some], truth),
        peers=seconds,
        missing=field.missing,
        spread=samples[OURS].spread,
        bound=Spectral(job.tol).error_bound(job.n),
    )
    return [row.bar_against(_label(TILED, sizes[TILED], job.n), PROMISED)]


def _scaled(samples: Mapping[str, Samples], sizes: Mapping[str, int], n: int) -> dict[str, Any]:
    """Times of the peers at n: their cost grows with the number of pairs."""
    seconds = {}
    for name, taken in samples.items():
        if name != OURS:
            size = sizes[name.split()[0]]
            seconds[_label(name, size, n)] = taken.median * (n / size) ** 2
    return seconds


def _label(name: str, size: int, n: int) -> str:
    return name if size == n else f"{name} (extrapolated from n={size})"
