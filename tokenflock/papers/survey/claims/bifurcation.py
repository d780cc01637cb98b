"""Section 7: where the uniform law loses stability to noise-free attraction, and how."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev, Legendre
from scipy.optimize import root_scalar

from .... import theory
from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ....ledger.measure import MODELS, field
from ....measure import Measure, from_angles
from ....models import USA
from ....space import Sphere
from .. import PAPER

# Size of the harmonic added to the uniform law; the neglected term is of this relative order.
SMALL = 1e-6
DEGREES = (1, 2, 3)


@PAPER.claim(
    "linear-threshold",
    where="Section 7, bifurcations of the uniform law (number not seen)",
    says="Under noisy USA harmonics of degree k around the uniform law start to grow at "
    "kappa_k = beta/(Gamma(d/2)(2/beta)^(d/2-1) I_(k+d/2-1)(beta)).",
    given={"d": 3, "beta": 2.0, "size": 16, "model": "USA"},
    at_paper_scale={"size": 32},
    options={"model": ("SA", "USA")},
    needs={
        "d = 2 or 3, where the sphere has a simple quadrature": lambda c: c.d in (2, 3),
        "the model is USA": lambda c: c.model == "USA",
    },
    control=broken("SA divides the attraction by Z", model="SA"),
    note="The formula is the linearisation (Funk-Hecke); the survey cites it from other papers. "
    "The growth by drift is measured, and the decay k(k+d-2)/kappa by diffusion balances it.",
)
def thresholds(case: Case) -> list[Comparison]:
    """kappa_k = k(k+d-2)/(growth rate of degree k under the drift), k = 1, 2, 3, over theory's."""
    measured = [k * (k + case.d - 2) / _growth(case, k) for k in DEGREES]
    expected = theory.critical_kappa(np.array(DEGREES), case.d, case.beta)
    return [equals("kappa_k over its formula", measured / expected, 1.0, 100 * SMALL)]


def _growth(case: Case, degree: int) -> float:
    """d log <Y>/dt at the law (1 + SMALL Y) sigma, Y the zonal harmonic of the degree."""
    points, masses = _quadrature(case.d, case.size)
    zonal = (Chebyshev if case.d == 2 else Legendre).basis(degree)
    height = points[:, -1]
    weights = masses * (1 + SMALL * zonal(height))
    velocity = field(MODELS[case.model](case.beta), Measure(Sphere(case.d), points, weights))
    # The velocity is tangent, so its last coordinate is <P e, v>.
    change = np.sum(weights * zonal.deriv()(height) * velocity[:, -1])
    return float(change / np.sum(weights * zonal(height)))


def _quadrature(d: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights exact for harmonics of degree below 2 size, on the circle or the sphere."""
    turn = np.pi * (np.arange(2 * size) + 0.5) / size
    if d == 2:
        return np.stack([np.cos(turn), np.sin(turn)], axis=-1), np.full(2 * size, 0.5 / size)
    nodes, masses = np.polynomial.legendre.leggauss(size)
    height, angle = (axis.ravel() for axis in np.meshgrid(nodes, turn, indexing="ij"))
    level = np.sqrt(1 - height**2)
    points = np.stack([level * np.cos(angle), level * np.sin(angle), height], axis=-1)
    return points, np.repeat(masses, 2 * size) / (4 * size)


@PAPER.claim(
    "continuity",
    where="Not in the survey: abstract of 2606.05140, on the question of its Section 7",
    says="On the circle order sets in continuously as kappa grows if beta is below the root of "
    "I_2(beta)/I_1(beta) = 1/2, and with a jump above it.",
    given={"below": 0.9, "above": 1.1, "amplitude": 0.05, "size": 64},
    at_paper_scale={"size": 256, "amplitude": 0.02},
    needs={
        "one beta below the root": lambda c: c.below < 1,
        "one beta above the root": lambda c: c.above > 1,
    },
    control=broken("just below the root the onset is still continuous", above=0.95),
    note="Known from an abstract only. Checked is the direction in which the ordered branch leaves "
    "the threshold, kappa = kappa_1 + c r^2 + ...: c > 0 is continuous, c < 0 jumps.",
)
def direction_of_the_branch(case: Case) -> list[Comparison]:
    """(kappa(2r) - kappa(r))/(3 r^2 kappa(r)) at beta = below and above times the root."""
    root = float(theory.continuity_beta(2))
    return [
        at_least("curvature below the root", _curvature(case, case.below * root), 0.0),
        at_most("curvature above the root", _curvature(case, case.above * root), 0.0),
    ]


def _curvature(case: Case, beta: float) -> float:
    low, high = (_branch(case, beta, scale * case.amplitude) for scale in (1, 2))
    return (high - low) / (3 * case.amplitude**2 * low)


def _branch(case: Case, beta: float, order: float) -> float:
    """kappa at which a stationary law q ~ e^(kappa psi) has the order parameter r.

    psi' is the velocity of USA at q. Iterating q -> e^(kappa psi), with kappa chosen so that the
    order stays r, contracts like I_2(beta)/I_1(beta) per step.
    """
    angles = 2 * np.pi * np.arange(case.size) / case.size
    density = 1 + 2 * order * np.cos(angles)
    kappa = 0.0
    for _ in range(30):
        velocity = field(USA(beta), from_angles(angles, density))
        along = velocity[:, 1] * np.cos(angles) - velocity[:, 0] * np.sin(angles)
        potential = _primitive(along)
        kappa = _matching_kappa(angles, potential, order)
        density = np.exp(kappa * potential)
    return kappa


def _primitive(values: np.ndarray) -> np.ndarray:
    """A periodic primitive, by Fourier series."""
    modes = np.fft.rfft(values)
    degree = np.arange(modes.size)
    modes[1:] /= 1j * degree[1:]
    modes[0] = 0.0
    return np.fft.irfft(modes, values.size)


def _matching_kappa(angles: np.ndarray, potential: np.ndarray, order: float) -> float:
    """The kappa at which e^(kappa psi) has this order parameter."""

    def excess(kappa: float) -> float:
        weights = np.exp(kappa * (potential - potential.max()))
        return float(np.sum(weights * np.cos(angles)) / np.sum(weights)) - order

    return float(root_scalar(excess, bracket=(1e-3, 50.0)).root)
