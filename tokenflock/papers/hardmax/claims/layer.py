"""What one layer does: metric, norms, hulls, chains, and how close softmax comes."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....kinds import L2, Softmax
from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals, misprint
from ....ledger.measure import read
from ....measure import from_array
from ....observables import attention_matrix, leader_mask
from ....terms import Attention
from ....weights import Weights
from .. import PAPER
from .shared import (
    DEFINITE,
    GIVEN,
    NUMBER,
    PAPER_SCALE,
    POSITIVE_ALPHA,
    ROUNDING,
    SYMMETRIC,
    cloud,
    hardmax,
    metric,
    run_layers,
    scores,
    squared_norms,
)


@PAPER.claim(
    "reduction",
    where=f"reduction to A = I ({NUMBER})",
    says="A symmetric positive definite A is only a change of coordinates: with A = L L^T the tokens "
    "L^T z follow the layers of A = I.",
    given={**GIVEN, "skew": 0.0},
    at_paper_scale=PAPER_SCALE,
    needs={**SYMMETRIC, **POSITIVE_ALPHA},
    control=broken("a skew part of A turns the tokens towards other leaders", skew=1.0),
)
def reduction(case: Case) -> list[Comparison]:
    """max |L^T z^k - y^k| over 32 layers; z moves with A, y from L^T z^0 with the identity."""
    matrix = metric(case)
    factor = np.linalg.cholesky(matrix)
    x0 = cloud(case)
    turned = from_array(x0.space, np.asarray(x0.points) @ factor)
    z = run_layers(case, hardmax(metric(case, case.skew)), x0).states
    y = run_layers(case, hardmax(np.eye(case.d)), turned).states
    return [equals("L^T z against y", z @ factor - y, 0.0, ROUNDING)]


@PAPER.claim(
    "norm-gain",
    where=f"monotone norms ({NUMBER})",
    says="No layer shortens a token, and the gain of its squared length is at least the square of "
    "its step.",
    given={**GIVEN, "sign": 1.0},
    at_paper_scale=PAPER_SCALE,
    needs={**DEFINITE, **POSITIVE_ALPHA},
    control=broken("with A negative tokens turn to the opposite side", sign=-1.0),
)
def norm_gain(case: Case) -> list[Comparison]:
    """|z^{k+1}|_A^2 - |z^k|_A^2 - gamma^2 |m - z^k|_A^2 >= 0, with gamma (m - z^k) the step itself."""
    matrix = metric(case)
    states = run_layers(case, hardmax(case.sign * matrix), cloud(case)).states
    gain = np.diff(squared_norms(states, matrix), axis=1)
    steps = squared_norms(np.diff(states, axis=1), matrix)
    # Leaders gain exactly nothing, so the smallest excess is 0 up to rounding.
    return [at_least("gain of |z|_A^2 beyond the squared step", gain - steps, 0.0, ROUNDING)]


@PAPER.claim(
    "nested-hulls",
    where=f"nested convex hulls ({NUMBER})",
    says="Each layer maps the tokens into their convex hull.",
    given=GIVEN,
    at_paper_scale=PAPER_SCALE,
    needs=POSITIVE_ALPHA,
    control=broken("alpha = -3/2 steps three times past the leader", alpha=-1.5),
    errata=[
        misprint(
            "the public code calls alpha.clamp(0), which leaves alpha as it is: nothing keeps training "
            "from a negative alpha",
            alpha=-2.0,
        )
    ],
)
def nested_hulls(case: Case) -> list[Comparison]:
    """max_i <u, z_i^k> never rises with k, for 64 directions u."""
    rng = np.random.default_rng(case.seed)
    directions = rng.normal(size=(case.d, 64))
    directions /= np.linalg.norm(directions, axis=0)
    states = run_layers(case, hardmax(metric(case)), cloud(case)).states
    rise = np.diff(np.max(states @ directions, axis=-2), axis=1)
    return [at_most("rise of the hull's support function", rise, 0.0, ROUNDING)]


@PAPER.claim(
    "chains",
    where=f"chains of attention ({NUMBER})",
    says="A token that is not a leader attends only to longer tokens, so that following attention "
    "from token to token ends at a leader.",
    given={"n": 8, "d": 2, "samples": 4, "sign": 1.0},
    at_paper_scale=PAPER_SCALE,
    needs=DEFINITE,
    control=broken("with A negative the longest token attends to a shorter one", sign=-1.0),
)
def chains(case: Case) -> list[Comparison]:
    """|z_j|_A - |z_i|_A >= 0 for the attended j, and the token n steps down the chain leads."""
    matrix = metric(case)
    model = hardmax(case.sign * matrix)
    gains, ends = [], []
    for tokens in np.asarray(cloud(case).points):
        measure = from_array(cloud(case).space, tokens)
        attended = read(attention_matrix, model, measure)[0].argmax(axis=1)
        lengths = np.sqrt(squared_norms(tokens, matrix))
        gains.append(lengths[attended] - lengths)
        last = np.arange(case.n)
        for _ in range(case.n):
            last = attended[last]
        ends.append(read(leader_mask, model, measure)[last])
    return [
        at_least("gain of length along the attended token", gains, 0.0, ROUNDING),
        at_least("whether chains end at a leader", ends, 1.0),
    ]


@PAPER.claim(
    "softmax-closeness",
    where=f"closeness to softmax ({NUMBER})",
    says="A row of softmax attention differs from the hardmax row by at most 2(n-1) times e to the "
    "minus its attention gap over the temperature.",
    given={"n": 8, "d": 2, "samples": 4, "temperature": 0.1, "kind": "softmax"},
    at_paper_scale={**PAPER_SCALE, "temperature": 0.001},
    options={"kind": ("softmax", "l2")},
    needs={"attention is a softmax of the same scores": lambda c: c.kind == "softmax"},
    control=broken("attention to the nearest token tends to another limit", kind="l2"),
)
def softmax_closeness(case: Case) -> list[Comparison]:
    """max_i |P_i^soft - P_i^hard|_1 against 2(n-1) e^{-g_i/tau}, g_i the largest score less the next."""
    matrix = metric(case)
    soft = _soft(case, matrix)
    x0 = cloud(case)
    ratios = []
    for tokens in np.asarray(x0.points):
        measure = from_array(x0.space, tokens)
        rows = [read(attention_matrix, model, measure)[0] for model in (soft, hardmax(matrix))]
        ordered = np.sort(scores(tokens, matrix), axis=1)
        gap = ordered[:, -1] - ordered[:, -2]
        bound = 2 * (case.n - 1) * np.exp(-gap / case.temperature)
        # Where the bound is below it, the rows are equal up to the rounding of a sum of n weights.
        ratios.append(np.abs(rows[0] - rows[1]).sum(axis=1) / (bound + ROUNDING))
    return [at_most("|P_soft - P_hard|_1 over its bound", ratios, 1.0)]


def _soft(case: Case, matrix: np.ndarray) -> Dynamics:
    """softmax(<A z_i, z_j>/tau), or softmax(-|z_i - z_j|_A^2/(2 tau)), which prefers the nearest."""
    factor = np.linalg.cholesky(matrix).T
    weights = Weights(Q=factor, K=factor)
    if case.kind == "softmax":
        return Dynamics(None, Attention(weights, 1.0 / case.temperature, Softmax()))
    return Dynamics(None, Attention(weights, 0.5 / case.temperature, L2()))
