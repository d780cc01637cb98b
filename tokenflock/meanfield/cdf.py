"""Distribution functions on the circle: from a density's Fourier coefficients, and their inverses.

A density p = sum_k c_k e^{ik theta} with respect to d theta/(2 pi), c_0 = 1, has

    F(theta) = (theta - cut)/(2 pi) + sum_{k != 0} c_k (e^{ik theta} - e^{ik cut})/(2 pi i k),

the mass between the cut and theta. F is inverted by Newton's method inside a bracket.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..density import Law
from ..errors import require

# The cut: masses are counted from here, so that a law symmetric about 0 has symmetric quantiles.
CUT = -np.pi
# A series is resolved when the upper half of its coefficients is below this part of c_0.
RESOLVED = 1e-14
# Coefficients below this part of c_0 do not move a quantile.
NEGLIGIBLE = 1e-16
FEWEST_NODES, MOST_NODES = 1 << 8, 1 << 17
# Cells of the table that brackets quantiles, per highest mode.
CELLS_PER_MODE = 8
NEWTON_STEPS = 12
# Newton's method ends at this error of a mass: rounding of the sums.
MASS_TOLERANCE = 4e-16
# Numbers (quantiles times modes) held at a time.
BLOCK = 1 << 22


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A law on the circle by its coefficients c_1..c_K, relative to the uniform probability."""

    coefficients: Float[np.ndarray, " modes"]

    def masses(self, theta: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """F(theta), lifted: F(theta + 2 pi) = F(theta) + 1."""
        k = np.arange(1, self.coefficients.size + 1)
        primitive = self.coefficients / (1j * k) / np.pi
        start = np.real(primitive @ np.exp(1j * k * CUT)) if k.size else 0.0
        return (theta - CUT) / (2 * np.pi) + self._sum(primitive, theta) - start

    def table(self, cells: int) -> tuple[np.ndarray, np.ndarray]:
        """cells + 1 equally spaced angles from the cut on, with their masses, by one FFT."""
        angles = CUT + 2 * np.pi * np.arange(cells + 1) / cells
        k = np.arange(1, self.coefficients.size + 1)
        assert cells > 2 * k.size
        spectrum = np.zeros(cells // 2 + 1, complex)
        spectrum[1 : k.size + 1] = self.coefficients / (1j * k) * np.exp(1j * k * CUT) / (2 * np.pi)
        wave = np.fft.irfft(spectrum, cells) * cells
        return angles, np.arange(cells + 1) / cells + np.append(wave, wave[0]) - wave[0]

    def densities(self, theta: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """p(theta) with respect to d theta/(2 pi)."""
        return 1.0 + self._sum(2.0 * self.coefficients, theta)

    def moments(self, theta: Float[np.ndarray, " m"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int p, int theta p and int theta^2 p from 0 to theta, over 2 pi, up to constants.

        Of e^{ik theta}: w, (theta - 1/(ik)) w and (theta^2 - 2 theta/(ik) + 2/(ik)^2) w, where
        w = e^{ik theta}/(ik).
        """
        ik = 1j * np.arange(1, self.coefficients.size + 1)
        wave = [self._sum(self.coefficients / ik**power / np.pi, theta) for power in (1, 2, 3)]
        return (
            theta / (2 * np.pi) + wave[0],
            theta**2 / (4 * np.pi) + theta * wave[0] - wave[1],
            theta**3 / (6 * np.pi) + theta**2 * wave[0] - 2 * theta * wave[1] + 2 * wave[2],
        )

    def quantiles(self, masses: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """theta with F(theta) = mass, for masses in [0, 1], to rounding over the density there.

        Where the density vanishes on an arc any point of it is right; one inside is given.
        """
        cells = max(FEWEST_NODES, CELLS_PER_MODE * self.coefficients.size)
        grid, rising = self.table(cells)
        table = np.maximum.accumulate(rising)
        cell = np.clip(np.searchsorted(table, masses, side="right") - 1, 0, cells - 1)
        low, high = grid[cell], grid[cell + 1]
        rise = np.maximum(table[cell + 1] - table[cell], 1e-300)
        theta = low + (high - low) * np.clip((masses - table[cell]) / rise, 0.0, 1.0)
        return self._polished(theta, low, high, masses)

    def _polished(
        self, theta: np.ndarray, low: np.ndarray, high: np.ndarray, masses: np.ndarray
    ) -> np.ndarray:
        """Newton's method, halving the bracket where a step would leave it."""
        for _ in range(NEWTON_STEPS):
            excess = self.masses(theta) - masses
            if np.max(np.abs(excess), initial=0.0) <= MASS_TOLERANCE:
                break
            low, high = np.where(excess < 0, theta, low), np.where(excess < 0, high, theta)
            slope = np.maximum(self.densities(theta), 1e-300) / (2 * np.pi)
            step = theta - excess / slope
            inside = (step >= low) & (step <= high)
            theta = np.where(inside, step, (low + high) / 2)
        return theta

    def _sum(self, coefficients: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Re sum_k a_k e^{ik theta}, in blocks of memory."""
        k = np.arange(1, coefficients.size + 1)
        if k.size == 0:
            return np.zeros_like(theta)
        size = max(1, BLOCK // k.size)
        parts = [
            np.real(np.exp(1j * np.outer(theta[start : start + size], k)) @ coefficients)
            for start in range(0, theta.size, size)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def trimmed(coefficients: np.ndarray) -> Distribution:
    """A distribution without the high modes that do not matter."""
    kept = np.flatnonzero(np.abs(coefficients) > NEGLIGIBLE)
    return Distribution(np.asarray(coefficients[: kept[-1] + 1 if kept.size else 0]))


def distribution_of_law(law: Law) -> Distribution:
    """The distribution of a density given at points, by Fourier interpolation.

    Nodes are doubled until the upper half of the coefficients is rounding. A law with a jump or a kink
    never gets there: it is then what 131072 nodes make of it, to about 1e-5 of a jump's place.
    """
    count = FEWEST_NODES
    while True:
        spectrum = _spectrum(law, count)
        upper = np.max(np.abs(spectrum[spectrum.size // 2 :]))
        if upper <= RESOLVED or count >= MOST_NODES:
            # The Nyquist mode is its own mirror image and half of it is missing.
            return trimmed(spectrum[1:-1])
        count *= 2


def _spectrum(law: Law, count: int) -> np.ndarray:
    """c_k/c_0 for k = 0..count/2."""
    theta = 2 * np.pi * np.arange(count) / count
    points = jnp.asarray(np.stack([np.cos(theta), np.sin(theta)], -1))
    values = np.asarray(law(points), dtype=float)
    require(
        values.shape == (count,),
        f"a law gives one number per point: expected shape ({count},), got {values.shape}",
    )
    require(
        bool(np.all(np.isfinite(values)) and values.min() >= 0 and values.max() > 0),
        "a law must be finite and non-negative with a positive integral; got values from "
        f"{values.min():.3g} to {values.max():.3g}",
    )
    spectrum = np.fft.rfft(values) / count
    return spectrum / spectrum[0].real


def middle_masses(n: int) -> Float[np.ndarray, " n"]:
    """(m + 1/2)/n: the masses of quantiles."""
    return (np.arange(n) + 0.5) / n
