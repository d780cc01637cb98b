"""V = I (theorem 3.1) and V = I on a subspace (theorem 5.1): tokens meet the boundary of a polytope."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import flow
from ....measure import Measure
from ....space import Euclidean
from ....starts import box
from .. import PAPER
from .shared import eighths, generic_basis, positive_definite, rescaled

IDENTITY = {"V = I": lambda c: c.value == 1.0}
# Once attention is one-hot a token approaches its leader like e^{-t}. Half of that rate is asked for:
# the other half pays for the unknown time until attention is one-hot, which no statement bounds.
HALF_RATE = 0.5


def _cloud(case: Case) -> Measure:
    return box(Euclidean(case.d), case.n, case.seed, case.width, samples=case.samples)


@PAPER.claim(
    "thm-3.1-hull",
    where="Theorem 3.1, first part",
    says="With V = I the convex hull of the rescaled tokens never grows, whatever the scores are.",
    given={"n": 8, "d": 2, "samples": 4, "t": 3.0, "width": 2.0, "value": 1.0},
    at_paper_scale={"n": 20, "t": 5.0, "width": 5.0},
    needs=IDENTITY,
    control=broken("V = -I pushes the rescaled tokens out of their hull", value=-1.0),
)
def shrinking_hull(case: Case) -> list[Comparison]:
    """max_i <u, z_i(t)> never rises, for 64 directions u and a score matrix that is not symmetric."""
    rng = np.random.default_rng(case.seed)
    model = rescaled(rng.normal(size=(case.d, case.d)), case.value * np.eye(case.d))
    states = flow(case, model, _cloud(case), eighths(case.t))
    directions = rng.normal(size=(case.d, 64))
    support = np.max(states @ (directions / np.linalg.norm(directions, axis=0)), axis=-2)
    # Leaders rest, so the largest rise is the solver's error: about rtol times the width.
    rise = np.diff(support, axis=1) / case.width
    return [at_most("rise of the hull's support function over the width", rise, 0.0, 1e-6)]


def _leader_scores(states: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """<z_i, B z_j> with its largest entry per row, for states (..., n, d)."""
    products = np.einsum("...id,de,...je->...ij", states, scores, states)
    return products, products.max(axis=-1)


@PAPER.claim(
    "thm-3.1-limits",
    where="Theorem 3.1, second part",
    says="With V = I and positive definite scores every rescaled token converges to a point that no "
    "vertex of the limit polytope beats in its own direction.",
    given={"n": 8, "d": 2, "samples": 4, "t": 12.0, "width": 2.0, "value": 1.0},
    at_paper_scale={"n": 20, "width": 5.0},
    needs=IDENTITY,
    control=broken("with V = -I there are no leaders to follow", value=-1.0),
    note="The theorem gives no rate; e^{-t/2} of the largest |A z|^2 is allowed at time t.",
)
def polytope_limits(case: Case) -> list[Comparison]:
    """max_i (max_j <A z_i, A z_j> - |A z_i|^2) / max_i |A z_i|^2 at the final time, Q^T K = A^T A."""
    scores = positive_definite(case.d, case.seed)
    model = rescaled(scores, case.value * np.eye(case.d))
    last = flow(case, model, _cloud(case), eighths(case.t))[:, -1]
    products, best = _leader_scores(last, scores)
    own = np.diagonal(products, axis1=-2, axis2=-1)
    excess = (best - own) / own.max(axis=-1, keepdims=True)
    return [
        at_most("max_j <Az_i, Az_j> - |Az_i|^2, relative", excess, 0.0, np.exp(-HALF_RATE * case.t))
    ]


@PAPER.claim(
    "thm-3.1-rate",
    where="Theorem 3.1, its rate (not numbered)",
    says="With V = I a rescaled token finally approaches its leader exactly like e^{-t}.",
    given={"n": 8, "d": 2, "samples": 4, "t": 12.0, "width": 2.0, "value": 1.0},
    at_paper_scale={"n": 20, "width": 5.0},
    needs=IDENTITY,
    control=broken("with V = 2I the approach is like e^{-2t}", value=2.0),
    note="Derived here: one-hot attention leaves z_i' = z_leader - z_i with the leader at rest.",
    rtol=1e-10,
    atol=1e-12,
)
def polytope_rate(case: Case) -> list[Comparison]:
    """e^{t/4} |z_i - z_leader|(t) / |z_i - z_leader|(3t/4), followers only."""
    scores = positive_definite(case.d, case.seed)
    model = rescaled(scores, case.value * np.eye(case.d))
    states = flow(case, model, _cloud(case), eighths(case.t))[:, [-3, -1]]
    leader = _leader_scores(states[:, -1], scores)[0].argmax(axis=-1)
    follows = leader != np.arange(case.n)
    led = np.take_along_axis(states, leader[:, None, :, None], axis=2)
    distance = np.linalg.norm(states - led, axis=-1)
    ratio = distance[:, 1][follows] / distance[:, 0][follows]
    # Solver errors of 1e-10 against distances of e^{-t}: 1e-5 at t = 12; attention is one-hot to
    # e^{-e^{t/2}} by then.
    return [equals("e^{t/4} times the contraction", np.exp(case.t / 4) * ratio, 1.0, 1e-3)]


@PAPER.claim(
    "thm-5.1",
    where="Theorem 5.1",
    says="If V is a positive multiple of the identity on one invariant subspace and smaller on a "
    "complement, the tokens' components in that subspace converge to the boundary of a polytope.",
    given={"n": 8, "samples": 4, "t": 12.0, "width": 2.0, "leading": 1.0, "other": -0.5},
    at_paper_scale={"n": 20, "width": 5.0},
    needs={
        "the leading eigenvalue is positive": lambda c: c.leading > 0,
        "it exceeds the spectral radius on the complement": lambda c: c.leading > abs(c.other),
    },
    control=broken("with a negative leading eigenvalue nobody leads", leading=-1.0),
    note="d = 3 with a plane that carries the leading eigenvalue, in an oblique basis. The theorem "
    "gives no rate; e^{-t/2} of the largest component is allowed at time t.",
)
def mixed_polytope(case: Case) -> list[Comparison]:
    """Distance of the plane parts of z_i to the boundary of their hull, or to 0, over the largest."""
    basis = generic_basis(3, case.seed)
    inverse = np.linalg.inv(basis)
    values = basis @ np.diag([case.leading, case.leading, case.other]) @ inverse
    x0 = box(Euclidean(3), case.n, case.seed, case.width, samples=case.samples)
    model = rescaled(positive_definite(3, case.seed), values)
    last = flow(case, model, x0, eighths(case.t))[:, -1]
    plane = last @ inverse.T[:, :2]
    depth = np.stack([_depth(tokens) for tokens in plane])
    length = np.linalg.norm(plane, axis=-1)
    off = np.minimum(depth, length) / length.max(axis=-1, keepdims=True)
    return [at_most("distance to boundary or 0, relative", off, 0.0, np.exp(-HALF_RATE * case.t))]


def _depth(tokens: np.ndarray) -> np.ndarray:
    """Distance of each token (n, 2) to the boundary of the convex hull of all."""
    equations = ConvexHull(tokens).equations
    return np.min(-(tokens @ equations[:, :-1].T + equations[:, -1]), axis=1)
