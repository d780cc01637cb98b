"""How long two clusters live, and the paper's five tokens on the circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import theory
from ....integrate import Layers, LogTime, Merge, Save, solve
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import MODELS, flow
from ....measure import from_angles
from ....observables import clusters, merge_events
from .. import PAPER

# Clusters count as merged at this inner product, as in the paper's scripts.
MERGED = 0.999
BOTH = {"model": ("SA", "USA")}


def pair_angles(case: Case, beta: float, times: np.ndarray) -> np.ndarray:
    """Angle between two clusters of masses p and 1 - p at the times.

    A pair closer than 1e-2 is glued: its relaxation at rate one would stop the solver at the long
    times that pairs of large beta need.
    """
    pair = from_angles([0.4, 0.4 + case.angle], [case.p, 1 - case.p])
    model = MODELS[case.model](beta)
    states = flow(case, model, pair, times, clock=LogTime(), merge=Merge(1e-2))
    return 2 * np.arcsin(np.linalg.norm(states[..., 0, :] - states[..., 1, :], axis=-1) / 2)


@PAPER.claim(
    "two-cluster-lifetime",
    where="Section 2, exponential lifetime of metastable states (not numbered)",
    says="Two clusters of any masses approach each other at the times that the exact equation of "
    "their angle gives.",
    given={"beta": 8.0, "angle": 2.0, "p": 0.3, "believed": 0.3, "model": "SA"},
    at_paper_scale={"beta": 14.0},
    options=BOTH,
    needs={
        "the clusters move by SA": lambda c: c.model == "SA",
        "the equation has the masses of the clusters": lambda c: c.believed == c.p,
        "0 < p < 1 and 0.3 < angle < pi": lambda c: 0 < c.p < 1 and 0.3 < c.angle < np.pi,
    },
    control=broken("the equation of equal masses does not time unequal clusters", believed=0.5),
    note="The equation is the reduction of SA to two weighted points, solved by quadrature.",
    rtol=1e-10,
    atol=1e-12,
)
def two_cluster_lifetime(case: Case) -> list[Comparison]:
    """(angle at T(phi) - phi)/(T |phi'|) against 0, T(phi) the time `theory` gives for closing to phi.

    This is the relative error of the time; the solver makes one of 1e-10 per step, in some hundred
    steps.
    """
    wanted = np.linspace(0.97 * case.angle, 0.3, 128)
    masses = (case.believed, 1 - case.believed)
    times = theory.two_cluster_lifetime(case.angle, wanted, *masses, case.beta)
    speed = np.abs(theory.two_cluster_rate(wanted, *masses, case.beta))
    late = (pair_angles(case, case.beta, times) - wanted) / (times * speed)
    return [equals("relative error of the time of an angle", late, 0.0, 1e-6)]


@PAPER.claim(
    "lifetime-exponent",
    where="Section 2, T2 of order exp((1 - alpha) beta) (not numbered)",
    says="The logarithm of the lifetime of two clusters grows with beta at the slope 1 - cos of "
    "their angle.",
    given={"beta": 16.0, "angle": 2.0, "p": 0.3, "model": "SA"},
    at_paper_scale={"beta": 18.0},
    options=BOTH,
    needs={
        "the clock is that of SA": lambda c: c.model == "SA",
        "beta is large (the statement is asymptotic; here beta >= 8)": lambda c: c.beta >= 8,
    },
    control=broken("in the clock of USA with weights e^{beta <x,y>} one unit is lost", model="USA"),
    note="log T = beta(1 - cos phi) - log(beta) + O(1); the tolerance is the slope of that logarithm.",
)
def lifetime_exponent(case: Case) -> list[Comparison]:
    """(log T(beta) - log T(3 beta/4))/(beta/4) against 1 - cos(angle).

    Laplace's method gives the slope 1 - cos - 1/beta - 2 cos/(beta sin)^2: tolerance is the sum of
    both corrections at the smaller beta, and the spacing of the saves in log T.
    """
    small, exponent = 0.75 * case.beta, 1 - np.cos(case.angle)
    times = np.geomspace(1.0, 10 * np.exp(case.beta * exponent), 128)
    close = [pair_angles(case, beta, times) < np.arccos(MERGED) for beta in (small, case.beta)]
    # A pair that has not closed by the last time counts as closing there.
    logs = [np.log(times[np.argmax(merged) if merged.any() else -1]) for merged in close]
    curvature = 2 * abs(np.cos(case.angle)) / (small * np.sin(case.angle)) ** 2
    spacing = np.log(times[1] / times[0])
    step = case.beta - small
    tolerance = 1 / small + curvature + spacing / step
    return [equals("slope of log T in beta", (logs[1] - logs[0]) / step, exponent, tolerance)]


FIVE_TOKENS = np.array(
    [
        (0.99806638, 0.06215705),
        (0.97712061, 0.21268594),
        (-0.24578194, 0.96932515),
        (-0.97354734, 0.2284854),
        (-0.99892629, -0.04632772),
    ]
)
# The first three merges are over well before this time, the last is far beyond it.
PLATEAU = 40.0


@PAPER.claim(
    "five-tokens",
    where="Five-token example of the published script kinetic.py (not numbered)",
    says="The five tokens of the paper's example merge one pair at a time, and the last two "
    "clusters live as long as the two-cluster equation says.",
    given={"beta": 4.0, "until": 400.0, "method": "flow"},
    at_paper_scale={"beta": 5.0, "until": 3000.0},
    options={"method": ("flow", "layers")},
    needs={"tokens follow the flow, not finite layers": lambda c: c.method == "flow"},
    control=broken(
        "Euler layers of step 0.1, as published, are about a tenth late", method="layers"
    ),
    note="The published merge times come from Euler steps of 0.1 with renormalisation, a clock that "
    "runs late by up to 1 + 0.1; the control is that scheme.",
)
def five_tokens(case: Case) -> list[Comparison]:
    """Cluster counts after each merge, and the last merge against the reduced equation.

    The reduced equation starts from the angle at t = 40, when the two clusters of 2 and 3 tokens are
    points to e^{-60}. Tolerance: the spacing of the saves.
    """
    spacing = 0.2
    turned = np.arctan2(FIVE_TOKENS[:, 1], FIVE_TOKENS[:, 0]) + case.seed
    save = Save(every=spacing, states=True, observe=[clusters(angle=float(np.arccos(MERGED)))])
    numerics: dict[str, Any] = {"rtol": case.rtol, "atol": case.atol}
    if case.method == "layers":
        numerics = {"method": Layers(0.1)}
    run = solve(MODELS["SA"](case.beta), from_angles(turned), case.until, save=save, **numerics)
    events = merge_events(run.time, run.array("clusters"))
    seen = [event.to_count for event in events] + [5] * (4 - len(events))
    middle = np.asarray(run.states)[round(PLATEAU / spacing)]
    apart = 2 * np.arcsin(np.linalg.norm(middle[0] - middle[-1]) / 2)
    left = theory.two_cluster_lifetime(apart, np.arccos(MERGED), 2 / 5, 3 / 5, case.beta)
    return [
        equals("clusters after each merge", seen, [4, 3, 2, 1], 0.0),
        equals("last merge time", events[-1].time, PLATEAU + float(left), spacing),
    ]
