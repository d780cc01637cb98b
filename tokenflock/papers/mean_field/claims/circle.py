"""Tokens on the circle near the uniform measure, and the Fourier modes muhat_k of what they form."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....ledger.measure import field
from ....measure import Measure, from_angles


def waves(
    n: int, modes: np.ndarray, amplitudes: np.ndarray, seed: int, samples: int = 1
) -> np.ndarray:
    """Angles (samples, n) whose density is 1 + sum_k a_k cos(k theta + phase_k) + O(a^2).

    theta = g - sum_k a_k sin(k g + phase_k)/k on a regular grid g, turned by a random angle; the
    phases are random, so that no symmetry hides a sign.
    """
    random = np.random.default_rng(seed)
    grid = 2 * np.pi * (np.arange(n) / n + random.uniform(size=(samples, 1)))
    phases = random.uniform(0, 2 * np.pi, size=(samples, 1, len(modes)))
    ripple = np.sin(modes * grid[..., None] + phases) * amplitudes / modes
    return grid - ripple.sum(axis=-1)


def angles_of(states: np.ndarray) -> np.ndarray:
    """theta of tokens (..., 2)."""
    return np.arctan2(states[..., 1], states[..., 0])


def moments(angles: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """muhat_k = (1/n) sum_j e^{-i k theta_j} of angles (..., n), as (..., modes)."""
    return np.exp(-1j * modes * angles[..., None]).mean(axis=-2)


def angular_speed(model: Dynamics, tokens: Measure) -> np.ndarray:
    """theta' of every token, from the field of the model."""
    points, velocity = np.asarray(tokens.points), field(model, tokens)
    return points[:, 0] * velocity[:, 1] - points[:, 1] * velocity[:, 0]


def mode_rates(model: Dynamics, angles: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """Re (d muhat_k/dt)/muhat_k at one set of angles (n,): the growth rate of every mode."""
    speed = angular_speed(model, from_angles(angles))
    turning = np.exp(-1j * modes * angles[:, None])
    slope = (-1j * modes * speed[:, None] * turning).mean(axis=0)
    return (slope / turning.mean(axis=0)).real
