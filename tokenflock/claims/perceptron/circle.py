"""Atoms on the circle and a ReLU perceptron, by the paper's own formulas in numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def unit(angles: np.ndarray) -> np.ndarray:
    """(cos, sin)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@dataclass(frozen=True)
class Neurons:
    """omega (width,) and a (width, 2) of a ReLU perceptron without biases."""

    omega: np.ndarray
    a: np.ndarray

    @property
    def size(self) -> float:
        """W = sum_j |omega_j| |a_j|^2."""
        return float(np.abs(self.omega) @ np.sum(self.a**2, axis=-1))

    def scaled(self, factor: float) -> Neurons:
        """omega times a factor."""
        return Neurons(factor * self.omega, self.a)

    def potential(self, angles: np.ndarray) -> np.ndarray:
        """v = sum_j omega_j (a_j.x)_+^2."""
        return np.maximum(unit(angles) @ self.a.T, 0.0) ** 2 @ self.omega

    def half_curvature(self, angles: np.ndarray) -> np.ndarray:
        """v''/2 = sum_j omega_j (sigma'(a_j.x) (a_j.x')^2 - sigma(a_j.x) a_j.x)."""
        score = unit(angles) @ self.a.T
        across = unit(angles + np.pi / 2) @ self.a.T
        return ((score > 0) * across**2 - np.maximum(score, 0.0) * score) @ self.omega


def second_variation(
    angles: np.ndarray, masses: np.ndarray, beta: float, neurons: Neurons
) -> np.ndarray:
    """Eigenvalues of d^2 E in the metric of the masses, ascending, in units of e^beta (form A).

    H_ij = -(m_i m_j/b) K'', H_ii = (m_i/b) sum_{j != i} m_j K'' + m_i v''/2, K = e^{b cos}.
    """
    difference = angles[:, None] - angles
    cosine = np.cos(difference)
    curvature = np.exp(beta * (cosine - 1)) * (beta * np.sin(difference) ** 2 - cosine)
    np.fill_diagonal(curvature, 0.0)
    own = curvature @ masses + np.exp(-beta) * neurons.half_curvature(angles)
    root = np.sqrt(masses)
    return np.linalg.eigvalsh(np.diag(own) - root[:, None] * curvature * root)
