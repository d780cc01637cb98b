"""Softmax attention with V = I on Gaussians: the closed form, blow-up, and the loss of rank."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_most, broken, equals
from .. import PAPER, closed_forms
from .shared import NUMBER, attention, flow, random_covariance, random_score, skew

IDENTITY = {"V = I": lambda c: c.tilt == 0.0}


def _value(case: Case) -> np.ndarray:
    """V = I, or I and a rotation where the hypothesis is to be broken."""
    return np.eye(case.d) + case.tilt * skew(case.d)


@PAPER.claim(
    "softmax-solution",
    where=f"softmax with V = I ({NUMBER})",
    says="For V = I and symmetric A, Sigma(t) = (Sigma_0^{-1} - 2tA)^{-1} and alpha(t) = e^t (I - 2t "
    "Sigma_0 A)^{-1/2} alpha_0.",
    given={"d": 3, "share": 0.8, "tilt": 0.0},
    at_paper_scale={"d": 12},
    needs={
        **IDENTITY,
        "before the blow-up": lambda c: 0 < c.share < 1,
    },
    control=broken("another V turns the covariance", tilt=0.5),
    note="A has eigenvalues of both signs; t is `share` of the time of blow-up. The formula for alpha(t) "
    "is derived here.",
    rtol=1e-10,
    atol=1e-12,
)
def softmax_solution(case: Case) -> list[Comparison]:
    """Mean and covariance at t, relative to their size; the solver's rtol, amplified near blow-up."""
    rng = np.random.default_rng(case.seed)
    covariance, mean = random_covariance(rng, case.d), rng.normal(size=case.d)
    A = random_score(rng, np.linspace(-1.0, 0.8, case.d))
    t = case.share * closed_forms.softmax_blow_up_time(covariance, A)
    run = flow(case, attention("softmax", A, _value(case)), mean, covariance, t)
    state = np.asarray(run.final.state)
    spread = closed_forms.softmax_covariance(t, covariance, A)
    centre = closed_forms.softmax_mean(t, mean, covariance, A)
    return [
        equals("covariance", state[1:] / np.abs(spread).max(), spread / np.abs(spread).max(), 1e-7),
        equals("mean", state[0] / np.abs(centre).max(), centre / np.abs(centre).max(), 1e-7),
    ]


@PAPER.claim(
    "softmax-blow-up",
    where=f"softmax with V = I ({NUMBER})",
    says="For V = I and symmetric A with a positive direction the covariance blows up at t* = 1/(2 "
    "lambda_max(Sigma_0^{1/2} A Sigma_0^{1/2})).",
    given={"d": 3, "largest": 0.8, "tilt": 0.0},
    at_paper_scale={"d": 12},
    needs={**IDENTITY, "A has a positive direction": lambda c: c.largest > 0},
    control=broken("for A < 0 the covariance is defined for ever", largest=-0.3),
    note="The run ends where the second moment grows so fast that 1e-8 of the time gone is left, and "
    "says when that would be over.",
    rtol=1e-10,
    atol=1e-12,
)
def softmax_blow_up(case: Case) -> list[Comparison]:
    """Whether the run ends in time, and the time it tells over t*; the rate r = 1/(t* - t) leaves 1e-8.

    Asked for 2 t*, the run reaches half of it. Without a positive direction there is no t* to compare with,
    only whether a run of length 4 ends early.
    """
    rng = np.random.default_rng(case.seed)
    covariance, mean = random_covariance(rng, case.d), rng.normal(size=case.d)
    A = random_score(rng, np.linspace(-1.0, case.largest, case.d))
    expected = closed_forms.softmax_blow_up_time(covariance, A)
    known = np.isfinite(expected)
    t1 = 2 * expected if known else 4.0
    run = flow(case, attention("softmax", A, _value(case)), mean, covariance, t1)
    told = run.health["blow_up_time"]
    ends = at_most("time reached, over the time asked for", run.reached / t1, 0.5, 1e-6)
    return (
        [ends, equals("time of blow-up, over t*", told / expected, 1.0, 1e-6)] if known else [ends]
    )


@PAPER.claim(
    "rank-loss",
    where=f"clustering of Gaussian data ({NUMBER})",
    says="For V = I and A <= 0 of rank r the covariance converges, at the rate 1/t, to one of rank d - r: "
    "tokens cluster on a subspace.",
    given={"d": 3, "rank": 1, "t": 3e3, "sign": -1.0},
    at_paper_scale={"d": 12, "rank": 5},
    needs={
        "A <= 0": lambda c: c.sign < 0,
        "A has rank r < d": lambda c: 0 < c.rank < c.d,
    },
    control=broken("for A >= 0 the covariance blows up", sign=1.0),
    rtol=1e-10,
    atol=1e-12,
)
def rank_loss(case: Case) -> list[Comparison]:
    """Number of eigenvalues above 1e-2, and t |Sigma(t) - limit| against its bound.

    In the frame of Sigma_0^{1/2} A Sigma_0^{1/2} an eigenvalue -a leaves 1/(1 + 2ta) < 1/(2ta), with a at
    least |A|_min lambda_min(Sigma_0), = 0.5 x 0.4; eigenvalues that stay are at least 0.4.
    """
    rng = np.random.default_rng(case.seed)
    covariance = random_covariance(rng, case.d)
    sizes = np.zeros(case.d)
    sizes[: case.rank] = case.sign * np.linspace(0.5, 1.0, case.rank)
    A = random_score(rng, sizes)
    run = flow(case, attention("softmax", A, np.eye(case.d)), np.zeros(case.d), covariance, case.t)
    found = np.asarray(run.final.state)[1:]
    limit = closed_forms.softmax_limit(covariance, -np.sign(case.sign) * A)
    gap = case.t * np.linalg.norm(found - limit, 2)
    return [
        equals("rank", float(np.sum(np.linalg.eigvalsh(found) > 1e-2)), case.d - case.rank, 0.0),
        at_most("t |Sigma(t) - limit|", gap, 1.2 / (2 * 0.5 * 0.4)),
    ]
