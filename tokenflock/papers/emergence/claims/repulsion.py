"""V = -I (theorem C.5): tokens shrink to zero, algebraically."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import flow
from ....space import Euclidean
from ....starts import box
from ....terms import Attention
from ....weights import Weights
from .. import PAPER

GIVEN = {"n": 8, "d": 2, "samples": 4, "t": 1000.0, "score": 1.0}
NEEDS = {"Q^T K = I": lambda c: c.score == 1.0}
NOTE = "The rate is not in the theorem; it is derived here, together with its error log(t)/t."
# The mean is of size t^{-5/2}, 1e-8 at t = 1000: the absolute tolerance must lie far below it.
RTOL, ATOL = 1e-10, 1e-15


def _repelled(case: Case, times: np.ndarray) -> np.ndarray:
    """Tokens of x_i' = -sum_j P_ij x_j with Q^T K = score I, (samples, times, n, d)."""
    weights = Weights(V=-1.0, B=case.score * np.eye(case.d))
    x0 = box(Euclidean(case.d), case.n, case.seed, 1.0, samples=case.samples)
    return flow(case, Dynamics(None, Attention(weights)), x0, times)


def _neglected(t: float) -> float:
    """Size of what the expansion in 1/t leaves out: log(t)/t times cumulants of order one.

    C^{-1} = 2t + c log t + C_0^{-1}, where C_0^{-1} is about 3 and c is a squared skewness.
    """
    return 5.0 * float(np.log(t)) / t


def _moments(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, covariance and third cumulant of the tokens (..., n, d)."""
    mean = states.mean(axis=-2)
    centred = states - mean[..., None, :]
    n = states.shape[-2]
    covariance = np.einsum("...ia,...ib->...ab", centred, centred) / n
    third = np.einsum("...ia,...ib,...ic->...abc", centred, centred, centred) / n
    return mean, covariance, third


@PAPER.claim(
    "thm-C.5",
    where="Theorem C.5",
    says="With V = -I every token converges to zero, and the covariance of the tokens does so like "
    "the identity over 2t.",
    given=GIVEN,
    at_paper_scale={"n": 20, "samples": 8},
    needs=NEEDS,
    control=broken("with Q^T K = 2I the covariance is the identity over 4t", score=2.0),
    note=NOTE,
    rtol=RTOL,
    atol=ATOL,
)
def repulsion(case: Case) -> list[Comparison]:
    """2 t C(t) against I, and |x_i|^2 against n tr C = n d/(2t), which bounds it up to the mean."""
    states = _repelled(case, np.array([case.t / 4, case.t]))[:, -1]
    covariance = _moments(states)[1]
    bound = np.sqrt(case.n * case.d / (2 * case.t))
    allowed = _neglected(case.t)
    return [
        equals("2 t C(t) against the identity", 2 * case.t * covariance, np.eye(case.d), allowed),
        at_most("largest |x_i(t)|", np.linalg.norm(states, axis=-1), bound, allowed * float(bound)),
    ]


@PAPER.claim(
    "repulsion-mean",
    where="Theorem C.5, the slowest part (not numbered)",
    says="With V = -I the mean of the tokens is slaved to their skewness and decays like t^{-5/2}, "
    "not exponentially.",
    given=GIVEN,
    at_paper_scale={"n": 20, "samples": 8},
    needs=NEEDS,
    control=broken("with Q^T K = 2I the skewness acts four times as strongly", score=2.0),
    note=NOTE,
    rtol=RTOL,
    atol=ATOL,
)
def repulsion_mean(case: Case) -> list[Comparison]:
    """m = -kappa_3 : C / 2 from m' = -m - C m - kappa_3 : C / 2 - ..., and the slope of log |m|."""
    times = np.array([case.t / 4, case.t])
    mean, covariance, third = _moments(_repelled(case, times))
    slaved = -0.5 * np.einsum("...abc,...bc->...a", third, covariance)
    off = np.linalg.norm(mean - slaved, axis=-1) / np.linalg.norm(mean, axis=-1)
    # Over all samples: in a single one kappa_3 : I may nearly cancel, and corrections then look large.
    size = np.sqrt(np.mean(np.sum(mean**2, axis=-1), axis=0))
    slope = np.log(size[1] / size[0]) / np.log(times[1] / times[0])
    return [
        at_most("|m + kappa_3 : C / 2| / |m|", off[:, -1], 0.0, _neglected(case.t)),
        equals("slope of log |m| in log t", slope, -2.5, _neglected(case.t / 4)),
    ]
