"""Sections 2 and 5: tokens in separated caps stay in the doubled caps and collapse inside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dynamics import Dynamics
from ....integrate import LogTime, Merge
from ....ledger.claim import Case, Comparison, at_least, at_most, broken
from ....ledger.measure import field, flow, gram
from ....measure import Measure, from_array
from ....models import SA, USA
from ....space import Sphere
from ....starts import mixture
from ....weights import Weights
from .. import PAPER, closed_forms

# Glued tokens were this close. The claims allow squared distances of 2 e^{-beta} (1e-5 at beta = 12)
# and drops of the alignment of 1e-2, so gluing at squared distance 1e-10 decides nothing.
GLUED = 1e-5
LONG_TIMES: dict[str, Any] = {"clock": LogTime(), "merge": Merge(GLUED)}


def model_of(name: str, beta: float) -> Dynamics:
    """SA, or USA with the weights e^{beta(<x,y> - 1)}/n of this paper."""
    return SA(beta) if name == "SA" else USA(beta, "metastability")


def centre_pair(case: Case) -> np.ndarray:
    """Two unit vectors at the angle of the case, in a random plane, (2, d)."""
    axes = np.linalg.qr(np.random.default_rng(case.seed).normal(size=(case.d, 2)))[0].T
    return np.stack([axes[0], np.cos(case.angle) * axes[0] + np.sin(case.angle) * axes[1]])


def membership(n: int) -> np.ndarray:
    """The cap of each token: three eighths of them in the first, the others in the second."""
    return np.repeat([0, 1], [3 * n // 8, n - 3 * n // 8])


def tokens_in_caps(case: Case, weights: np.ndarray | None = None) -> Measure:
    """n tokens in the caps S_q(eps), {x : <x, w_q> >= 1 - eps}, for every sample."""
    radius = float(np.arccos(1 - case.eps))
    crowd = mixture(Sphere(case.d), centre_pair(case), case.n, case.seed, radius, case.samples)
    chosen = np.arange(case.n) + case.n * membership(case.n)
    masses = np.full(case.n, 1 / case.n) if weights is None else weights
    return from_array(crowd.space, np.asarray(crowd.points)[..., chosen, :], masses)


def window(case: Case) -> closed_forms.MetastabilityWindow:
    """The constants of the theorem for this case."""
    return closed_forms.metastability_window(case.eps, case.angle, case.n, case.beta, case.rate)


def separated(case: Case) -> bool:
    """beta > 1, eps < 1/16, gamma > 0 and lambda below both of its bounds."""
    return case.beta > 1 and 0 < case.eps < 1 / 16 and bool(window(case).holds)


def own_alignment(states: np.ndarray, case: Case) -> np.ndarray:
    """<x_i, w_q> with the centre w_q of the token's own cap, (..., n)."""
    return np.sum(states * centre_pair(case)[membership(case.n)], axis=-1)


def own_cap_chords(states: np.ndarray, n: int) -> np.ndarray:
    """|x_i - x_j|^2 of the pairs in one cap, (..., pairs)."""
    cap = membership(n)
    differences = states[..., :, None, :] - states[..., None, :, :]
    return np.sum(differences**2, axis=-1)[..., cap[:, None] == cap[None, :]]


TWO_CAPS = {"n": 8, "d": 3, "beta": 12.0, "eps": 0.01, "angle": 2.8, "rate": 1.0, "samples": 4}
SEPARATED = {
    "the start is (beta, eps)-separated and lambda is below its two bounds": separated,
    "at least two tokens in each cap": lambda c: c.n >= 6,
}


def stays_in_caps(case: Case) -> list[Comparison]:
    """min over tokens, samples and times of <x_i, w_q> on [0, T2], against 1 - 2 eps."""
    last = case.stretch * float(np.exp(window(case).log_lifetime))
    times = np.geomspace(1.0, last, 8)
    states = flow(case, model_of(case.model, case.beta), tokens_in_caps(case), times, **LONG_TIMES)
    return [at_least("<x_i, w_q>(t)", own_alignment(states, case), 1 - 2 * case.eps)]


def collapses_in_caps(case: Case) -> list[Comparison]:
    """max over pairs of one cap, samples and times in [T1, T2] of |x_i - x_j|^2."""
    bounds = window(case)
    times = np.geomspace(float(bounds.collapse_time), float(np.exp(bounds.log_lifetime)), 8)
    model, x0 = model_of(case.model, case.beta), tokens_in_caps(case)
    states = flow(case, model, x0, case.stretch * times, **LONG_TIMES)
    allowed = 2 * np.exp(-case.rate * case.beta)
    return [at_most("|x_i - x_j|^2(t) in one cap", own_cap_chords(states, case.n), allowed)]


def claim_both_parts(model: str, words: str) -> None:
    """The two parts of the theorem, for one model."""
    PAPER.claim(
        f"caps-hold-{model.lower()}",
        where="Section 2, metastability theorem, part 1 (not numbered in our source)",
        says=f"Under {words}, tokens of separated caps stay in the doubled caps for a time "
        "exponential in beta.",
        given={**TWO_CAPS, "model": model, "stretch": 1.0},
        at_paper_scale={"n": 32, "d": 8, "beta": 14.0},
        options={"model": ("SA", "USA")},
        needs={**SEPARATED, "no time exceeds the bound T2": lambda c: c.stretch <= 1},
        control=broken("caps live long, not for ever: far beyond T2 they merge", stretch=1e6),
        note="T2 is a lower bound: the caps live much longer. Tokens closer than 1e-5 are glued.",
    )(stays_in_caps)
    PAPER.claim(
        f"caps-collapse-{model.lower()}",
        where="Section 2, metastability theorem, part 2 (not numbered in our source)",
        says=f"Under {words}, the tokens of one separated cap are exponentially close to each other "
        "during the whole window from T1 to T2.",
        given={**TWO_CAPS, "model": model, "stretch": 1.0},
        at_paper_scale={"n": 32, "d": 8, "beta": 14.0},
        options={"model": ("SA", "USA")},
        needs={**SEPARATED, "the times lie in [T1, T2]": lambda c: c.stretch == 1},
        control=broken("well before T1 the caps have not collapsed", stretch=1e-3),
        note="T1 is an upper bound, several times the time needed. Tokens closer than 1e-5 are "
        "glued.",
    )(collapses_in_caps)


