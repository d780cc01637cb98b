"""Whether a stationary state can have infinitely many points in its support, for one ReLU perceptron.

Infinitely many points have a limit, and infinitely many of them lie on one side of it, where the same neurons
J are active and v = v_J := sum_J omega_j (a_j.x)^2 = constant + Re(z e^{2 i theta}). The field with v_J for v
is analytic and has a limit of zeros: it vanishes on the whole circle. That leaves one measure per J:

    unnormalised    int e^{beta cos} dmu = C - (beta/2) v_J: mu has the density 1 + Re(c e^{2 i theta}),
                    c = -beta z/(2 I_2(beta)). It is a measure for |c| <= 1, then of full support, and
                    stationary only if v' = v_J' everywhere
    softmax         int e^{beta cos} dmu = C e^{-(beta/2) v_J}: mode 2 k of mu has the size
                    (I_k(beta |z|/2)/I_0(beta |z|/2)) / (I_2k(beta)/I_0(beta)), which exceeds 1 for large k
                    unless z = 0. Then mu is uniform, and stationary only if v' = 0 everywhere

Each J is refused by a number > 0; the smallest over all J is what the claims measure. Where it is positive
every stationary state of this perceptron has finitely many atoms; 0 means that a spread-out one exists.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, hyp0f1, ive

from .circle import Neurons

ANGLES = np.linspace(0.0, 2 * np.pi, 4000, endpoint=False)
# Modes tried for softmax; and the part of the perceptron's size below which a number counts as zero.
MODES = np.arange(1, 400)
ROUNDING = 1e-12


def refusal(neurons: Neurons, beta: float, normalised: bool) -> float:
    """The smallest over the active sets J of what refuses its measure; 0 up to rounding if nothing does."""
    refused = _refused_by_softmax if normalised else _refused_unnormalised
    return min(refused(neurons, beta, z) for z in neurons.waves(neurons.active_sets()))


def density_wave(z: complex, beta: float) -> complex:
    """c of the density 1 + Re(c e^{2 i theta}), for attention e^{beta (cos - 1)} (form B)."""
    return -beta * z / (2 * float(ive(2, beta)))


def _refused_unnormalised(neurons: Neurons, beta: float, z: complex) -> float:
    """|c| - 1 where the density is negative, else the largest |v' - v_J'| over the perceptron's size."""
    negative = abs(density_wave(z, beta)) - 1
    difference = neurons.slope(ANGLES) - np.real(2j * z * np.exp(2j * ANGLES))
    return max(negative, float(np.abs(difference).max()) / max(neurons.size, ROUNDING))


def _refused_by_softmax(neurons: Neurons, beta: float, z: complex) -> float:
    """Largest logarithm of a mode's size; where z = 0, the largest |v'| over the perceptron's size."""
    if abs(z) <= ROUNDING * neurons.size:
        return float(np.abs(neurons.slope(ANGLES)).max()) / max(neurons.size, ROUNDING)
    needed = _log_bessel_ratio(MODES, beta * abs(z) / 2) - _log_bessel_ratio(2 * MODES, beta)
    return float(needed.max())


def _log_bessel_ratio(order: np.ndarray, x: float) -> np.ndarray:
    """log(I_order(x)/I_0(x)), from I_k = (x/2)^k 0F1(k + 1, x^2/4)/k!, which does not underflow."""
    own = order * np.log(x / 2) - gammaln(order + 1) + np.log(hyp0f1(order + 1, x**2 / 4))
    return own - np.log(hyp0f1(1, x**2 / 4))
