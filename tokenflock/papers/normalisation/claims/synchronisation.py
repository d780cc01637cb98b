"""Section 3: every scheme gathers the tokens in one point, sooner or later."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, misprint
from ....ledger.measure import flow, largest_chord
from ....space import Sphere
from ....starts import gaussian, uniform
from ....weights import Weights
from .. import PAPER
from .shared import LABELS, attention, path

# Tokens this close lie in one open hemisphere, and from there collapse is certain (cone collapse).
GATHERED = 1e-3


def _gathers(case: Case) -> list[Comparison]:
    """max_ij |theta_i - theta_j| at time t, worst sample, from a uniform start."""
    x0 = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    weights = Weights(V=case.sign, B=np.eye(case.d))
    end = flow(case, attention(case, case.scheme, weights), x0, [case.t])
    return [at_most("largest distance of two tokens", largest_chord(end), GATHERED)]


# sqrt-scaling at t runs as long as Post-LN at 2 (sqrt(t+1) - 1).
for _name, _t in (("post", 30.0), ("ngpt", 60.0), ("sqrt", 255.0)):
    PAPER.claim(
        f"synchronisation-{_name}",
        where="Section 3, theorem on convergence, first half (number not seen)",
        says=f"Under {LABELS[_name]} tokens that start uniformly at random on the sphere end in a "
        "single point.",
        given={
            "n": 8,
            "d": 3,
            "beta": 1.0,
            "samples": 4,
            "t": _t,
            "alpha": 0.7,
            "scheme": _name,
            "sign": 1.0,
        },
        at_paper_scale={"n": 64, "d": 16, "samples": 16},
        options={"scheme": ("post", "ngpt", "sqrt")},
        needs={
            "d >= 2": lambda c: c.d >= 2,
            "V = Q^T K, so that tokens attract": lambda c: c.sign > 0,
        },
        resolves={
            "beta at most 1.5 at the given t, which must grow like e^{2 beta}": lambda c, end=_t: (
                np.exp(2 * (c.beta - 1.5)) <= c.t / end
            )
        },
        control=broken("with V = -I tokens repel and spread", sign=-1.0),
        note="The theorem has no rate: what is checked is that all samples have met by time t, "
        "which must grow with beta. The paper leaves out d >= 2.",
    )(_gathers)


def _gathers_with_radii(case: Case) -> list[Comparison]:
    """min over tokens of (r(t') - r(t))/(t' - t) between saves, and max_ij |theta_i - theta_j|."""
    x0 = gaussian(Sphere(case.d), case.n, case.seed, samples=case.samples)
    times = np.geomspace(0.01, case.t, 8)
    states, radii = path(case, attention(case, case.scheme), x0, times)
    growth = np.diff(radii, axis=-2) / np.diff(np.append(0.0, times))[:, None]
    return [
        at_most("largest distance of two tokens", largest_chord(states)[..., -1], GATHERED),
        at_least("mean growth of a radius", growth, 1 / (case.n * np.exp(case.beta))),
    ]


for _name in ("pre", "peri"):
    PAPER.claim(
        f"synchronisation-{_name}",
        where="Section 3, corollary of the theorem on convergence (number not seen)",
        says=f"Under {LABELS[_name]} with n <= e^beta tokens that start Gaussian end in a single "
        "direction, and every radius grows at least at rate 1/(n e^beta).",
        given={"n": 4, "d": 3, "beta": 1.5, "samples": 16, "t": 1e20, "scheme": _name},
        at_paper_scale={"n": 8, "beta": 2.1, "t": 1e60},
        options={"scheme": ("pre", "peri")},
        needs={"n <= e^beta": lambda c: c.n <= np.exp(c.beta)},
        control=broken("with n > e^beta some radii shrink at first", beta=0.2),
        note="Directions move at speed 1/r ~ 1/t, so the time to meet is e to the power of the "
        "time under Post-LN. The rate is checked as a mean between saves, which it bounds too.",
    )(_gathers_with_radii)


@PAPER.claim(
    "convergence-symmetric",
    where="Section 3, remark to the theorem on convergence: V = Q^T K = K^T Q",
    says="With constant matrices V = Q^T K = K^T Q the flow climbs sum_jk e^(beta <Q x_j, K x_k>) "
    "and every token comes to rest.",
    given={"n": 8, "d": 3, "beta": 1.0, "samples": 8, "t": 60.0, "skew": 0.0, "form": "corrected"},
    at_paper_scale={"n": 32, "samples": 32},
    options={"form": ("corrected", "printed")},
    needs={
        "Q^T K is symmetric": lambda c: c.skew == 0,
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("an antisymmetric part makes the tokens turn for ever", skew=4.0),
    errata=[
        misprint(
            "the paper says that the tokens synchronise also here; if the largest eigenvalue is "
            "simple, clusters at its two opposite eigenvectors are both stable",
            form="printed",
        )
    ],
    note="Derived here: opposite clusters of masses a, b at the top eigenvector are stable when "
    "b e^(beta l1)(l1 - l2) > a e^(-beta l1) l1, l1 > l2 the largest eigenvalues; V = -I repels.",
)
def rests_on_the_energy_landscape(case: Case) -> list[Comparison]:
    """Increments of the mean energy, and the largest |x(t') - x(t)| over the last third."""
    bilinear = _symmetric(case) + case.skew * _turning(case.d)
    x0 = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    times = case.t * np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.67, 0.83, 1.0])
    states, _ = path(case, attention(case, "post", Weights(B=bilinear, V=bilinear)), x0, times)
    scores = np.einsum("...id,de,...je->...ij", states, bilinear, states)
    climb = np.diff(np.exp(case.beta * (scores - 2)).mean(axis=(-2, -1)), axis=-1)
    moved = np.abs(states[..., -3:-1, :, :] - states[..., -1:, :, :])
    rest = at_most("late displacement", moved, GATHERED)
    # The energy lies in (0, 1]; solver errors of 1e-8 may lower it where it has stopped growing.
    found = [at_least("increment of the energy", climb, 0.0, 1e-7), rest]
    if case.form == "printed":
        found.append(at_most("largest distance", largest_chord(states)[..., -1], GATHERED))
    return found


def _symmetric(case: Case) -> np.ndarray:
    """A symmetric matrix with eigenvalues from 2 down to 1/2 in random directions."""
    drawn = np.random.default_rng(case.seed).normal(size=(case.d, case.d))
    basis = np.linalg.qr(drawn)[0]
    return basis @ np.diag(np.linspace(2.0, 0.5, case.d)) @ basis.T


def _turning(d: int) -> np.ndarray:
    """The antisymmetric matrix that turns each pair of neighbouring axes."""
    ahead = np.diag(np.ones(d - 1), 1)
    return ahead - ahead.T
