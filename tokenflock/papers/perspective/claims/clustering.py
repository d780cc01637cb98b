"""Sections 4, 5 and 6: from almost every start all tokens meet in one point.

Statements on t -> infinity are checked at a finite horizon: all tokens within 1e-3 of each other. The
time to get there is heavy-tailed (a start close to a saddle takes long), so horizons are many times
the slowest rate known: that at which an antipodal pair, the slowest saddle of two clusters, breaks up.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import KINDS, MODELS, flow, largest_chord
from ....measure import from_array
from ....models import SA
from ....space import Sphere
from ....starts import perturbed, uniform
from ....weights import Weights
from .. import PAPER
from .shared import generic_or_polygon, pulled

BOTH = {"model": ("SA", "USA")}
STARTS = {"start": ("uniform", "polygon")}
TOGETHER = 1e-3
# E-foldings of an unstable distance before the horizon: e^14 takes it from 1e-6 to 1.
FOLDS = 14.0
REPELLED = broken("V = -I drives the tokens apart", sign=-1.0)
ATTRACTED = {"V = I": lambda c: c.sign == 1, "beta >= 0": lambda c: c.beta >= 0}


def _horizon(beta: float, model: Literal["SA", "USA"]) -> float:
    """Time for an antipodal pair to break up (FOLDS e-foldings) and for its halves to meet."""
    return FOLDS / float(theory.antipodal_growth_rate(0.5, 0.5, beta, KINDS[model])) + FOLDS


def _all_together(states: np.ndarray) -> Comparison:
    """The largest distance of two tokens at the last time, over all samples."""
    return at_most("largest distance of two tokens", largest_chord(states[..., -1, :, :]), TOGETHER)


@PAPER.claim(
    "thm-4.1",
    where="Theorem 4.1",
    says="At beta = 0 almost every start converges to a single point.",
    given={"n": 8, "d": 3, "beta": 0.0, "samples": 8, "start": "uniform"},
    at_paper_scale={"n": 32, "d": 128, "samples": 32},
    options=STARTS,
    needs={
        "beta = 0": lambda c: c.beta == 0,
        "the start is generic": lambda c: c.start == "uniform",
    },
    control=broken("a regular polygon, whose mean is zero, rests", start="polygon"),
    note="Checked for SA, which is USA at beta = 0.",
)
def flat_attention_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at t = 28.

    The mean grows at rate 1 - 1/d >= 1/2 from its size n^{-1/2}, then tokens close in at rate 1. A
    rounding error of the polygon grows at 1/2 only and is e^{14} 1e-16 by then.
    """
    times = np.linspace(0.0, 2 * FOLDS, 9)
    model = pulled("SA", case.beta, 1.0)
    return [_all_together(flow(case, model, generic_or_polygon(case), times))]


@PAPER.claim(
    "thm-4.2",
    where="Theorem 4.2",
    says="For small beta the tokens meet in one point with probability close to 1, whatever Q and K "
    "are, as long as V = I.",
    given={"n": 8, "d": 3, "beta": 0.1, "samples": 8, "sign": 1.0},
    at_paper_scale={"n": 32, "d": 128, "samples": 32},
    needs={**ATTRACTED, "beta is small (here at most 0.2)": lambda c: c.beta <= 0.2},
    control=REPELLED,
    note="How small beta has to be is not explicit in the paper.",
)
def nearly_flat_attention_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at the horizon, Q and K with N(0, 1/d) entries."""
    drawn = Weights.gaussian(case.d, case.seed)
    model = SA(case.beta, Weights(Q=drawn.Q, K=drawn.K, V=case.sign))
    x0 = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    times = np.linspace(0.0, 2 * _horizon(case.beta, "SA"), 9)
    return [_all_together(flow(case, model, x0, times))]


@PAPER.claim(
    "thm-4.2-perturbation",
    where="Proof of Theorem 4.2 (not numbered)",
    says="Up to a fixed time the tokens at small beta stay within a multiple of beta of those at "
    "beta = 0.",
    given={"n": 8, "d": 3, "beta": 1e-2, "samples": 2, "shift": 0.0},
    at_paper_scale={"n": 32, "d": 128},
    needs={
        "both flows have the same start": lambda c: c.shift == 0,
        "0 < beta <= 0.02": lambda c: 0 < c.beta <= 0.02,
    },
    control=broken("starts that differ by 0.02", shift=0.02),
    note="The paper's bound is O(beta) e^{3t}; for SA Gronwall's inequality gives the explicit "
    "beta (e^{2t} - 1)/2, which is checked together with the linearity in beta.",
    rtol=1e-11,
    atol=1e-13,
)
def distance_to_flat_attention(case: Case) -> list[Comparison]:
    """max |x^beta - x^0| at t <= 3 against beta (e^{2t} - 1)/2, and its ratio at beta and beta/10.

    On equal tokens the fields differ by at most beta (covariance of scores and tokens), and the field
    of beta = 0 has Lipschitz constant 2. The ratio is 10 up to a relative term of order beta t: 20
    beta covers it up to t = 3.
    """
    times = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 2.75, 3.0])
    plain = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    moved = perturbed(plain, case.shift, case.seed + 1000)
    x0 = from_array(plain.space, np.concatenate([plain.points, moved.points]))
    states = flow(case, SA(np.array([0.0, case.beta, case.beta / 10])), x0, times)
    flat, curved = states[0, : case.samples], states[1:, case.samples :]
    apart = np.linalg.norm(curved - flat, axis=-1).max(axis=(1, 3))
    bound = np.array([[1.0], [0.1]]) * case.beta * np.expm1(2 * times) / 2
    return [
        at_most("distance over its bound", apart / bound, 1.0),
        equals("ratio of distances", apart[0] / apart[1], 10.0, 10 * 20 * case.beta),
    ]


@PAPER.claim(
    "thm-4.3",
    where="Theorem 4.3",
    says="If beta is at most a constant over n, almost every start converges to a single point, also "
    "on the circle, under SA and under USA.",
    given={"n": 8, "d": 2, "beta": 0.125, "samples": 8, "start": "uniform"},
    at_paper_scale={"n": 32, "beta": 0.03125, "samples": 32},
    options=STARTS,
    needs={
        "beta <= C/n (here with C = 1)": lambda c: 0 <= c.beta <= 1 / c.n,
        "the start is generic": lambda c: c.start == "uniform",
    },
    control=broken("the regular polygon rests", start="polygon"),
    note="The constant C is not explicit in the paper; on the circle beta <= 1 suffices.",
)
def weak_attention_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at the horizon, both models."""
    times = np.linspace(0.0, _horizon(case.beta, "USA"), 9)
    x0 = generic_or_polygon(case)
    return [_all_together(flow(case, pulled(model, case.beta, 1.0), x0, times)) for model in MODELS]


