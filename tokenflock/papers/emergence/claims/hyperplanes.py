"""One leading eigenvalue (theorem 4.1): tokens meet at most three parallel hyperplanes."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_most, broken
from ....ledger.measure import flow
from ....space import Euclidean
from ....starts import box
from .. import PAPER
from .shared import eighths, generic_basis, positive_definite, rescaled

# The value matrices of the authors' pictures.
PLANE = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
INWARD = np.array(
    [
        [0.2362413, 0.0599536, 0.40506019],
        [0.81321448, 0.49948705, 0.33754772],
        [0.2160645, 0.38505272, 0.14588075],
    ]
)
OUTWARD = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
CODIMENSION = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)
MATRICES = {
    "plane": [PLANE],
    "identity": [np.eye(2)],
    "space": [INWARD, OUTWARD],
    "double": [np.diag([1.0, 1.0, 0.3])],
}
SCORES = ("generic", "identity")
SIMPLE = "the leading eigenvalue of V is real, positive, simple and strictly dominant"
# Once attention is one-hot the levels close like e^{-lambda t}; see HALF_RATE of the polytopes.
HALF_RATE = 0.5


def _leading(values: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Real part of the leading eigenvalue, of its eigenvector and of its left eigenvector."""
    eigenvalues, right = np.linalg.eig(values)
    left_eigenvalues, left = np.linalg.eig(values.T)
    first, left_first = np.argmax(np.real(eigenvalues)), np.argmax(np.real(left_eigenvalues))
    form = np.real(left[:, left_first])
    return (
        float(np.real(eigenvalues[first])),
        np.real(right[:, first]),
        form / np.linalg.norm(form),
    )


def _is_simple(case: Case) -> bool:
    moduli = [np.sort(np.abs(np.linalg.eigvals(matrix))) for matrix in MATRICES[case.matrix]]
    return all(ordered[-1] > ordered[-2] * (1 + 1e-9) for ordered in moduli)


def _scores(case: Case, vector: np.ndarray) -> np.ndarray:
    """Q^T K with <phi, Q^T K phi> = 1 for the unit phi; "generic" is not symmetric, not positive."""
    d = len(vector)
    if case.scores == "identity":
        return np.eye(d)
    unit = vector / np.linalg.norm(vector)
    draw = np.random.default_rng(case.seed).normal(size=(d, d))
    return draw + (1.0 - unit @ draw @ unit) * np.outer(unit, unit)


def _three_groups(levels: np.ndarray) -> np.ndarray:
    """Labels 0, 1, 2 that split numbers into three runs with the smallest largest range."""
    order = np.argsort(levels)
    ordered, n = levels[order], len(levels)

    def widest(cuts: tuple[int, int]) -> float:
        return max(np.ptp(part) for part in np.split(ordered, cuts) if len(part))

    pairs = [(i, j) for i in range(1, n + 1) for j in range(i, n + 1)]
    best = min(pairs, key=widest)
    labels = np.empty(n, dtype=int)
    labels[order] = np.searchsorted(best, np.arange(n), side="right")
    return labels


def _group_range(levels: np.ndarray, labels: np.ndarray) -> float:
    """Largest range of the numbers within a group."""
    return max(np.ptp(levels[labels == label]) for label in np.unique(labels))


def _hyperplanes(case: Case, values: np.ndarray) -> Comparison:
    """Largest range of phi_1*(z_i) within the best three groups, over its range at the start."""
    d = len(values)
    rate, vector, form = _leading(values)
    x0 = box(Euclidean(d), case.n, case.seed, case.width, samples=case.samples)
    states = flow(case, rescaled(_scores(case, vector), values), x0, eighths(case.t))
    levels = states @ form
    spread = [_group_range(last, _three_groups(last)) for last in levels[:, -1]]
    relative = np.array(spread) / np.ptp(levels[:, 0], axis=-1)
    allowed = float(np.exp(-HALF_RATE * rate * case.t))
    return at_most("range of phi*(z) in three groups, relative", relative, 0.0, allowed)


@PAPER.claim(
    "thm-4.1-plane",
    where="Theorem 4.1, the matrix of the authors' two-dimensional picture",
    says="If V has one leading eigenvalue, simple and positive, the rescaled tokens of the plane "
    "converge to at most three parallel lines.",
    given={"n": 8, "samples": 4, "t": 10.0, "width": 5.0, "matrix": "plane", "scores": "generic"},
    at_paper_scale={"n": 20, "samples": 8},
    options={"matrix": ("plane", "identity"), "scores": SCORES},
    needs={SIMPLE: _is_simple},
    control=broken(
        "V = I: a polygon has more than three levels", matrix="identity", scores="identity"
    ),
    note="The theorem gives no rate; e^{-lambda t/2} of the initial range is allowed at time t.",
)
def lines(case: Case) -> list[Comparison]:
    """Range of the left eigenform within the best three groups; Q^T K is generic with <Q phi, K phi> = 1."""
    return [_hyperplanes(case, values) for values in MATRICES[case.matrix]]


