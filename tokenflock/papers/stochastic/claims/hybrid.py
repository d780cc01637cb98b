r"""The hybrid model: unnormalised attention, driven by time and by one scalar noise.

x_i <- N(x_i + s F_i), F_i = (1/2) sum_j e^{beta<x_i,x_j>} x_j, s = dt + eps dB: an Ito step, since F is
taken before it. The Stratonovich reading takes F in the middle of the step; then R is a function of
t + eps B_t alone, which tends to infinity, and nothing depends on eps in the end.
"""

from __future__ import annotations

import functools

import numpy as np

from .... import theory
from ....errors import require
from ....ledger.claim import Case, Comparison, at_least, broken, equals
from ....runtime import ArrayLike
from .. import PAPER
from .chain import SMALL_GAP, normalised, overlaps, pairs
from .shared import NUMBER, SEEN

READINGS = ("ito", "stratonovich")
ITO = {"the noise is read in the sense of Ito": lambda c: c.reading == "ito"}
STRATONOVICH = broken(
    "read in the sense of Stratonovich, noise changes nothing", reading="stratonovich"
)
# Noise is measured as eps^2 e^beta, whose threshold is 2 at every beta.
THRESHOLD = 2.0
MOST_STEPS = 1_000_000


def step(x: np.ndarray, s: np.ndarray, beta: float, reading: str = "ito") -> np.ndarray:
    """One step of all runs; s is dt + eps dB of each."""
    if reading == "ito":
        return normalised(x + s * _field(x, beta))
    middle = normalised(x + s / 2 * _field(x, beta))
    push = _field(middle, beta)
    return normalised(x + s * (push - middle * np.sum(middle * push, axis=1, keepdims=True)))


def _field(x: np.ndarray, beta: float) -> np.ndarray:
    weights = np.exp(beta * overlaps(x)) / len(x)
    return np.sum(weights[:, :, None] * x, axis=1)


def noise_of(ratio: ArrayLike, beta: float) -> np.ndarray:
    """eps with eps^2 e^beta = ratio."""
    return np.sqrt(np.asarray(ratio) * theory.hybrid_threshold(beta) / THRESHOLD)


def overlaps_at(
    t: float, ratios: np.ndarray, beta: float, dt: float, seed: int, reading: str = "ito"
) -> np.ndarray:
    """R at time t from random starts, one run for each of the ratios eps^2 e^beta."""
    rng = np.random.default_rng(seed)
    runs = ratios.size
    x = pairs(rng.uniform(-0.9, 0.9, runs), 2)
    noise = np.sqrt(dt) * noise_of(ratios, beta)
    for _ in range(round(t / dt)):
        x = step(x, dt + noise * rng.normal(size=runs), beta, reading)
    return np.sum(x[0] * x[1], axis=0)


@functools.cache
def final_overlaps(
    ratio: float, beta: float, runs: int, t: float, dt: float, seed: int, reading: str = "ito"
) -> np.ndarray:
    """R at time t of many runs at one ratio; asked twice, it is computed once."""
    return overlaps_at(t, np.full(runs, ratio), beta, dt, seed, reading)


def measured_exponents(
    ratios: np.ndarray, beta: float, runs: int, dt: float, seed: int, reading: str = "ito"
) -> np.ndarray:
    """Lyapunov exponents (ratio, end) of the angle near 0 and near pi, over one step at a small gap.

    The same normal numbers, with both signs, serve every ratio.
    """
    normal = np.random.default_rng(seed).normal(size=runs)
    normal = np.concatenate([normal, -normal])
    found = np.empty((len(ratios), 2))
    for row, ratio in enumerate(ratios):
        s = dt + noise_of(ratio, beta) * np.sqrt(dt) * normal
        for column, end in enumerate((1.0, -1.0)):
            x = pairs(np.zeros(normal.size), 2)
            x[1] = end * normalised(x[0] + SMALL_GAP * x[1])
            y = step(x, s, beta, reading)
            gaps = [np.sqrt(np.sum((z[0] - end * z[1]) ** 2, axis=0)) for z in (x, y)]
            found[row, column] = np.mean(np.log(gaps[1] / gaps[0])) / dt
    return found


