"""Section 6: on the circle the energy climbs a staircase, one merge per step."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....errors import require
from ....integrate import LogTime, Merge, Save, solve
from ....kinds import Unnormalised
from ....ledger.claim import Case, Comparison, broken, equals, misprint
from ....ledger.measure import field, flow
from ....measure import from_angles
from ....models import USA
from ....observables import scaled_energy
from .. import PAPER

FORMS = {"form": ("corrected", "printed")}
# c log(beta)/beta of the definition of well-prepared angles, which needs c > 1.
PREPARED = 1.5
GLUED = 1e-3


def prepared_angles(case: Case) -> np.ndarray:
    """Angles with cos(th_i - th_1) = cos(th_{i+1} - th_i) + c log(beta)/beta for 2 <= i < n.

    `start` = "crowded" puts the last token as far from the one before as the second from the first.
    """
    first = case.first * (1 + 0.05 * np.random.default_rng(case.seed).uniform(-1, 1))
    angles = [0.0, first]
    step = PREPARED * np.log(case.beta) / case.beta
    while len(angles) < case.n:
        angles.append(angles[-1] + np.arccos(max(np.cos(angles[-1]) - step, -1.0)))
    if case.start == "crowded":
        angles[-1] = angles[-2] + first
    return np.array(angles)


def checked_angles(case: Case) -> np.ndarray:
    """The angles of the case, if they fit on the half circle."""
    angles = prepared_angles(case)
    require(
        angles[-1] < np.pi,
        f"{case.n} well-prepared tokens do not fit on a half circle; lower n or first",
    )
    return angles


def well_prepared(case: Case) -> bool:
    """0 <= th_1 < ... < th_n <= pi, and every token is closer to the first than to a later one."""
    angles, step = prepared_angles(case), np.log(case.beta) / case.beta
    inside = bool(np.all(np.diff(angles) > 0)) and angles[-1] <= np.pi
    return inside and all(
        np.cos(angles[i]) > np.cos(angles[k] - angles[i]) + step
        for i in range(1, case.n - 1)
        for k in range(i + 1, case.n)
    )


def next_gaps(angles: np.ndarray) -> np.ndarray:
    """Angle from the mean of the first q tokens, where USA merges them, to token q + 1."""
    count = np.arange(1, len(angles))
    return angles[1:] - np.cumsum(angles)[:-1] / count


def merge_times(case: Case, angles: np.ndarray) -> np.ndarray:
    """When token q + 1 has joined the first q, if they merge one after the other (quadrature)."""
    joined = np.arange(1, case.n) / case.n
    lifetimes = theory.two_cluster_lifetime(
        next_gaps(angles), GLUED, joined, 1 / case.n, case.beta, Unnormalised("metastability")
    )
    return np.cumsum(lifetimes)


@PAPER.claim(
    "staircase-levels",
    where="Section 6, staircase theorem (not numbered in our source)",
    says="From well-prepared angles the energy rests at the sums of squared cluster masses, and "
    "its last level is 1.",
    given={"n": 4, "beta": 14.0, "first": 0.4, "start": "prepared", "form": "corrected"},
    at_paper_scale={"beta": 15.0},
    options={**FORMS, "start": ("prepared", "crowded")},
    needs={
        "the angles are well-prepared": well_prepared,
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("the last two tokens merge first: other masses, other levels", start="crowded"),
    errata=[
        misprint(
            "with the prefactor 1/(2 beta e^beta n^2) every level carries 1/(2 beta), and the top "
            "one is not 1",
            form="printed",
        )
    ],
    note="The limit beta -> infinity; at finite beta a plateau exceeds its level by the pairs still "
    "apart. The first level 1/n is left out: close tokens do not rest at moderate beta. Tokens are "
    "glued at 1e-3, not at (beta log beta)^{-1/2}.",
)
def staircase_levels(case: Case) -> list[Comparison]:
    """2 beta E at the geometric mean of consecutive merge times, against sum_q p_q^2.

    Tolerance: twice the pair weight e^{-beta(1-cos gap)} of the closest clusters still apart.
    """
    angles = checked_angles(case)
    merges = merge_times(case, angles)
    plateaus = np.append(np.sqrt(merges[:-1] * merges[1:]), 10 * merges[-1])
    run = solve(
        USA(case.beta, "metastability"),
        from_angles(angles),
        float(plateaus[-1]),
        rtol=case.rtol,
        atol=case.atol,
        clock=LogTime(),
        merge=Merge(GLUED),
        save=Save(at=plateaus, observe=[scaled_energy]),
    )
    scale = 1.0 if case.form == "corrected" else 1 / (2 * case.beta)
    energy = scale * np.asarray(run.array("scaled_energy"))[1:]
    masses = np.full(case.n, 1 / case.n)
    levels = theory.plateau_levels(masses, [(0, q) for q in range(1, case.n)])[1:]
    neglected = np.exp(-case.beta * (1 - np.cos(next_gaps(angles)[1:].min())))
    return [equals("energy on the plateaus", energy, levels, 2 * neglected)]


@PAPER.claim(
    "staircase-clock",
    where="Section 6, time change of the staircase theorem (compt. reparam)",
    says="In the rescaled time, whose rate is the smallest factor e^{beta(1-cos)} of any pair, the "
    "closest pair closes at a constant times log(beta) sin(u).",
    given={"n": 5, "beta": 400.0, "first": 0.2, "start": "prepared", "form": "corrected"},
    at_paper_scale={"beta": 4000.0, "first": 0.1},
    options={**FORMS, "start": ("prepared", "crowded")},
    needs={
        "the angles are well-prepared": well_prepared,
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("two pairs equally close share the pull", start="crowded", n=3),
    errata=[
        misprint(
            "the maximum over pairs runs the clock of the farthest pair, e^{beta(1-cos)} too fast",
            form="printed",
        )
    ],
)
def staircase_clock(case: Case) -> list[Comparison]:
    """log of |d(th_2 - th_1)/d tau| against log of (2/n^2) log(beta) sin(u).

    d t/d tau = log(beta) min over pairs of e^{beta(1-cos)}, and the paper's USA is slower than ours
    by 1/n. Tolerance: the n other tokens, each weighing at most beta^{-c}/sin(u) of the pair.
    """
    angles = checked_angles(case)
    tokens = from_angles(angles)
    points, velocity = np.asarray(tokens.points), field(USA(case.beta, "metastability"), tokens)
    speed = points[:, 0] * velocity[:, 1] - points[:, 1] * velocity[:, 0]
    gaps = angles[None, :] - angles[:, None]
    exponents = case.beta * (1 - np.cos(gaps[np.triu_indices(case.n, 1)]))
    clock = exponents.min() if case.form == "corrected" else exponents.max()
    measured = np.log((speed[0] - speed[1]) / case.n) + np.log(np.log(case.beta)) + clock
    u = angles[1] - angles[0]
    predicted = np.log(2 / case.n**2 * np.log(case.beta) * np.sin(u))
    tolerance = case.n * case.beta**-PREPARED / np.sin(u)
    return [equals("log of the closing speed in rescaled time", measured, predicted, tolerance)]


@PAPER.claim(
    "staircase-scalar-lemma",
    where="Section 6, lemma on the time scale of clustering (not numbered in our source)",
    says="A pair driven by u' = -c log(beta) sin(u) comes within sqrt(log(beta)/beta) after a time "
    "that tends to 1/(2c).",
    given={"beta": 1e8, "c": 0.7, "angle": 1.0, "kernel": 0.0, "form": "corrected"},
    at_paper_scale={"beta": 1e10},
    options=FORMS,
    needs={
        "the pair feels no kernel in the rescaled clock": lambda c: c.kernel == 0,
        "the pair starts outside the radius": lambda c: (
            np.sqrt(np.log(c.beta) / c.beta) < c.angle < np.pi
        ),
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("without the time change the pair accelerates by e^{beta cos u}", kernel=2.0),
    errata=[
        misprint("the crossing time tends to 1/(2c); 2/c is four times too long", form="printed")
    ],
    note="Run as two tokens of USA at beta = 0, whose angle obeys u' = -sin(u), in the time "
    "c log(beta) t. The limit is slow: the remainder is of order log log(beta)/log(beta).",
    # The pair is followed down to an angle of 4e-4, and its time to 1e-6.
    rtol=1e-11,
    atol=1e-14,
)
def staircase_scalar_lemma(case: Case) -> list[Comparison]:
    """Crossing time against its exact value, and against its limit within the remainder."""
    scale, radius = case.c * np.log(case.beta), np.sqrt(np.log(case.beta) / case.beta)
    exact = float(theory.descent_time(case.angle, case.c, case.beta))
    grid = np.linspace(0.0, 1.2 * exact, 33)
    states = flow(case, USA(case.kernel), from_angles([0.0, case.angle]), scale * grid)
    chord = np.linalg.norm(states[:, 0] - states[:, 1], axis=-1)
    # log tan(u/2) is a straight line in time, so that the interpolation is exact.
    height = np.log(np.tan(np.arcsin(chord / 2)))
    crossing = float(np.interp(-np.log(np.tan(radius / 2)), -height, grid))
    limit = 1 / (2 * case.c) if case.form == "corrected" else 2 / case.c
    remainder = abs(np.log(2 * np.tan(case.angle / 2))) + np.log(np.log(case.beta)) / 2
    return [
        equals("crossing time", crossing, exact, 1e-6),
        equals("crossing time against its limit", crossing, limit, remainder / scale),
    ]
