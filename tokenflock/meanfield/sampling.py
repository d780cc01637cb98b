"""Tokens drawn from a law: inverse distribution functions on the circle, along an axis, and around it.

With levels U uniform in [0, 1], F^{-1}(U) has the distribution function F. Newton's method inside a bracket
inverts F to rounding, so that a sample has exactly the law that the coefficients describe.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Complex, Float
from scipy.special import betainc, betaincinv, betaln

from ..errors import require
from .cdf import CELLS_PER_MODE, CUT
from .legendre import gegenbauer, gegenbauer_slopes

# A series may undershoot by this much mass and still be read as a measure.
LARGEST_UNDERSHOOT = 1e-6
# Cells of the tables that bracket, at least.
FEWEST_CELLS = 1 << 8
CELLS_ALONG = 1 << 12
NEWTON_STEPS = 60
# Newton's method ends at this error of a mass.
MASS_TOLERANCE = 1e-14
# Numbers held at a time.
BLOCK = 1 << 20


def check_rising(masses: Float[np.ndarray, " node"], advice: str) -> None:
    """Refuse a distribution function that falls: where it does the density is negative."""
    check_undershoot(-float(np.sum(np.minimum(np.diff(masses), 0.0))), advice)


def check_undershoot(mass: float, advice: str) -> None:
    """Refuse a density that is negative on a mass."""
    require(
        mass <= LARGEST_UNDERSHOOT,
        f"the density is negative on a mass of {mass:.2g}, so it is no measure; {advice}",
    )


def on_circle(angles: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
    """(cos theta, sin theta)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def about_axis(
    u: Float[np.ndarray, " n"], d: int, random: np.random.Generator
) -> Float[np.ndarray, "n d"]:
    """Points with <x, e_1> = u, uniform about the axis e_1."""
    around = random.normal(size=(u.size, d - 1))
    around /= np.linalg.norm(around, axis=-1, keepdims=True)
    return np.concatenate([u[:, None], np.sqrt((1 - u) * (1 + u))[:, None] * around], axis=-1)


class AxialLaw:
    """The law of u = <x, e_1> for the density sum_l c_l p_l(u) on S^{d-1}.

    F(u) = P(uniform <= u) - (1-u^2) w(u) sum_{l>0} c_l p_l'(u)/(l(l+d-2)), w the density of u under the
    uniform law: p_l w is the derivative of -(1-u^2) w p_l'/(l(l+d-2)).
    """

    def __init__(self, d: int, coefficients: Float[np.ndarray, " degree"]):
        self.d, self.coefficients = d, coefficients / coefficients[0]
        self.degree = coefficients.size - 1

    def masses(self, u: np.ndarray) -> np.ndarray:
        """F(u)."""
        half = (self.d - 1) / 2
        degree = np.arange(1, self.degree + 1)
        share = self.coefficients[1:] / (degree * (degree + self.d - 2))
        bump = share @ gegenbauer_slopes(self.d, self.degree, u)[1:]
        with np.errstate(divide="ignore"):
            weight = np.exp(half * np.log((1 - u) * (1 + u)) - betaln(0.5, half))
        return betainc(half, half, (1 + u) / 2) - weight * bump

    def densities(self, u: np.ndarray) -> np.ndarray:
        """F'(u)."""
        half = (self.d - 1) / 2
        with np.errstate(divide="ignore"):
            weight = np.exp((half - 1) * np.log((1 - u) * (1 + u)) - betaln(0.5, half))
        return weight * (self.coefficients @ gegenbauer(self.d, self.degree, u))

    def quantiles(self, levels: Float[np.ndarray, " n"], advice: str) -> Float[np.ndarray, " n"]:
        """u with F(u) = level; a density that is negative somewhere is refused with the advice."""
        half = (self.d - 1) / 2
        cells = max(CELLS_ALONG, CELLS_PER_MODE * self.degree)
        even = 2 * betaincinv(half, half, np.linspace(0.0, 1.0, cells // 2)) - 1
        grid = np.union1d(even, -np.cos(np.pi * np.linspace(0.0, 1.0, cells // 2)))
        masses = self._in_blocks(self.masses, grid)
        check_rising(masses, advice)
        rising = np.maximum.accumulate(masses)
        rising[0], rising[-1] = 0.0, 1.0
        cell = np.clip(np.searchsorted(rising, levels, side="right") - 1, 0, grid.size - 2)
        size = max(1, BLOCK // (self.degree + 1))
        parts = [
            inverted(
                self.masses,
                self.densities,
                levels[start : start + size],
                grid[cell[start : start + size]],
                grid[cell[start : start + size] + 1],
            )
            for start in range(0, levels.size, size)
        ]
        return np.clip(np.concatenate(parts), -1.0, 1.0)

    def _in_blocks(self, function: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
        size = max(1, BLOCK // (self.degree + 1))
        return np.concatenate([function(u[s : s + size]) for s in range(0, u.size, size)])


def row_quantiles(
    waves: Callable[[slice], Complex[np.ndarray, "row mode"]],
    n: int,
    modes: int,
    levels: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Angles at the levels of n laws on the circle, one each: 1 + 2 Re sum_k c_k e^{ik theta}.

    `waves(rows)` gives the c_k, k = 1..modes, of some rows.
    """
    cells = max(FEWEST_CELLS, CELLS_PER_MODE * modes)
    size = max(1, BLOCK // max(cells, (modes + 1) ** 2))
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    return np.concatenate([_angles(waves(rows), levels[rows], cells) for rows in blocks])


def _angles(c: np.ndarray, levels: np.ndarray, cells: int) -> np.ndarray:
    """Angles of a block of rows: a table of each distribution function by FFT, then Newton's method."""
    k = np.arange(1, c.shape[1] + 1)
    primitive = c / (1j * k) * np.exp(1j * k * CUT) / np.pi
    spectrum = np.zeros((c.shape[0], cells // 2 + 1), complex)
    spectrum[:, 1 : k.size + 1] = primitive / 2
    wave = np.fft.irfft(spectrum, cells, axis=-1) * cells
    wave -= wave[:, :1]
    table = np.maximum.accumulate(wave + np.arange(cells) / cells, axis=-1)
    cell = np.maximum(np.sum(table <= levels[:, None], axis=-1) - 1, 0)
    start = np.sum(primitive, axis=-1).real

    def masses(place: np.ndarray) -> np.ndarray:
        turning = np.exp(2j * np.pi * place[:, None] * k)
        return place + np.sum(primitive * turning, axis=-1).real - start

    def densities(place: np.ndarray) -> np.ndarray:
        turning = np.exp(2j * np.pi * place[:, None] * k + 1j * k * CUT)
        return 1.0 + 2.0 * np.sum(c * turning, axis=-1).real

    found = inverted(masses, densities, levels, cell / cells, (cell + 1) / cells)
    return CUT + 2 * np.pi * found


def inverted(
    masses: Callable[[np.ndarray], np.ndarray],
    densities: Callable[[np.ndarray], np.ndarray],
    levels: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Where a rising function has the given levels: Newton's method, halving brackets it would leave."""
    place = (low + high) / 2
    for _ in range(NEWTON_STEPS):
        excess = masses(place) - levels
        if np.max(np.abs(excess), initial=0.0) <= MASS_TOLERANCE:
            break
        low, high = np.where(excess < 0, place, low), np.where(excess < 0, high, place)
        slope = densities(place)
        step = place - excess / np.where(slope > 0, slope, np.inf)
        inside = (step > low) & (step < high) & (slope > 0)
        place = np.where(inside, step, (low + high) / 2)
    return place
