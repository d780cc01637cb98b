"""Distribution functions on the circle: from a density's Fourier coefficients, and their inverses.

A density p = sum_k c_k e^{ik theta} with respect to d theta/(2 pi), c_0 = 1, has

    F(theta) = (theta - cut)/(2 pi) + sum_{k != 0} c_k (e^{ik theta} - e^{ik cut})/(2 pi i k),

the mass between the cut and theta. F is inverted by Newton's method inside a bracket. Sums over modes are
Taylor series about the nearest node of a regular grid, whose terms FFTs give: to rounding, and at a cost per
point that does not depend on the number of modes.
"""

from __future__ import annotations

import dataclasses
import functools
import math

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
# Cells of the grid per highest mode k: within half a cell k |theta - node| <= pi/8, and (pi/8)^15/15! is
# below 1e-18, so TERMS terms are exact to rounding.
CELLS_PER_MODE = 8
TERMS = 15
NEWTON_STEPS = 12
# Newton's method ends at this error of a mass, or where rounding stops it within a thousand times that.
MASS_TOLERANCE = 4e-16
# Angles looked up at a time, so that what they need stays in the cache.
BLOCK = 1 << 13


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A law on the circle by its coefficients c_1..c_K, relative to the uniform probability."""

    coefficients: Float[np.ndarray, " modes"]

    def masses(self, theta: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """F(theta), lifted: F(theta + 2 pi) = F(theta) + 1."""
        start = self._waves(np.array([CUT]), (1,))[0][0]
        return (theta - CUT) / (2 * np.pi) + self._waves(theta, (1,))[0] - start

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
        return 1.0 + 2 * np.pi * self._waves(theta, (0,))[0]

    def moments(self, theta: Float[np.ndarray, " m"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int p, int theta p and int theta^2 p from 0 to theta, over 2 pi, up to constants.

        Of e^{ik theta}: w, (theta - 1/(ik)) w and (theta^2 - 2 theta/(ik) + 2/(ik)^2) w, where
        w = e^{ik theta}/(ik).
        """
        wave = self._waves(theta, (1, 2, 3))
        return (
            theta / (2 * np.pi) + wave[0],
            theta**2 / (4 * np.pi) + theta * wave[0] - wave[1],
            theta**3 / (6 * np.pi) + theta**2 * wave[0] - 2 * theta * wave[1] + 2 * wave[2],
        )

    def quantiles(
        self, masses: Float[np.ndarray, " m"], tolerance: float = MASS_TOLERANCE
    ) -> Float[np.ndarray, " m"]:
        """theta with F(theta) = mass up to the tolerance, for masses in [0, 1].

        Where the density vanishes on an arc any point of it is right; one inside is given.
        """
        cells = self._cells
        grid, rising = self._bracket
        cell = np.clip(np.searchsorted(rising, masses, side="right") - 1, 0, cells - 1)
        low, high = grid[cell], grid[cell + 1]
        rise = np.maximum(rising[cell + 1] - rising[cell], 1e-300)
        theta = low + (high - low) * np.clip((masses - rising[cell]) / rise, 0.0, 1.0)
        return self._polished(theta, low, high, masses, tolerance)

    def _polished(
        self,
        theta: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        masses: np.ndarray,
        tolerance: float,
    ) -> np.ndarray:
        """Newton's method, halving the bracket where a step would leave it."""
        start = self._waves(np.array([CUT]), (1,))[0][0]
        before = np.inf
        for _ in range(NEWTON_STEPS):
            wave, slope = self._waves(theta, (1, 0))
            excess = (theta - CUT) / (2 * np.pi) + wave - start - masses
            worst = float(np.max(np.abs(excess), initial=0.0))
            at_rounding = worst <= 1000 * MASS_TOLERANCE and worst > before / 2
            if worst <= tolerance or at_rounding:
                break
            before = worst
            low, high = np.where(excess < 0, theta, low), np.where(excess < 0, high, theta)
            step = theta - excess / np.maximum(1.0 / (2 * np.pi) + slope, 1e-300)
            inside = (step >= low) & (step <= high)
            theta = np.where(inside, step, (low + high) / 2)
        return theta

    @property
    def _cells(self) -> int:
        return max(FEWEST_NODES, CELLS_PER_MODE * self.coefficients.size)

    @functools.cached_property
    def _bracket(self) -> tuple[np.ndarray, np.ndarray]:
        """The nodes of the grid, and their masses made to rise."""
        grid, masses = self.table(self._cells)
        return grid, np.maximum.accumulate(masses)

    @functools.cached_property
    def _terms(self) -> Float[np.ndarray, "term node"]:
        """h^j/j! times the derivative of order j of Re sum_k c_k/(pi (ik)^3) e^{ik theta}, at the nodes."""
        cells, k = self._cells, np.arange(1, self.coefficients.size + 1)
        step = 2 * np.pi / cells
        terms = np.empty((TERMS + 3, cells))
        spectrum = np.zeros(cells // 2 + 1, complex)
        third = self.coefficients / (1j * k) ** 3 * np.exp(1j * k * CUT) / (2 * np.pi)
        for order in range(TERMS + 3):
            spectrum[1 : k.size + 1] = third * (1j * k * step) ** order / math.factorial(order)
            terms[order] = np.fft.irfft(spectrum, cells) * cells
        return terms

    def _waves(self, theta: np.ndarray, powers: tuple[int, ...]) -> list[np.ndarray]:
        """Re sum_k c_k/(pi (ik)^power) e^{ik theta} for each power in 0..3, at all angles."""
        if self.coefficients.size == 0:
            return [np.zeros_like(theta) for _ in powers]
        found = [np.empty_like(theta) for _ in powers]
        for start in range(0, theta.size, BLOCK):
            block = slice(start, start + BLOCK)
            place = (theta[block] - CUT) * (self._cells / (2 * np.pi))
            node = np.rint(place)
            offset, node = place - node, node.astype(np.int64) % self._cells
            near = self._terms[:, node]
            for power, target in zip(powers, found, strict=True):
                target[block] = _taylor(near, 3 - power, offset) / self._step ** (3 - power)
        return found

    @property
    def _step(self) -> float:
        return 2 * np.pi / self._cells


def _taylor(terms: np.ndarray, derivative: int, offset: np.ndarray) -> np.ndarray:
    """The derivative of sum_j terms_j offset^j by Horner's rule; TERMS terms of it."""
    highest = derivative + TERMS - 1
    total = math.perm(highest, derivative) * terms[highest]
    for order in range(highest - 1, derivative - 1, -1):
        total *= offset
        total += math.perm(order, derivative) * terms[order] if derivative else terms[order]
    return total


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
