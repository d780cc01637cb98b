"""Which normalisations of attention are gradient flows of an energy of the tokens' law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ....ledger.measure import field, flow
from ....measure import Measure
from ....space import Euclidean
from .. import PAPER, closed_forms
from .shared import NUMBER, attention, random_symmetric, random_tokens

# Scores change by about this much per step of the differences: of fourth order, they err by 1e-12 of a fifth
# derivative, rounding by 1e-12.
CHANGE = 1e-3
STENCIL = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
TIMES = np.linspace(0.0, 1.0, 9)
SYMMETRIC = {"W_V = -W_Q^T W_K": lambda c: c.turn == 0.0}


Energy = Callable[[np.ndarray, np.ndarray], float]


def _gradient(case: Case, kind: str, energy: Energy) -> list[Comparison]:
    """dF along the field over -int |v|^2 dmu, and the largest step of F along the flow."""
    rng = np.random.default_rng(case.seed)
    tokens, B = random_tokens(rng, case.n, case.d), random_symmetric(rng, case.d)
    skew = np.triu(np.ones((case.d, case.d)), 1)
    model = attention(kind, B, -B + case.turn * (skew - skew.T))
    points, masses = np.asarray(tokens.points), np.asarray(tokens.weights)

    def value(x: np.ndarray) -> float:
        scores = x @ B @ x.T
        return energy((scores + scores.T) / 2, masses)

    velocity = field(model, tokens)
    # Attention without a normalisation moves tokens as fast as e^{score}.
    step = CHANGE / case.refine / max(1.0, 2 * np.max(np.abs(velocity @ B @ points.T)))
    rate = sum(c * value(points + k * step * velocity) for k, c in STENCIL.items()) / step
    square = masses @ np.sum(velocity**2, axis=1)
    values = [value(x) for x in flow(case, model, tokens, TIMES)]
    return [
        equals("dF/dt over -int |v|^2 dmu", rate / -square, 1.0, 1e-6),
        at_most("largest step of F along the flow", np.diff(values), 0.0),
    ]


@PAPER.claim(
    "sinkhorn-gradient-flow",
    where=f"Sinkhorn attention as a Wasserstein gradient flow ({NUMBER})",
    says="With W_Q^T W_K = W_K^T W_Q = -W_V the flow of K^inf is the Wasserstein gradient flow of F_inf = "
    "-(1/2) iint K^inf log(K^inf/K^0): F_inf falls at the rate int |v|^2 dmu.",
    given={"n": 12, "d": 2, "turn": 0.0},
    at_paper_scale={"n": 40, "d": 4},
    needs=SYMMETRIC,
    control=broken("with a rotation in W_V the field is no gradient of F_inf", turn=0.7),
    note="F_inf = int phi dmu with the potential of the coupling, found by Newton's method and not by the "
    "engine's Sinkhorn. Tokens have random masses.",
)
def sinkhorn_gradient_flow(case: Case) -> list[Comparison]:
    """P6c-2: the energy of 2110.11773 along the engine's Sinkhorn flow of tokens."""
    return _gradient(case, "sinkhorn", closed_forms.coupling_energy)


@PAPER.claim(
    "kernel-gradient-flow",
    where=f"unnormalised attention as a Wasserstein gradient flow ({NUMBER})",
    says="With W_Q^T W_K = W_K^T W_Q = -W_V the flow of K^0 is the Wasserstein gradient flow of F_0 = (1/2) "
    "iint K^0.",
    given={"n": 12, "d": 2, "turn": 0.0},
    at_paper_scale={"n": 40, "d": 4},
    needs=SYMMETRIC,
    control=broken("with a rotation in W_V the field is no gradient of F_0", turn=0.7),
)
def kernel_gradient_flow(case: Case) -> list[Comparison]:
    """The same for K^0 = e^{x^T B y}."""
    return _gradient(case, "unnormalised", closed_forms.kernel_energy)


CENTRE, RADIUS = np.array([0.9, -0.2]), 0.6


@PAPER.claim(
    "softmax-no-gradient",
    where=f"softmax attention is no Wasserstein gradient flow ({NUMBER})",
    says="The flow of K^1 (softmax) with W_V = -B is in general no Wasserstein gradient flow: two equal "
    "tokens carried around a loop gain work.",
    given={"kind": "softmax", "b": 1.0, "points": 64},
    at_paper_scale={"points": 256},
    options={"kind": ("softmax", "sinkhorn")},
    needs={"attention normalises rows alone": lambda c: c.kind == "softmax"},
    control=broken("the Sinkhorn field of the same tokens is a gradient: no work", kind="sinkhorn"),
    note="Two tokens on a line are a point of the plane; the loop is a circle in it. The prediction is the "
    "integral over the disc of the curl, derived here.",
)
def softmax_no_gradient(case: Case) -> list[Comparison]:
    """Work of the engine's field around the circle (trapezoidal rule, exact to rounding) and by Stokes."""
    angles = 2 * np.pi * np.arange(case.points) / case.points
    loop = CENTRE + RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tangent = RADIUS * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    model = attention(case.kind, np.array([[case.b]]), np.array([[-case.b]]))
    forces = [field(model, Measure(Euclidean(1), pair[:, None]))[:, 0] for pair in loop]
    work = float(np.sum(np.asarray(forces) * tangent) * 2 * np.pi / case.points)
    expected = _curl_over_disc(case.b)
    return [
        equals("work around the loop", work, expected, 1e-8),
        at_least("size of the work", abs(work), 0.01),
    ]


def _curl_over_disc(b: float) -> float:
    """Gauss's nodes in the radius, equal angles: spectrally exact for this analytic integrand."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    radii, angles = RADIUS * (nodes + 1) / 2, 2 * np.pi * np.arange(64) / 64
    x = CENTRE[0] + radii[:, None] * np.cos(angles)
    y = CENTRE[1] + radii[:, None] * np.sin(angles)
    curl = closed_forms.softmax_curl(x, y, b)
    return float(np.sum((weights * radii)[:, None] * curl) * RADIUS / 2 * 2 * np.pi / 64)
