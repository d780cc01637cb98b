"""Section 4.3, remark: equiangular tokens under the six schemes, and their clocks."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import flow
from ....space import Sphere
from ....starts import equiangular, uniform
from .. import PAPER
from .shared import GROWING, LABELS, NAMES, attention, clock, path

# Times of comparison; the law is read between the last two, where 1 - rho is small.
TIMES = {
    "post": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    "ngpt": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0),
    "sqrt": (1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0, 24.0),
    "pre": (1.0, 4.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
    "mix": (1.0, 4.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
    "peri": (1.0, 4.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
}
LAWS = {
    "post": "e^(-2t)",
    "pre": "t^(-2)",
    "mix": "t^(-2)",
    "peri": "t^(-2)",
    "ngpt": "e^(-2 alpha t)",
    "sqrt": "e^(-4 sqrt(t+1))",
}
# The scheme whose law replaces the right one in the control.
OTHERS = {
    "post": "sqrt",
    "pre": "peri",
    "mix": "pre",
    "peri": "pre",
    "ngpt": "post",
    "sqrt": "post",
}


def _collapse(case: Case) -> list[Comparison]:
    """log(1 - rho(t)) of all pairs against the closed system, and its late slope against -2.

    The slope is taken in the clock of the scheme. Tolerance: near the cluster the rate is
    2 (1 - O((1 + beta)(1 - rho))), and where radii grow r differs from t as theory's radius does.
    """
    times = np.array(TIMES[case.scheme])
    x0 = equiangular(Sphere(case.d), case.n)
    states, _ = path(case, attention(case, case.scheme), x0, times)
    differences = states[1:, :, None, :] - states[1:, None, :, :]
    first, second = np.triu_indices(case.n, 1)
    gaps = np.sum(differences**2, axis=-1)[:, first, second] / 2
    options = {"alpha": case.alpha, "tau": case.tau}
    expected = theory.solve_scheme(case.predicted, times, case.n, case.beta, **options)
    neglected = 4 * (1 + case.beta) * expected.gap[-2]
    if case.scheme in GROWING:
        neglected += 4 * np.max(np.abs(expected.radius / times - 1)[-2:])
    ticks = np.diff(clock(case.predicted, times, case.alpha))[-1]
    slopes = np.diff(np.log(gaps), axis=0)[-1] / ticks
    return [
        equals("log(1 - rho(t))", np.log(gaps), np.log(expected.gap)[:, None], 1e-3),
        equals("late d log(1 - rho)/d clock", slopes, -2.0, float(neglected)),
    ]


for _name in NAMES:
    PAPER.claim(
        f"collapse-{_name}",
        where="Section 4.3, remark (number not seen); Post and Pre also in 2512.01868, Section 6.2",
        says=f"Equiangular tokens collapse under {LABELS[_name]} like 1 - rho ~ {LAWS[_name]}, on "
        "the orbit that all schemes share.",
        given={
            "n": 8,
            "d": 16,
            "beta": 2.0,
            "alpha": 0.7,
            "tau": 2.0,
            "scheme": _name,
            "predicted": _name,
        },
        at_paper_scale={"n": 64, "d": 128},
        options={"scheme": NAMES, "predicted": NAMES},
        needs={
            "d >= n, so that n orthogonal tokens exist": lambda c: c.d >= c.n,
            "the law is that of the scheme": lambda c: c.scheme == c.predicted,
        },
        control=broken(f"it is not the law of {LABELS[OTHERS[_name]]}", predicted=OTHERS[_name]),
        note="alpha is constant here, so that int alpha = alpha t." if _name == "ngpt" else "",
    )(_collapse)


@PAPER.claim(
    "time-change",
    where="Supplement, proposition on time changes (number not seen)",
    says="sqrt-scaling moves any tokens along the path of Post-LN, and has come at time t as far "
    "as Post-LN at time 2(sqrt(t+1) - 1).",
    given={"n": 8, "d": 16, "beta": 3.0, "clock": "sqrt"},
    at_paper_scale={"n": 64},
    options={"clock": ("sqrt", "log")},
    needs={"the clock is int dt/s with s = sqrt(t+1)": lambda c: c.clock == "sqrt"},
    control=broken("log(1+t), the clock of a radius 1 + t, is another one", clock="log"),
)
def same_path_on_another_clock(case: Case) -> list[Comparison]:
    """max |x_sqrt(t) - x_post(2(sqrt(t+1) - 1))| over tokens and times."""
    times = np.array([0.5, 1.0, 2.0, 4.0, 6.0, 8.0])
    x0 = uniform(Sphere(case.d), case.n, case.seed)
    slow = flow(case, attention(case, "sqrt"), x0, times)
    elapsed = 2 * (np.sqrt(times + 1) - 1) if case.clock == "sqrt" else np.log1p(times)
    fast = flow(case, attention(case, "post"), x0, elapsed)
    # Both runs are accurate to about 1e-8 per unit of time; nearby paths separate at most like e^t.
    return [equals("|x_sqrt(t) - x_post(clock(t))|", slow - fast, 0.0, 1e-5)]
