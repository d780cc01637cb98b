"""Section 6.3: one attention layer on a long context, beta = gamma log n."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import field, gram, off_diagonal, unit
from ....measure import from_array
from ....models import SA
from ....space import Euclidean, Sphere
from ....starts import equiangular
from .. import PAPER, closed_forms

WHERE = "Section 6.3, theorem on the long-context phase transition (number not seen)"


def _correlations(case: Case, n: int, ratio: float) -> np.ndarray:
    """<theta_i, theta_j> after one layer at gamma = ratio/(1 - rho), for all pairs.

    In R^d nothing is projected: the velocity of SA is the attention average itself.
    """
    tokens = np.asarray(equiangular(Sphere(n), n, case.rho).points)
    model = SA(ratio * float(closed_forms.critical_gamma(case.rho)) * np.log(n))
    averages = field(model, from_array(Euclidean(n), tokens)) + case.residual * tokens
    directions = unit(averages)
    return off_diagonal(gram(directions))


@PAPER.claim(
    "attention-layer",
    where=WHERE,
    says="One attention layer without residual turns n equiangular tokens into equiangular ones "
    "with the inner product of a closed formula.",
    given={"n": 64, "rho": 0.5, "residual": 0.0},
    at_paper_scale={"n": 1000},
    needs={
        "0 < rho < 1": lambda c: 0 < c.rho < 1,
        "the layer has no residual connection": lambda c: c.residual == 0,
    },
    control=broken("with a residual the tokens keep more of their own direction", residual=1.0),
    note="The survey gives the limits only; the formula at finite n is derived from its layer.",
)
def correlation_at_finite_n(case: Case) -> list[Comparison]:
    """All pairs at gamma = 0.5, 0.9, 1, 1.1, 1.5 times critical against the formula."""
    ratios = np.array([0.5, 0.9, 1.0, 1.1, 1.5])
    gammas = ratios * closed_forms.critical_gamma(case.rho)
    measured = np.array([_correlations(case, case.n, ratio) for ratio in ratios])
    expected = closed_forms.long_context_correlation(case.rho, gammas, case.n)
    return [equals("<theta_i, theta_j>", measured, expected[:, None], 1e-12)]


# Phase: gamma (1 - rho), what it must satisfy, in words, the ratio of the control.
PHASES = {
    "below": (0.5, "gamma < 1/(1 - rho)", lambda c: c.ratio < 1, "align completely: 1", 1.5),
    "critical": (
        1.0,
        "gamma = 1/(1 - rho)",
        lambda c: c.ratio == 1,
        "align in part: 4 rho/(1 + 3 rho)",
        1.3,
    ),
    "above": (2.0, "gamma > 1/(1 - rho)", lambda c: c.ratio > 1, "stay as they were: rho", 0.7),
}


def _distance(case: Case, n: int) -> float:
    """Leading term of the distance from the limit at finite n, from the layer's exact formula."""
    rho, power = case.rho, abs(1 - case.ratio)
    if case.phase == "below":
        return (1 - rho) / rho * n ** (-2 * power)
    if case.phase == "above":
        return 2 * rho * (1 - rho) * n**-power
    return (1 - rho) * (3 + rho) / ((1 + 3 * rho) ** 2 * n)


def _limit(case: Case) -> list[Comparison]:
    """The limit at n/8 and n, each within twice the leading term of the distance from it."""
    nominal = PHASES[case.phase][0] * closed_forms.critical_gamma(case.rho)
    limit = closed_forms.long_context_limit(case.rho, nominal)
    return [
        equals(
            f"<theta_i, theta_j> at n = {n}",
            _correlations(case, n, case.ratio),
            limit,
            2 * _distance(case, n),
        )
        for n in (max(case.n // 8, 2), case.n)
    ]


for _name, (_ratio, _condition, _holds, _words, _other) in PHASES.items():
    PAPER.claim(
        f"long-context-{_name}",
        where=WHERE,
        says=f"With beta = gamma log n and {_condition} the outputs of one attention layer on many "
        f"equiangular tokens {_words}.",
        given={"n": 256, "rho": 0.4, "ratio": _ratio, "phase": _name, "residual": 0.0},
        at_paper_scale={"n": 2048},
        options={"phase": tuple(PHASES)},
        needs={
            "0 < rho < 1": lambda c: 0 < c.rho < 1,
            _condition: _holds,
            "the layer has no residual connection": lambda c: c.residual == 0,
        },
        resolves={
            "n so large that the limit is within 0.1: gamma away from its critical value": lambda c: (
                _distance(c, max(c.n // 8, 2)) <= 0.1
            )
        },
        control=broken("another gamma is in another phase", ratio=_other),
        note="ratio is gamma (1 - rho). Convergence in n is slow near the critical value.",
    )(_limit)
