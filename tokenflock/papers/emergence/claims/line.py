"""Tokens on a line (d = 1): their order, and attention that becomes a Boolean matrix."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ....ledger.measure import flow, read
from ....measure import Measure, from_array
from ....observables import attention_matrix
from ....space import Euclidean
from ....starts import box
from .. import PAPER
from .shared import eighths, rescaled

THEOREM = "theorem for d = 1 (its number was not seen)"
# A row differs from a basis row by about n e^{-|x_i| gap}: |x_i| grows like e^t and gaps never
# shrink, so at t = 14 this allows |x_i(0)| gap of 1e-5; everything larger is far below it.
ONE_HOT = 1e-6
LINE = {
    "V > 0": lambda c: c.value > 0,
    "Q K > 0": lambda c: c.score > 0,
}


def _line(case: Case, start: str = "both") -> Measure:
    """Distinct tokens in [-3/2, 3/2], or their moduli moved away from 0."""
    x0 = box(Euclidean(1), case.n, case.seed, 1.5, samples=case.samples)
    return x0 if start == "both" else from_array(x0.space, np.abs(x0.points) + 0.05)


def _final_attention(case: Case, x0: Measure) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (samples, n) and attention matrices (samples, n, n) at the time of the case."""
    model = rescaled(case.score * np.eye(1), case.value * np.eye(1))
    last = flow(case, model, x0, eighths(case.t))[:, -1]
    matrices = [read(attention_matrix, model, from_array(x0.space, z), case.t)[0] for z in last]
    return last[..., 0], np.stack(matrices)


@PAPER.claim(
    "boolean-matrix",
    where=THEOREM,
    says="On a line the attention matrix converges, and all its rows but at most one become the "
    "row that looks at the smallest or at the largest token, so that its rank is at most three.",
    given={"n": 6, "samples": 4, "t": 14.0, "value": 1.0, "score": 1.0},
    at_paper_scale={"n": 40, "samples": 8},
    needs=LINE,
    control=broken("V < 0 pulls all tokens to zero, where attention is flat", value=-1.0),
)
def boolean_matrix(case: Case) -> list[Comparison]:
    """Second largest over i of 1 - max(P_i,min, P_i,max), and the fourth singular value of P."""
    tokens, attention = _final_attention(case, _line(case))
    ends = np.stack([tokens.argmin(axis=1), tokens.argmax(axis=1)], axis=1)
    on_ends = np.take_along_axis(attention, ends[:, None, :], axis=2)
    defect = np.sort(1.0 - on_ends.max(axis=2), axis=1)
    fourth = np.linalg.svd(attention, compute_uv=False)[:, 3:].max(initial=0.0)
    return [
        at_most("defect of every row but one from a basis row", defect[:, :-1], 0.0, ONE_HOT),
        at_most("fourth singular value of the attention", fourth, 0.0, ONE_HOT),
    ]


@PAPER.claim(
    "boolean-one-sign",
    where=THEOREM,
    says="If all tokens of a line start on the positive side, then in the end everybody looks at "
    "the largest one and the attention matrix has rank one.",
    given={"n": 6, "samples": 4, "t": 14.0, "value": 1.0, "score": 1.0, "start": "positive"},
    at_paper_scale={"n": 40, "samples": 8},
    options={"start": ("positive", "both")},
    needs={**LINE, "all tokens start positive": lambda c: c.start == "positive"},
    control=broken("negative tokens follow the smallest token", start="both"),
    note="The rank-one case is not spelt out in the theorem; it follows from its mechanism.",
)
def boolean_one_sign(case: Case) -> list[Comparison]:
    """max |P_ij - delta_{j, argmax}|."""
    tokens, attention = _final_attention(case, _line(case, case.start))
    largest = np.eye(case.n)[tokens.argmax(axis=1)]
    return [equals("attention against rows e_max", attention, largest[:, None, :], ONE_HOT)]


@PAPER.claim(
    "ordered-gaps",
    where=THEOREM + ", its mechanism",
    says="Tokens of a line keep their order, and the distance between two neighbours never falls "
    "below its initial value.",
    given={"n": 6, "samples": 4, "t": 4.0, "value": 1.0, "score": 1.0},
    at_paper_scale={"n": 40, "samples": 8},
    needs=LINE,
    control=broken("V < 0 draws neighbours together", value=-1.0),
    note="That gaps never shrink is derived here: x -> sum_j P(x)_j x_j has the derivative "
    "QK Var_P >= 0.",
)
def ordered_gaps(case: Case) -> list[Comparison]:
    """min over neighbours and times of (x_{i+1} - x_i)(t) / (x_{i+1} - x_i)(0), x = e^{tV} z."""
    times = eighths(case.t)
    model = rescaled(case.score * np.eye(1), case.value * np.eye(1))
    x0 = _line(case)
    order = np.argsort(np.asarray(x0.points)[..., 0], axis=-1)
    tokens = flow(case, model, x0, times)[..., 0]
    gaps = np.diff(np.take_along_axis(tokens, order[:, None, :], axis=-1), axis=-1)
    growth = np.exp(case.value * times)[1:, None] * gaps[:, 1:] / gaps[:, :1]
    # Solver errors of 1e-9 grow by e^t and are seen against the smallest gap.
    return [at_least("growth of a gap between neighbours", growth, 1.0, 1e-6)]