@PAPER.claim(
    "thm-4.1-space",
    where="Theorem 4.1, the matrices of the authors' three-dimensional pictures",
    says="If V has one leading eigenvalue, simple and positive, the rescaled tokens of space "
    "converge to at most three parallel planes, whatever the other eigenvalues do.",
    given={"n": 8, "samples": 4, "t": 12.0, "width": 5.0, "matrix": "space", "scores": "generic"},
    at_paper_scale={"n": 20, "samples": 8},
    options={"matrix": ("space", "double"), "scores": SCORES},
    needs={SIMPLE: _is_simple},
    control=broken(
        "a double leading eigenvalue makes a polygon", matrix="double", scores="identity"
    ),
    note="The theorem gives no rate; e^{-lambda t/2} of the initial range is allowed at time t.",
)
def planes(case: Case) -> list[Comparison]:
    """As for the plane, for the complex pair inside (Re < 0) and outside (Re > 0)."""
    return [_hyperplanes(case, values) for values in MATRICES[case.matrix]]


@PAPER.claim(
    "eigenform-bounds",
    where="Theorem 4.1, its monotone quantities (not numbered)",
    says="Along a left eigenvector of V whose eigenvalue is not negative, the largest coordinate of "
    "the rescaled tokens never rises and the smallest never falls.",
    given={"n": 8, "d": 2, "samples": 4, "t": 4.0, "width": 2.0, "eigenvalue": 0.4},
    at_paper_scale={"n": 20, "width": 5.0},
    needs={"the eigenvalue is >= 0": lambda c: c.eigenvalue >= 0},
    control=broken("a negative eigenvalue drives the coordinates apart", eigenvalue=-0.4),
)
def eigenform_bounds(case: Case) -> list[Comparison]:
    """Rise of max_i phi(z_i) and of -min_i phi(z_i) between eight times, over the width."""
    basis = generic_basis(case.d, case.seed)
    inverse = np.linalg.inv(basis)
    spectrum = np.linspace(1.0, -0.3, case.d)
    spectrum[1] = case.eigenvalue
    scores = np.random.default_rng(case.seed).normal(size=(case.d, case.d))
    x0 = box(Euclidean(case.d), case.n, case.seed, case.width, samples=case.samples)
    model = rescaled(scores, basis @ np.diag(spectrum) @ inverse)
    states = flow(case, model, x0, eighths(case.t))
    levels = states @ inverse[1] / case.width
    rise = np.diff(levels.max(axis=-1), axis=-1)
    fall = -np.diff(levels.min(axis=-1), axis=-1)
    # Leaders rest, so what is left is the solver's error.
    return [
        at_most("rise of the largest coordinate", rise, 0.0, 1e-6),
        at_most("fall of the smallest coordinate", fall, 0.0, 1e-6),
    ]


@PAPER.claim(
    "codimension-k",
    where="conjecture on codimension k (stated in the authors' code)",
    says="If V is symmetric with two positive eigenvalues, the rescaled tokens converge to at most "
    "three parallel sets of codimension two.",
    given={"n": 8, "samples": 4, "t": 12.0, "width": 5.0, "sign": 1.0},
    at_paper_scale={"n": 20, "samples": 8},
    needs={"the second eigenvalue of V is positive": lambda c: c.sign > 0},
    control=broken("with one positive eigenvalue only one direction closes", sign=-1.0),
    note="A conjecture. That there are at most three sets is what theorem 4.1 gives for the first "
    "direction. No rate is known; e^{-lambda_2 t/2} of the initial range is allowed at time t.",
    rtol=1e-12,
    atol=1e-14,
)
def codimension(case: Case) -> list[Comparison]:
    """Range of phi_2(z_i) within the groups that phi_1(z_i) makes; V is that of the authors' code."""
    eigenvalues, vectors = np.linalg.eigh(CODIMENSION)
    signs = np.array([1.0, case.sign, 1.0])
    x0 = box(Euclidean(3), case.n, case.seed, case.width, samples=case.samples)
    values = vectors @ np.diag(signs * eigenvalues) @ vectors.T
    states = flow(case, rescaled(positive_definite(3, case.seed), values), x0, eighths(case.t))
    levels = states @ vectors
    ranges = np.array([_both_ranges(last) for last in levels[:, -1]])
    relative = ranges / np.ptp(levels[:, 0, :, 1:], axis=1)
    allowed = float(np.exp(-HALF_RATE * eigenvalues[1] * case.t))
    return [
        at_most("range along phi_1 in three groups, relative", relative[:, 1], 0.0, allowed),
        at_most("range along phi_2 in these groups, relative", relative[:, 0], 0.0, allowed),
    ]


def _both_ranges(levels: np.ndarray) -> list[float]:
    """Ranges along phi_2 and phi_1 within the groups of phi_1 (the last column)."""
    labels = _three_groups(levels[:, 2])
    return [_group_range(levels[:, column], labels) for column in (1, 2)]
