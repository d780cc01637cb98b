"""The limit profile S_t(s0): U-shaped for short times, without recency later or without a bias."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import optimize

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals, misprint
from ....theory import kinetic as theory
from .. import PAPER
from .shared import ATTENTIVE, BIASED

# Positions on which profiles are scanned: every minimum lies above 1e-6 for the draws below.
SCAN = np.geomspace(1e-8, 1.0, 4001)


@PAPER.claim(
    "lost-in-the-middle",
    where="theorem on lost in the middle",
    says="For lambda, beta > 0 and t sup_n a_n <= min(3 - sqrt 3, 2(1 - e^{-lambda})) the profile S_t "
    "grows without bound as s0 -> 0, rises at s0 = 1, and has one minimum in between.",
    given={"draws": 6, "share": 1.0, "n": 100, "reading": "limit"},
    at_paper_scale={"draws": 100},
    options={"reading": ("limit", "finite")},
    needs={
        "t sup a_n is at most the stated constant": lambda c: 0 < c.share <= 1,
    },
    control=broken("three times the stated time lies beyond the recency threshold", share=3.0),
    errata=[
        misprint(
            "at finite N the accuracy depends on s0 through floor(s0 N) only, so its minimum is attained "
            "on an interval of length 1/N: uniqueness is that of the limit profile",
            reading="finite",
        )
    ],
    note="beta, lambda and the number of words are drawn from [0.2, 4], [0.3, 4] and 2..12; t is `share` of "
    "the stated time. The last comparison is the length of the set where S_t is least. floor(s0 N) names no "
    "token for s0 < 1/N: tokens are counted from 1 here, and s0 = k/N.",
)
def lost_in_the_middle(case: Case) -> list[Comparison]:
    """S(1e-300)/S(1e-30), S'(1-)/S(1), the number of minima and their extent, on 4001 positions."""
    rng = np.random.default_rng(case.seed)
    primacy, recency, minima, extents = [], [], [], []
    for _ in range(case.draws):
        beta, slope = rng.uniform(0.2, 4.0), rng.uniform(0.3, 4.0)
        words = int(rng.integers(2, 13))
        t = case.share * float(theory.smallness_time(beta, slope))
        s0 = SCAN if case.reading == "limit" else np.ceil(SCAN * case.n) / case.n
        heights = theory.log_retrieval_profile(s0, beta, t, slope, words)
        far, near = theory.log_retrieval_profile([1e-300, 1e-30], beta, t, slope, words)
        primacy.append(far - near)
        end = theory.retrieval_profile(1.0, beta, t, slope, words)
        recency.append(theory.recency_slope(beta, t, slope, words) / end)
        minima.append(_minima(heights))
        lowest = SCAN[heights <= heights.min()]
        extents.append(lowest[-1] - lowest[0])
    return [
        at_least("log S(1e-300)/S(1e-30)", primacy, 1.0),
        at_least("S'(1-)/S(1)", recency, 0.0),
        equals("number of minima inside (0, 1)", minima, 1, 0.0),
        equals("length of the set of minima", extents, 0.0, 1e-12),
    ]


def _minima(heights: np.ndarray) -> int:
    """How often heights turn from falling to rising, a level stretch counting as one place."""
    steps = np.sign(np.diff(heights))
    return int(np.sum(np.diff(steps[steps != 0]) == 2))


@PAPER.claim(
    "recency-threshold",
    where="derived from the closed form; the authors' script has the same formula",
    says="S_t'(1-) > 0 exactly for t below t_crit = 2(1 - e^{-lambda}) sum om_n a_n/sum om_n a_n^2, which "
    "lies above the time of the theorem.",
    given={"beta": 1.0, "slope": 1.0, "words": 8},
    at_paper_scale={"beta": 3.0},
    needs={**BIASED, **ATTENTIVE},
    control=broken("without a bias S_t decreases at every time", slope=0.0),
    note="The time is found as a root of a one-sided difference of S_t, steps 1e-4: error 1e-7 of t.",
)
def recency_threshold(case: Case) -> list[Comparison]:
    """The time at which the difference quotient of S_t at s0 = 1 changes sign, over t_crit."""
    numbers = (case.slope, case.words)
    scale = float(theory.recency_threshold(case.beta, 1.0, case.words))
    found = _sign_change(case, scale)
    critical = float(theory.recency_threshold(case.beta, *numbers))
    small = float(theory.smallness_time(case.beta, case.slope))
    return [
        equals("time of the last recency", found, critical, 1e-6 * scale),
        at_most("stated time over t_crit", small / critical if critical else np.nan, 1.0),
    ]


