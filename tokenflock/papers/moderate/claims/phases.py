"""The first two phases: tokens fall on a subspace, then gather in of the order of sqrt(beta) clusters."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import field, flow
from ....measure import from_angles
from ....models import SA
from ....space import Sphere
from ....starts import uniform
from ....weights import Weights
from .. import PAPER

ABSTRACT = "Only the abstract was seen; "


@PAPER.claim(
    "first-drift",
    where="first phase (not numbered here)",
    says="With many tokens and a large beta each token moves by the value of the best key: "
    "x' = P_x V y with y = K^T Q x/|K^T Q x|.",
    given={"n": 256, "beta": 100.0},
    at_paper_scale={"n": 2048, "beta": 2000.0},
    needs={
        "there are many tokens in the width of the kernel (n >= 16 sqrt(beta))": lambda c: (
            c.n >= 16 * c.beta**0.5
        ),
        "beta is large": lambda c: c.beta >= 50,
    },
    control=broken("with 8 tokens none is near the best key", n=8),
    note=ABSTRACT + "the limit field is derived here, on the circle and for evenly spread tokens.",
)
def first_drift(case: Case) -> list[Comparison]:
    """The field against P_x V y for random Q, K, V.

    The softmax average is I_1(kappa)/I_0(kappa) y = (1 - 1/(2 kappa) + ...) y with
    kappa = beta |K^T Q x|; half of that is added for the next order.
    """
    random = np.random.default_rng(case.seed)
    Q, K = (np.eye(2) + 0.25 * random.uniform(-1, 1, size=(2, 2)) for _ in range(2))
    V = random.normal(size=(2, 2))
    grid = 2 * np.pi * (np.arange(case.n) + random.uniform()) / case.n
    tokens = from_angles(grid)
    points = np.asarray(tokens.points)
    best = points @ Q.T @ K
    length = np.linalg.norm(best, axis=-1, keepdims=True)
    value = best / length @ V.T
    expected = value - np.sum(points * value, axis=-1, keepdims=True) * points
    found = field(SA(case.beta, Weights(Q=Q, K=K, V=V)), tokens)
    neglected = np.linalg.norm(V, 2) / (2 * case.beta * length.min())
    return [equals("velocity against P_x V y", found, expected, 1.5 * float(neglected))]


def _values(case: Case, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """V = S diag S^{-1} (not symmetric) and S; the first two columns of S span the subspace."""
    basis = np.eye(case.d) + 0.3 * random.uniform(-1, 1, size=(case.d, case.d)) / case.d**0.5
    two = np.arange(case.d) < 2
    top = two if case.spectrum == "top" else ~two
    return basis @ np.diag(np.where(top, 2.0, 2.0 - case.gap)) @ np.linalg.inv(basis), basis


@PAPER.claim(
    "subspace-collapse",
    where="first phase (not numbered here)",
    says="Tokens that attend to themselves fall exponentially fast on the eigenspace of V with the "
    "largest eigenvalue, at the rate of the gap.",
    given={"n": 16, "d": 4, "samples": 4, "beta": 100.0, "gap": 1.5, "spectrum": "top"},
    at_paper_scale={"n": 64, "d": 8, "samples": 16, "beta": 1000.0},
    options={"spectrum": ("top", "bottom")},
    needs={
        "the eigenvalue of the subspace is the largest": lambda c: (
            c.spectrum == "top" and c.gap > 0
        ),
        "beta is large": lambda c: c.beta >= 50,
        "there is something beside the subspace (d >= 3)": lambda c: c.d >= 3,
    },
    control=broken("tokens leave the eigenspace of the smallest eigenvalue", spectrum="bottom"),
    note=ABSTRACT
    + "the rate is derived here for Q^T K = I, where the best key of a token is itself "
    "and x(t) follows e^{Vt} x.",
    rtol=1e-7,
    atol=1e-10,
)
def subspace_collapse(case: Case) -> list[Comparison]:
    """log of the largest |part beside| / |part in the subspace| against its start minus gap t.

    Parts are taken in the coordinates S^{-1} x. A token that also sees m neighbours at the angle a
    averages their parts, which shortens its part in the subspace by the share
    m (a^2/2)/(m + e^{beta a^2/2}) <= log(n)/beta: at the eigenvalue 2 the law is late by
    2 t log(n)/beta.
    """
    random = np.random.default_rng(case.seed)
    V, basis = _values(case, random)
    Q = np.eye(case.d) + 0.3 * random.uniform(-1, 1, size=(case.d, case.d)) / case.d**0.5
    model = SA(case.beta, Weights(Q=Q, K=np.linalg.inv(Q).T, V=V))
    times = np.array([0.0, 1.0, 2.0, 3.0])
    start = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    parts = flow(case, model, start, times) @ np.linalg.inv(basis).T
    beside = np.linalg.norm(parts[..., 2:], axis=-1)
    log_ratio = np.log(beside / np.linalg.norm(parts[..., :2], axis=-1)).max(axis=-1)
    excess = log_ratio - log_ratio[:, :1] + case.gap * times
    late = 2 * times[-1] * np.log(case.n) / case.beta
    return [at_most("log distance to the subspace over its law", excess, 0.0, float(late))]


def _count(states: np.ndarray, gap: float) -> np.ndarray:
    """Number of clusters of tokens (..., n, 2) on the circle: gaps wider than `gap`."""
    angles = np.sort(np.arctan2(states[..., 1], states[..., 0]), axis=-1)
    gaps = np.diff(angles, axis=-1, append=angles[..., :1] + 2 * np.pi)
    return np.maximum((gaps > gap).sum(axis=-1), 1)


def _spread(case: Case) -> np.ndarray:
    """Independent uniform angles (samples, n), or n tokens close to a few regular places."""
    random = np.random.default_rng(case.seed)
    if case.places == 0:
        return random.uniform(0, 2 * np.pi, size=(case.samples, case.n))
    place = 2 * np.pi * (np.arange(case.n) % case.places) / case.places
    return place + 0.01 * random.normal(size=(case.samples, case.n))


@PAPER.claim(
    "clusters-on-the-way",
    where="intermediate phase, quoted in 2512.01868",
    says="In the intermediate phase tokens sit in of the order of sqrt(beta) clusters: four times the "
    "beta, twice the number.",
    given={"n": 96, "beta": 16.0, "samples": 8, "time": 20.0, "places": 0},
    at_paper_scale={"n": 512, "beta": 64.0, "samples": 16},
    needs={
        "there are many tokens in the width of the kernel (n >= 8 sqrt(4 beta))": lambda c: (
            c.n >= 8 * (4 * c.beta) ** 0.5
        ),
        "beta is large": lambda c: c.beta >= 9,
        "tokens start all over the circle": lambda c: c.places == 0,
    },
    control=broken("tokens that start at four places form four clusters at any beta", places=4),
    note="An order of magnitude without constants: what is checked is the exponent 1/2. In units of "
    "beta^{-1/2} the circle only grows longer, so at a fixed time the number is proportional to its "
    "length.",
    rtol=1e-6,
    atol=1e-8,
)
def clusters_on_the_way(case: Case) -> list[Comparison]:
    """Mean number of clusters (gaps wider than beta^{-1/2}) at beta and 4 beta, from one start.

    The tolerance is 3 standard errors of the quotient, with the spread of the samples.
    """
    betas = case.beta * np.array([1.0, 4.0])
    states = flow(case, SA(betas), from_angles(_spread(case)), [case.time])[..., -1, :, :]
    counts = np.stack([_count(s, b**-0.5) for s, b in zip(states, betas, strict=True)])
    mean = counts.mean(axis=-1)
    error = counts.std(axis=-1, ddof=1) / np.sqrt(case.samples)
    tolerance = 3 * 2 * float(np.hypot(*(error / mean)))
    return [equals("number at 4 beta over number at beta", mean[1] / mean[0], 2.0, tolerance)]
