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

    def slope(self, angles: np.ndarray) -> np.ndarray:
        """v' = 2 sum_j omega_j (a_j.x)_+ a_j.x'."""
        across = unit(angles + np.pi / 2) @ self.a.T
        return 2 * (np.maximum(unit(angles) @ self.a.T, 0.0) * across) @ self.omega

    def active_sets(self) -> np.ndarray:
        """Which neurons are active (a_j.x > 0) between the kinks of the circle, (arc, width)."""
        turns = np.arctan2(self.a[:, 1], self.a[:, 0])[:, None] + np.array([-1, 1]) * np.pi / 2
        kinks = np.sort(np.mod(turns.ravel(), 2 * np.pi))
        kinks = kinks[np.diff(kinks, prepend=kinks[-1] - 2 * np.pi) > 1e-9]
        between = kinks + np.diff(kinks, append=kinks[0] + 2 * np.pi) / 2
        return unit(between) @ self.a.T > 0

    def waves(self, signs: np.ndarray) -> np.ndarray:
        """z of every row of signs: x.(sum_j signs_j omega_j a_j a_j^T) x = constant + Re(z e^{2 i theta}).

        The matrix is a multiple of the identity exactly where z = 0.
        """
        own = self.omega * (self.a[:, 0] - 1j * self.a[:, 1]) ** 2 / 2
        return signs.astype(float) @ own

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
