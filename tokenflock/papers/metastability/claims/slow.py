"""Section 3: the energy near the slow manifold of collapsed caps, and along the flow."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....dynamics import Dynamics
from ....integrate import LogTime, Save, solve
from ....ledger.claim import Case, Comparison, at_least, at_most, broken
from ....ledger.measure import field, read
from ....measure import Measure, from_angles
from ....models import SA, USA
from ....observables import scaled_energy
from ....space import Sphere
from ....starts import uniform
from ....weights import Weights
from .. import PAPER, closed_forms


def allowed_width(case: Case) -> float:
    """The largest diameter of a cap S_q(2 tau) that the lemma allows."""
    return float(np.sqrt((1 - case.delta) / (case.beta + 0.5))) / 8


def cap_size(case: Case) -> float:
    """tau of the caps of the case, `spread` times as wide as allowed: cos(width/2) = 1 - 2 tau."""
    return float(np.sin(case.spread * allowed_width(case) / 4) ** 2)


def circle_separated(case: Case) -> bool:
    """gamma > 0 for two caps of size tau at the angle of the case."""
    return float(closed_forms.separation(cap_size(case), case.angle, case.n, case.beta)) > 0


def small_leak(case: Case) -> bool:
    """8 (1 + beta) e^{-(1-alpha) beta - 1/2} < delta < 1."""
    alpha = float(closed_forms.cap_alpha(cap_size(case), case.angle))
    leak = 8 * (1 + case.beta) * np.exp(-(1 - alpha) * case.beta - 0.5)
    return bool(leak < case.delta < 1)


def angles_in_caps(case: Case) -> np.ndarray:
    """Angles of n tokens, half of them in each cap S_q(tau), (samples, n)."""
    # The caps of the tokens, of size tau, are narrower than the doubled ones of the condition.
    radius = float(np.arccos(1 - cap_size(case)))
    rng = np.random.default_rng(case.seed)
    inside = rng.uniform(-radius, radius, size=(case.samples, 2, case.n // 2))
    return (inside + np.array([0.3, 0.3 + case.angle])[:, None]).reshape(case.samples, -1)


@PAPER.claim(
    "slow-manifold-pl",
    where="Section 3.2, Polyak-Lojasiewicz inequality (lemma PL, not numbered in our source)",
    says="Near the slow manifold the energy missing to collapsed caps is at most the squared "
    "gradient divided by twice a positive constant.",
    given={"n": 8, "beta": 12.0, "angle": 2.8, "delta": 0.5, "spread": 1.0, "samples": 6},
    at_paper_scale={"n": 32, "samples": 32},
    needs={
        "the caps obey |u - v| <= sqrt((1-delta)/(beta+1/2))/8": lambda c: c.spread <= 1,
        "the start is (beta, tau)-separated": circle_separated,
        "8 (1+beta) e^{-(1-alpha) beta - 1/2} < delta < 1": small_leak,
        "an even number of tokens, two or more in a cap": lambda c: c.n >= 4 and c.n % 2 == 0,
    },
    control=broken("in wide caps the pull is exponentially small against the gap", spread=60.0),
    note="The paper's kappa(beta, n) was not seen; kappa = (h(w)/w)^2/(2n) is derived here for two equal "
    "caps of the allowed width w, h being the pull. The decay e^{-(1-eps) t} of the energy gap "
    "that the paper deduces is not checked: its constant C_eps was not seen, and the theorem it "
    "rests on fails at t = 0 as printed.",
)
def slow_manifold_pl(case: Case) -> list[Comparison]:
    """2 kappa (E(U) - E(Theta))/|grad E(Theta)|^2 <= 1, U the caps collapsed to their mean angle.

    E = scaled_energy/(2 beta) and grad_i E = x_i'/n for USA. Other caps change the quotient by about
    e^{-(1-alpha) beta}, 1e-9 here.
    """
    model = USA(case.beta, "metastability")
    width = allowed_width(case)
    pull = float(theory.interaction_kernel(width, case.beta)) / width
    kappa = pull**2 / (2 * case.n)
    quotients = []
    for angles in angles_in_caps(case):
        middle = np.repeat(angles.reshape(2, -1).mean(axis=1), case.n // 2)
        missing = _energy(model, from_angles(middle)) - _energy(model, from_angles(angles))
        gradient = field(model, from_angles(angles)) / case.n
        quotients.append(2 * kappa * missing / (2 * case.beta) / np.sum(gradient**2))
    return [at_most("2 kappa (E(U) - E)/|grad E|^2", quotients, 1.0)]


def _energy(model: Dynamics, tokens: Measure) -> float:
    return float(read(scaled_energy, model, tokens))


@PAPER.claim(
    "energy-rises",
    where="Sections 1 and 3, gradient-flow structure (not numbered in our source)",
    says="The interaction energy never falls along the flow, whatever clock the flow is run by, and "
    "never exceeds the value 1 of a single cluster.",
    given={"n": 8, "d": 3, "beta": 9.0, "samples": 4, "until": 200.0, "sign": 1.0},
    at_paper_scale={"n": 64, "samples": 16},
    needs={"tokens attract each other (V = I)": lambda c: c.sign == 1},
    control=broken("with V = -I the energy falls", sign=-1.0),
    note="The energy is normalised to 2 beta E, whose maximum is 1; see staircase-levels.",
)
def energy_rises(case: Case) -> list[Comparison]:
    """Increments of 2 beta E between saves >= 0 in log time; its largest value <= 1.

    The tolerance is the solver's error of an energy of order one.
    """
    x0 = uniform(Sphere(case.d), case.n, case.seed, case.samples)
    run = solve(
        SA(case.beta, Weights(V=case.sign)),
        x0,
        case.until,
        rtol=case.rtol,
        atol=case.atol,
        clock=LogTime(),
        save=Save(at=np.geomspace(1e-2, case.until, 32), observe=[scaled_energy]),
    )
    energy = np.asarray(run.array("scaled_energy"))
    return [
        at_least("increment of the energy", np.diff(energy, axis=-1), 0.0, 1e-7),
        at_most("largest energy", energy, 1.0, 1e-7),
    ]