def crossings(ratios: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Where each column of exponents changes sign, by interpolation; NaN where it does not."""
    found = []
    for column in exponents.T:
        rising = column if column[-1] > column[0] else -column
        seen = rising[0] < 0 < rising[-1]
        found.append(np.interp(0.0, rising, ratios) if seen else np.nan)
    return np.array(found)


@PAPER.claim(
    "hybrid-threshold",
    where=f"the hybrid proposition ({NUMBER})",
    says="Two tokens under unnormalised attention and a scalar noise change from collapse to antipodality "
    "at eps^2 = 2 e^{-beta}.",
    given={"beta": 1.0, "runs": 20_000, "dt": 1e-4, "reading": "ito"},
    at_paper_scale={"runs": 1_000_000},
    options={"reading": READINGS},
    needs=ITO,
    resolves={
        "e^beta dt < 0.005, a small step": lambda c: c.dt < 0.005 * np.exp(-c.beta),
        "dt >= 1e-6, or rounding is all that is seen": lambda c: c.dt >= 1e-6,
        "runs >= 2000, to find the threshold within a tenth": lambda c: c.runs >= 2000,
    },
    control=STRATONOVICH,
    note=SEEN + " Both exponents, of the angle near 0 and near pi, must vanish there.",
)
def hybrid_threshold(case: Case) -> list[Comparison]:
    """eps^2 e^beta where the two exponents change sign.

    They are linear in eps^2 times the mean square of the normal numbers, whose relative standard error
    sqrt(2/runs) is that of the crossing; the next order of the step is 3 eps^2 e^{2 beta} dt/2 of it.
    """
    _check_step(case)
    ratios = np.linspace(1.0, 3.0, 5)
    dt = case.dt / case.refine
    exponents = measured_exponents(ratios, case.beta, case.runs, dt, case.seed, case.reading)
    error = 4 * THRESHOLD * np.sqrt(2 / case.runs) + 6 * THRESHOLD * np.exp(case.beta) * case.dt
    return [
        equals(f"eps^2 e^beta where the exponent at angle {place} vanishes", at, THRESHOLD, error)
        for place, at in zip(("0", "pi"), crossings(ratios, exponents), strict=True)
    ]


def _check_step(case: Case) -> None:
    require(case.dt > 0, f"the step dt must be positive, got {case.dt:g}")
    require(
        0 <= case.beta <= 20,
        f"beta must lie in [0, 20], where e^beta is a number, got {case.beta:g}",
    )


@PAPER.claim(
    "hybrid-switch",
    where=f"the hybrid proposition ({NUMBER})",
    says="Below eps^2 = 2 e^{-beta} two tokens under the hybrid model become one, above it they become "
    "antipodal.",
    given={"beta": 1.0, "runs": 200, "t": 30.0, "dt": 0.01, "reading": "ito"},
    at_paper_scale={"runs": 1000, "t": 60.0, "dt": 0.002},
    options={"reading": READINGS},
    needs=ITO,
    resolves={
        "t e^{-beta} >= 8, so that the slow end is left": lambda c: c.t * np.exp(-c.beta) >= 8,
        "e^beta dt <= 0.05, a small step": lambda c: c.dt <= 0.05 * np.exp(-c.beta),
        "runs >= 100, for shares": lambda c: c.runs >= 100,
    },
    control=STRATONOVICH,
    note=SEEN + " Half and one and a half times the threshold, from R uniform in [-0.9, 0.9].",
)
def hybrid_switch(case: Case) -> list[Comparison]:
    """Shares of runs on the expected side of R = 0 at time t.

    The slow end is pi: there the log of the angle has drift e^{-beta}/2 and variance eps^2 e^{-2 beta}, so
    that it is on the wrong side after t with probability of about e^{-t/(8 eps^2)}, below e^{-3}.
    """
    _check_step(case)
    require(
        0 < case.t <= MOST_STEPS * case.dt,
        f"t must be 1 to {MOST_STEPS} steps dt, got t={case.t:g}, dt={case.dt:g}",
    )
    low, high = (
        final_overlaps(ratio, case.beta, case.runs, case.t, case.dt, case.seed, case.reading)
        for ratio in (THRESHOLD / 2, 1.5 * THRESHOLD)
    )
    return [
        at_least("share of runs that merge below the threshold", np.mean(low > 0), 0.95),
        at_least("share of runs at antipodes above the threshold", np.mean(high < 0), 0.95),
    ]