def _sign_change(case: Case, scale: float) -> float:
    """Where the second-order one-sided slope at s0 = 1 vanishes; NaN where it never does."""
    step = 1e-4 / case.refine

    def slope(t: float) -> float:
        last = theory.retrieval_profile(
            1 - step * np.arange(3), case.beta, t, case.slope, case.words
        )
        return float(3 * last[0] - 4 * last[1] + last[2]) / t

    low, high = 1e-3 * scale, 20 * scale
    if slope(low) * slope(high) > 0:
        return float("nan")
    return cast(float, optimize.brentq(slope, low, high, xtol=1e-12 * scale))


@PAPER.claim(
    "no-recency-without-bias",
    where="remark on lambda = 0",
    says="For lambda = 0 the profile S_t decreases: the first token is remembered best, the last one worst.",
    given={"beta": 1.0, "t": 1.0, "slope": 0.0, "words": 8},
    at_paper_scale={"beta": 3.0, "t": 0.1},
    needs={"lambda = 0": lambda c: c.slope == 0.0, **ATTENTIVE},
    control=broken("with lambda = 1 the profile rises again towards the end", slope=1.0),
)
def no_recency_without_bias(case: Case) -> list[Comparison]:
    """The largest step of log S_t between neighbours of 4001 positions."""
    heights = theory.log_retrieval_profile(SCAN, case.beta, case.t, case.slope, case.words)
    return [at_most("largest rise of log S", np.max(np.diff(heights)), 0.0)]


@PAPER.claim(
    "primacy-rate",
    where="remark on primacy",
    says="S_t(s0) grows like e^{2 sqrt(a_max t log(1/s0))} as s0 -> 0, slower than any power.",
    given={"beta": 2.0, "t": 1.0, "slope": 1.0, "words": 8},
    at_paper_scale={"beta": 4.0},
    needs=ATTENTIVE,
    control=broken("without attention (beta ~ 0) there is nothing to remember", beta=0.0),
    note="The rate is d log S/d sqrt(L), L = log(1/s0), between s0 = 1e-280 and 1e-300. I_1's prefactor "
    "takes 1.5/sqrt(L) off it, and Y = L + log((e^lambda - 1)/lambda) a relative log(...)/2L: the tolerance.",
)
def primacy_rate(case: Case) -> list[Comparison]:
    """d log S/d sqrt(L) against 2 sqrt(a_max t), with its next orders as tolerance."""
    depth = np.log(10.0) * np.array([280.0, 300.0])
    if case.beta == 0:
        return [equals("d log S/d sqrt(log 1/s0)", np.nan, 0.0, 0.0)]
    heights = theory.log_retrieval_profile(
        np.exp(-depth), case.beta, case.t, case.slope, case.words
    )
    rate = np.diff(heights)[0] / np.diff(np.sqrt(depth))[0]
    predicted = 2 * np.sqrt(float(theory.largest_rate(case.beta)) * case.t)
    delay = float(theory.graphon_time(1.0, np.exp(-depth[0]), case.slope)) - depth[0]
    slack = 1.5 / np.sqrt(depth[0]) + predicted * abs(delay) / (2 * depth[0])
    power = np.diff(heights)[0] / np.diff(depth)[0]
    return [
        equals("d log S/d sqrt(log 1/s0)", rate, predicted, slack),
        at_most("local power of 1/s0", power, predicted / (2 * np.sqrt(depth[0])), 0.0),
    ]


@PAPER.claim(
    "double-well",
    where="signed heads (authors' script)",
    says="A signed combination of four heads loses two places of a prompt: its profile has two wells of "
    "equal depth.",
    given={"points": 4000, "signed": 1},
    at_paper_scale={"points": 40_000},
    needs={"heads of both signs": lambda c: c.signed == 1},
    control=broken("the same heads with positive weights lose one place", signed=2),
)
def double_well(case: Case) -> list[Comparison]:
    """Number of interior minima on [0.02, 0.98], the difference of their depths, the hill between."""
    heads = [
        head if case.signed == 1 else head._replace(weight=abs(head.weight))
        for head in theory.DOUBLE_WELL
    ]
    s0 = np.linspace(0.02, 0.98, case.points * case.refine + 1)
    heights = theory.signed_profile(s0, theory.DOUBLE_WELL_TIME, heads)
    wells = np.flatnonzero(np.diff(np.sign(np.diff(heights))) == 2) + 1
    depths = heights[wells]
    hill = heights[wells[0] : wells[-1] + 1].max() if len(wells) else np.nan
    return [
        equals("number of wells", len(wells), 2, 0.0),
        equals("difference of their depths", np.ptp(depths) if len(wells) else np.nan, 0.0, 1e-4),
        at_least("height of the hill between", hill - heights.min(), 0.04),
    ]