@PAPER.claim(
    "thm-5.1-circle",
    where="Theorem 5.1 for d = 2, with the constant 1/pi^2 quoted in the text",
    says="On the circle, if beta is at least n^2/pi^2, almost every start converges to a single point.",
    given={"n": 4, "beta": 2.0, "samples": 8, "sign": 1.0},
    at_paper_scale={"n": 6, "beta": 4.0, "samples": 32},
    needs={**ATTRACTED, "beta >= n^2/pi^2": lambda c: c.beta >= c.n**2 / np.pi**2},
    control=REPELLED,
    note="The proof needs the n - 1 gaps, each below the peak tau* of the interaction, to leave part of "
    "the circle free: (n-1) tau* < pi. Later work shows that on the circle every beta >= 0 will do.",
)
def strong_attention_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at the horizon, and (n-1) tau* against pi."""
    x0 = uniform(Sphere(2), case.n, case.seed, samples=case.samples)
    times = np.linspace(0.0, _horizon(case.beta, "SA"), 9)
    states = flow(case, pulled("SA", case.beta, case.sign), x0, times)
    reach = (case.n - 1) * float(theory.kernel_peak(case.beta))
    return [_all_together(states), at_most("(n-1) tau*", reach, np.pi)]


IN_SPACE = {"n": 8, "d": 3, "beta": 1.5, "samples": 8, "sign": 1.0}
IN_SPACE_AT_PAPER_SCALE = {"n": 32, "d": 128, "samples": 32}


@PAPER.claim(
    "thm-6.1-sa",
    where="Theorem 6.1 for SA",
    says="In dimension at least 3, whatever beta is, SA brings almost every start to a single point.",
    given={**IN_SPACE, "model": "SA"},
    at_paper_scale=IN_SPACE_AT_PAPER_SCALE,
    options=BOTH,
    needs={**ATTRACTED, "d >= 3": lambda c: c.d >= 3},
    control=REPELLED,
)
def sa_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at the horizon."""
    return _synchronised_in_space(case)


@PAPER.claim(
    "thm-6.1-usa",
    where="Theorem 6.1 for USA",
    says="In dimension at least 3, whatever beta is, USA brings almost every start to a single point.",
    given={**IN_SPACE, "model": "USA"},
    at_paper_scale=IN_SPACE_AT_PAPER_SCALE,
    options=BOTH,
    needs={**ATTRACTED, "d >= 3": lambda c: c.d >= 3},
    control=REPELLED,
)
def usa_synchronises(case: Case) -> list[Comparison]:
    """Largest distance of two tokens at the horizon."""
    return _synchronised_in_space(case)


def _synchronised_in_space(case: Case) -> list[Comparison]:
    x0 = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    times = np.linspace(0.0, _horizon(case.beta, case.model), 9)
    return [_all_together(flow(case, pulled(case.model, case.beta, case.sign), x0, times))]