claim_both_parts("SA", "softmax attention")
claim_both_parts("USA", "unnormalised attention")


@PAPER.claim(
    "cap-contraction",
    where="Section 2, differential inequality of the proof (eq. ze.equation)",
    says="The smallest inner product rho inside a cap rises at least as fast as attraction inside "
    "minus the pull of the other caps allows.",
    given={**TWO_CAPS, "samples": 6, "sign": 1.0},
    at_paper_scale={"n": 64, "d": 16, "rate": 0.5, "samples": 32},
    needs={**SEPARATED, "tokens attract each other (V = I)": lambda c: c.sign == 1},
    control=broken("with V = -I the tokens of a cap repel each other", sign=-1.0),
    note="Derived again: the own pair gives (2/n)(1 - rho^2) e^{beta(rho-1)}, every token of another "
    "cap at least -e^{-(1-alpha)beta} per side.",
)
def cap_contraction(case: Case) -> list[Comparison]:
    """d rho/dt - [(2/n) rho (1-rho) e^{beta(rho-1)} - 2n e^{-(1-alpha)beta}] >= 0, SA and USA."""
    value = Weights(V=case.sign)
    models = {
        "SA": SA(case.beta, value),
        "USA": USA(case.beta, "metastability", value),
    }
    leak = 2 * case.n * np.exp(-(1 - float(window(case).alpha)) * case.beta)
    batch = tokens_in_caps(case)
    return [
        at_least(
            f"rate of rho beyond its bound ({name})",
            [_excess(model, batch.at(points), case, leak) for points in batch.points],
            0.0,
        )
        for name, model in models.items()
    ]


def _excess(model: Dynamics, tokens: Measure, case: Case, leak: float) -> float:
    """The smallest excess over the two caps, at the pair that attains rho."""
    x, velocity, cap = np.asarray(tokens.points), field(model, tokens), membership(case.n)
    inner, rates = gram(x), velocity @ x.T + x @ velocity.T
    excesses = []
    for q in (0, 1):
        own = np.ix_(cap == q, cap == q)
        lowest = np.argmin(inner[own])
        rho = inner[own].flat[lowest]
        bound = 2 / case.n * rho * (1 - rho) * np.exp(case.beta * (rho - 1)) - leak
        excesses.append(rates[own].flat[lowest] - bound)
    return min(excesses)


def balanced_weights(case: Case) -> np.ndarray:
    """Random masses inside the caps; the first cap has mass `share`, the other the rest."""
    cap = membership(case.n)
    raw = np.random.default_rng(case.seed + 1).uniform(0.2, 1.0, size=case.n)
    totals = np.array([raw[cap == q].sum() for q in (0, 1)])
    return raw / totals[cap] * np.array([case.share, 1 - case.share])[cap]


def mean_field_separated(case: Case) -> bool:
    """gamma with k = 2 caps in the place of n exceeds 8 eps."""
    allowed = case.beta > 1 and 0 < case.eps < 1 / 16
    return (
        allowed
        and float(closed_forms.separation(case.eps, case.angle, 2, case.beta)) > 8 * case.eps
    )


@PAPER.claim(
    "mean-field-caps",
    where="Section 5, mean-field metastability theorem (not numbered in our source)",
    says="For a measure in k separated caps of equal mass, the bounds hold with the number of caps "
    "in the place of the number of tokens.",
    given={**TWO_CAPS, "share": 0.5},
    at_paper_scale={"n": 64, "d": 8, "beta": 14.0},
    needs={
        "the measure is (beta, eps)-separated: gamma with n = k exceeds 8 eps": mean_field_separated,
        "all caps have the same mass": lambda c: c.share == 0.5,
    },
    control=broken("a cap of mass 1e-7 is swallowed by the other early", share=1e-7),
    note="Checked at t = (eps/k) e^{beta(1-alpha-8 eps)}, which the theorem puts between T1 and T2, "
    "for SA; the minimum over the flowed cap is taken over the tokens in it.",
)
def mean_field_caps(case: Case) -> list[Comparison]:
    """Alignment >= 1 - 2 eps, and the variance of a cap about its lowest token <= e^{-gamma beta}."""
    alpha = float(closed_forms.cap_alpha(case.eps, case.angle))
    gamma = float(closed_forms.separation(case.eps, case.angle, 2, case.beta))
    last = case.eps / 2 * np.exp(case.beta * (1 - alpha - 8 * case.eps))
    weights, cap = balanced_weights(case), membership(case.n)
    x0 = tokens_in_caps(case, weights)
    states = flow(case, SA(case.beta), x0, np.geomspace(1.0, last, 8), **LONG_TIMES)
    alignment, final = own_alignment(states, case), states[:, -1]
    variances = []
    for q in (0, 1):
        own, lowest = final[:, cap == q], np.argmin(alignment[:, -1, cap == q], axis=-1)
        spread = np.sum((own - own[np.arange(len(own)), lowest][:, None]) ** 2, axis=-1)
        variances.append(spread @ weights[cap == q])
    return [
        at_least("<x, w_q> on the support", alignment, 1 - 2 * case.eps),
        at_most("variance of a cap", np.array(variances), np.exp(-gamma * case.beta)),
    ]
