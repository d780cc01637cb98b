"""The rescaled frame, and the explicit scheme of the authors' code in it."""

from __future__ import annotations

from typing import Any

import diffrax
import numpy as np
from scipy.linalg import expm

from ....dynamics import Dynamics
from ....integrate import Layers
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import flow
from ....space import Euclidean
from ....starts import box
from ....terms import Attention, Drift
from ....weights import Weights
from .. import PAPER
from .shared import eighths, positive_definite, rescaled


@PAPER.claim(
    "rescaling",
    where="the definition of the rescaled tokens (its number was not seen)",
    says="Rescaling the tokens by e^{-tV} turns attention alone into a system that sees only "
    "differences of tokens, with the same attention matrix.",
    given={"n": 8, "d": 3, "samples": 4, "t": 2.0, "drift": 0.0},
    at_paper_scale={"n": 20, "samples": 8},
    needs={"attention is the only term": lambda c: c.drift == 0.0},
    control=broken("another term, -x/2, is not undone by e^{-tV}", drift=-0.5),
    rtol=1e-10,
    atol=1e-12,
)
def rescaling(case: Case) -> list[Comparison]:
    """max |x(t) - e^{tV} z(t)| / max |x(t)|, x and z integrated apart, Q^T K and V generic."""
    rng = np.random.default_rng(case.seed)
    scores, values = rng.normal(size=(2, case.d, case.d)) / np.sqrt(case.d)
    x0 = box(Euclidean(case.d), case.n, case.seed, 1.0, samples=case.samples)
    lab = Dynamics(None, Attention(Weights(B=scores, V=values)) + Drift(case.drift))
    x = flow(case, lab, x0, eighths(case.t))[:, -1]
    z = flow(case, rescaled(scores, values), x0, eighths(case.t))[:, -1]
    # Errors of rtol, grown by at most e^{2 |V| t}, about 1e3.
    return [
        equals(
            "x against e^{tV} z, over max |x|",
            (x - z @ expm(case.t * values).T) / np.abs(x).max(),
            0.0,
            1e-7,
        )
    ]


@PAPER.claim(
    "euler-order",
    where="the scheme of the authors' code (not numbered)",
    says="The layers of the authors' code, which are explicit Euler steps, approach the rescaled flow "
    "at first order: half the step, half the error.",
    given={"n": 8, "d": 2, "samples": 4, "t": 1.0, "step": 0.0078125, "scheme": "layers"},
    at_paper_scale={"n": 20, "samples": 8},
    options={"scheme": ("layers", "heun")},
    needs={
        "the scheme is the explicit Euler step": lambda c: c.scheme == "layers",
        "the step is small (at most 1/64)": lambda c: c.step <= 1 / 64,
    },
    control=broken("a second-order scheme gains a factor four", scheme="heun"),
    note="The code names its scheme RK4, but its stages shift all tokens alike, which the field of "
    "differences does not see: it is Euler.",
    rtol=1e-10,
    atol=1e-12,
)
def euler_order(case: Case) -> list[Comparison]:
    """Error with the step over error with half the step, against 2."""
    model = rescaled(positive_definite(case.d, case.seed), np.eye(case.d))
    x0 = box(Euclidean(case.d), case.n, case.seed, 1.0, samples=case.samples)
    exact = flow(case, model, x0, eighths(case.t))[:, -1]
    errors = []
    for step in (case.step / case.refine, case.step / case.refine / 2):
        numerics = _numerics(case.scheme, step)
        end = flow(case, model, x0, eighths(case.t), rtol=None, atol=None, **numerics)[:, -1]
        errors.append(np.max(np.linalg.norm(end - exact, axis=-1), axis=-1))
    # Order one has the ratio 2, order two 4; the corrections O(step) lie well inside a quarter.
    return [equals("error ratio", errors[0] / errors[1], 2.0, 0.25)]


def _numerics(scheme: str, step: float) -> dict[str, Any]:
    """How `solve` is told to use a scheme with a step."""
    if scheme == "layers":
        return {"method": Layers(step)}
    return {"method": diffrax.Heun(), "dt": step}
