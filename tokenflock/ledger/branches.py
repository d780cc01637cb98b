"""What the noisy papers measure: the first branch around its threshold, in units of the threshold."""

from __future__ import annotations

import numpy as np

from .. import theory
from ..density import Density
from ..meanfield.galerkin import Galerkin
from ..meanfield.stationary import Branch, branch
from ..meanfield.zonal import Zonal
from ..models import USA
from .claim import Case
from .measure import KINDS, MODELS


def threshold(case: Case, d: int, beta: float, degree: int = 1) -> float:
    """The temperature below which harmonics of a degree grow."""
    return float(theory.critical_temperature(degree, d, beta, KINDS[case.model]))


def near_threshold(
    case: Case, d: int, beta: float, degree: int = 1, sign: int = 1
) -> tuple[Branch, np.ndarray]:
    """Two points next to the threshold, and T/T_l - 1 there; the step halves when the case refines."""
    start = threshold(case, d, beta, degree)
    found = branch(
        MODELS[case.model](beta),
        Zonal(d, case.size),
        (0.5 * start, 2 * start),
        degree,
        sign,
        step=0.02 / case.refine,
        largest=0.02,
        points=2,
    )
    return found, found.temperatures / start - 1


def curvature(case: Case, d: int, beta: float, degree: int = 1) -> float:
    """g in T = T_l (1 + g m^2 + O(m^4)), m = c_l/sqrt(d): from two points, extrapolated to m = 0.

    What is left is of order m^4, some 1e-6. For l = 1, m is the order parameter.
    """
    found, excess = near_threshold(case, d, beta, degree)
    squares = found.curve.states[:, degree - 1] ** 2 / d
    slopes = excess / squares
    return float((slopes[0] * squares[1] - slopes[1] * squares[0]) / (squares[1] - squares[0]))


def whole_branch(case: Case, d: int, beta: float) -> tuple[Branch, float]:
    """The first branch of USA from a little below its threshold up, and the threshold."""
    start = float(theory.critical_temperature(1, d, beta))
    found = branch(USA(beta), Zonal(d, case.size), (0.97 * start, 3 * start))
    return found, start


def order(density: Density) -> float:
    """|int x dmu|."""
    scheme = density.on.scheme()
    assert isinstance(scheme, Galerkin)
    return float(scheme.order_parameter(density.state))
