"""kinetic: a long causal prompt with ALiBi on the circle, in linear time, against sums over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .peers import gather
from .sums import chosen_rows, relative_error
from .timing import Contestant

PAIRS = "NumPy in blocks of rows"
FILTER = "scipy lfilter of the moments"
PROMISED_RATIO = 100.0
PROMISED_SECONDS = 30.0


@benchmark(
    "kinetic",
    says="the field, and a whole run, of n causal tokens with ALiBi on the circle in linear time by Spectral",
    quick={
        "n": 100_000,
        "beta": 1.0,
        "slope": 1.0,
        "tol": 1e-10,
        "t1": 10.0,
        "rtol": 1e-6,
        "rows": 200,
        "pairs_n": 8192,
        "repeats": 3,
        "budget": 40.0,
    },
    full={"pairs_n": 16_384, "repeats": 5, "budget": 60.0},
)
def kinetic(job: BenchJob) -> list[Row]:
    """One row for the field, one for a run to t1."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, job.n)
    some = chosen_rows(job.n, job.rows)
    field = gather(
        job,
        lambda: _ours(job, angles),
        {
            FILTER: lambda: lambda: by_filter(angles, job.beta, job.slope),
            PAIRS: lambda: lambda: by_pairs(angles[: job.pairs_n], job.beta, job.slope),
        },
    )
    job.report(0.3, "race")
    samples = job.race(field.contestants)
    truth = by_pairs(angles, job.beta, job.slope, some)
    scaled = samples[PAIRS].median * (job.n / job.pairs_n) ** 2
    pairs = PAIRS if job.pairs_n == job.n else f"{PAIRS} (extrapolated from n={job.pairs_n})"
    about = f"n={job.n:.0e}, beta={job.beta:g}, slope={job.slope:g}"
    row = Row(
        f"field, {about}, tol={job.tol:g}, float64",
        samples[OURS].median,
        "s",
        relative_error(field.outputs[OURS][some][:, None], truth[:, None]),
        peers={FILTER: samples[FILTER].median, pairs: scaled},
        missing=field.missing,
        spread=samples[OURS].spread,
        peer_errors={FILTER: relative_error(field.outputs[FILTER][some][:, None], truth[:, None])},
    )
    job.report(0.7, "a whole run")
    return [row.bar_against(pairs, PROMISED_RATIO), _whole_run(job, angles, about, pairs, scaled)]


def _whole_run(job: BenchJob, angles: np.ndarray, about: str, pairs: str, seconds: float) -> Row:
    """A solve as a user calls it; all pairs would be summed once per evaluation of the field."""
    from ... import KineticFlow, Save, Spectral, from_angles
    from ... import solve as solve_flow

    x0, model = from_angles(angles), KineticFlow(job.beta, job.slope)

    def go() -> Any:
        return solve_flow(
            model,
            x0,
            job.t1,
            rtol=job.rtol,
            atol=job.rtol / 100,
            reduction=Spectral(job.tol),
            save=Save(),
        )

    evaluations = 13 * int(go().health["steps"])  # stages of Dopri8
    samples = job.race({OURS: go})[OURS]
    return Row(
        f"run to t={job.t1:g}, {about}, rtol={job.rtol:g}",
        samples.median,
        "s",
        peers={f"{pairs}, {evaluations} evaluations (computed)": evaluations * seconds},
        spread=samples.spread,
    ).bar_below(PROMISED_SECONDS)


def _ours(job: BenchJob, angles: np.ndarray) -> Contestant:
    """The compiled angular speed of every token by Spectral."""
    import equinox as eqx
    import jax

    from ... import KineticFlow, Spectral, from_angles

    tokens, model = from_angles(angles), KineticFlow(job.beta, job.slope)
    reduction = Spectral(job.tol).settle([part.task(tokens) for part in model.attentions()])

    @eqx.filter_jit
    def speed(tokens: Any) -> Any:
        force = model.terms.tangent_field(0.0, tokens.points, tokens, reduction)
        return tokens.points[:, 0] * force[:, 1] - tokens.points[:, 1] * force[:, 0]

    return lambda: jax.block_until_ready(speed(tokens))


def by_pairs(
    angles: np.ndarray, beta: float, slope: float, rows: np.ndarray | None = None, block: int = 256
) -> np.ndarray:
    """theta_j' of the given rows (all when omitted), straight from the equation of 2605.09213."""
    n = len(angles)
    rows = np.arange(n) if rows is None else rows
    speeds = np.zeros(len(rows))
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        seen = np.arange(some[-1] + 1)
        weights = np.where(seen < some[:, None], np.exp(-slope * (some[:, None] - seen) / n), 0.0)
        gaps = angles[some][:, None] - angles[seen]
        forces = -beta * np.sin(gaps) * np.exp(beta * np.cos(gaps))
        total = weights.sum(axis=1)
        speeds[start : start + block] = np.sum(weights * forces, axis=1) / np.where(total, total, 1)
    return speeds


def by_filter(angles: np.ndarray, beta: float, slope: float) -> np.ndarray:
    """The same in linear time by hand: moments of the past as a linear filter, no bound on the error."""
    from scipy.signal import lfilter

    from ...theory import log_mode_rates, modes_needed

    q = np.exp(-slope / len(angles))
    masses = np.asarray(lfilter([0, q], [1, -q], np.ones(len(angles))))
    modes = np.arange(1, modes_needed(beta) + 1)
    coefficients = np.exp(log_mode_rates(len(modes), beta)) / modes
    wave, power, total = np.exp(1j * angles), np.ones(len(angles), complex), np.zeros(len(angles))
    for coefficient in coefficients:
        power = power * wave
        total += coefficient * np.imag(power * lfilter([0, q], [1, -q], np.conj(power)))
    return -2 * total / np.where(masses > 0, masses, 1.0)
