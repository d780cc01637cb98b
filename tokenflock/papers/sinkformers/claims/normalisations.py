"""Rows, columns, and how many times in turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import read
from ....measure import Measure
from ....observables import attention_matrix
from ....space import Euclidean
from .. import PAPER, closed_forms
from .shared import NUMBER, attention, random_tokens


@PAPER.claim(
    "doubly-stochastic",
    where=f"definition of Sinkhorn attention ({NUMBER})",
    says="K^inf is doubly stochastic: every token gives as much attention as it receives.",
    given={"kind": "sinkhorn", "n": 16, "d": 2},
    at_paper_scale={"n": 200, "d": 8},
    options={"kind": ("softmax", "sinkhorn")},
    needs={"attention is K^inf": lambda c: c.kind == "sinkhorn"},
    control=broken("softmax normalises rows alone", kind="softmax"),
    note="Masses are random: columns weigh tokens by them.",
)
def doubly_stochastic(case: Case) -> list[Comparison]:
    """P6c-1: row and column sums; the stated error of the marginals is 1e-12, a mass at least 1/(3n)."""
    rng = np.random.default_rng(case.seed)
    tokens, B = random_tokens(rng, case.n, case.d), rng.normal(size=(case.d, case.d))
    matrix = read(attention_matrix, attention(case.kind, B, np.eye(case.d)), tokens)[0]
    masses = np.asarray(tokens.weights)
    return [
        equals("row sums", matrix.sum(axis=1), 1.0, 1e-10),
        equals("column sums", masses @ matrix / masses, 1.0, 1e-10),
    ]


@PAPER.claim(
    "iterations",
    where="the authors' models: 1, 3, 5, ... normalisations",
    says="Normalising rows and columns of e^{QK^T} in turn, rows first, is softmax after one step and K^inf "
    "in the end; each pair of steps shrinks the error by the square of K^inf's second singular value.",
    given={"sides": 2, "n": 10, "d": 2},
    at_paper_scale={"n": 40},
    needs={"rows and columns are both normalised": lambda c: c.sides == 2},
    control=broken("normalising rows again and again is softmax for ever", sides=1),
    note="The rate is that of Knight (2008), read where the error is 1e-5 along the second singular vector; "
    "its own corrections are of that size. The paper has no rate.",
)
def iterations(case: Case) -> list[Comparison]:
    """One step against the engine's softmax, hundreds against its Sinkhorn, and the rate between."""
    rng = np.random.default_rng(case.seed)
    points = rng.normal(size=(case.n, case.d))
    tokens = Measure(Euclidean(case.d), points)
    B, V = rng.normal(size=(case.d, case.d)), np.eye(case.d)
    scores = points @ B @ points.T

    def after(steps: int) -> np.ndarray:
        return closed_forms.alternating(scores, steps if case.sides == 2 else min(steps, 1))

    softmax, limit = (
        read(attention_matrix, attention(kind, B, V), tokens)[0] for kind in ("softmax", "sinkhorn")
    )
    return [
        equals("one step", after(1), softmax, 1e-12),
        equals("4001 steps", after(4001), limit, 1e-9),
        equals("shrinking of the error", *_shrinking(after, limit), 1e-3),
    ]


def _shrinking(after: Callable[[int], np.ndarray], limit: np.ndarray) -> tuple[float, float]:
    """The error of the column sums along the second singular vector, two steps later; and the rate."""
    direction = np.linalg.svd(limit)[2][1]

    def error(steps: int) -> float:
        return float((after(steps).sum(axis=0) - 1.0) @ direction)

    steps = next((k for k in range(1, 2001, 2) if abs(error(k)) < 1e-5), 1)
    return error(steps + 2) / error(steps), closed_forms.alternation_rate(limit)
