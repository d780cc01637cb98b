"""The exact Wasserstein-2 distance on the circle.

With the lifted quantile functions X, Y of two measures (X(u + 1) = X(u) + 2 pi),

    W2^2 = min over alpha of C(alpha),   C(alpha) = int_0^1 (X(u) - Y(u - alpha))^2 du,

and C is convex in the shift alpha (Delon, Salomon, Sobolevski 2010): its slope is bisected in [-1, 1],
where it changes sign because X and Y stay in [-pi, pi] on [0, 1].

| measures | C | shift |
|---|---|---|
| atoms, atoms | a sum over the common refinement of the masses | a breakpoint of a piecewise linear C |
| density, atoms | primitives of p, theta p, theta^2 p from the Fourier series | root of the slope |
| density, density | the trapezoid rule along the coupling, doubled until it rests | root of the slope |

All on the host in NumPy; between atoms by `observables.circle_atoms`. Atoms are sorted once; after that a
slope costs O(n log n) between atoms and O(n) between a density and n atoms, whatever its modes, or between
two densities. Slopes are evaluated some 10 to 60 times.

The coupling of two densities p, q at a shift is the curve F(x) - G(y) = alpha, and equal masses are no way
to walk it: where densities are small, quantiles run. Walked by s = (x + y)/2 both do smoothly,

    dx/ds = 2q/(p + q),  dy/ds = 2p/(p + q),  du = 2pq/(p + q) ds/(2 pi),

with p at x, q at y and log p - log q alone deciding who moves, so the periodic integrands of

    C = int (x - y)^2 du,  dC/dalpha = 2 int (x - y) dy

converge exponentially, at a rate that small densities do not lower.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import root_scalar

from ..density import Density
from ..errors import InputError, require
from ..measure import Measure
from ..observables.circle_atoms import Atoms, atoms_of, between_atoms
from ..space import Sphere
from .cdf import CUT, Distribution
from .cdf import MASS_TOLERANCE as MASS_ROUNDING
from .circle import Fourier
from .quantiles import Quantiles

# Two densities: numbers of nodes, and the change of C at which doubling ends.
FEWEST_NODES, MOST_NODES = 1 << 7, 1 << 14
AT_REST = 4e-13
# A density below this is rounding of its series.
SMALLEST_DENSITY = 1e-18
NEWTON_STEPS = 40
# The spline through a distribution function.
FEWEST_CELLS, CELLS_PER_MODE = 1 << 8, 32
# So many of its cells a turn are enough to begin Newton's method with.
GUESSING_CELLS = 1 << 12
# Newton's method takes its last step from this error of a mass.
MASS_TOLERANCE = 1e-12
# The root of the slope of a coarser rule is looked for this near on the next one, first.
NEARBY = 1e-4
# So near is the root for a quantile function made of straight lines.
NEARBY_LINES = 1e-6
# A quantile is straight in that bracket if it is off a straight line by less: C then changes by 1e-16.
STRAIGHT = 1e-10
# C is stationary there, so C is exact to rounding.
ROOT_TOLERANCE = 1e-14
# Quantiles this good are enough to find the shift, at which C is stationary.
GUESSING_MASS = 1e-10


def w2_on_circle(mu: Density | Measure, nu: Density | Measure) -> float:
    """W2(mu, nu) in radians, for the geodesic distance of the circle.

    Each is a Density on Fourier(modes), a Density on Quantiles(n) (read as n atoms of mass 1/n) or a
    Measure on Sphere(2). With atoms exact to rounding of W2^2, about 1e-14; of two densities W2^2 is off by
    less than 1e-12, and rounding of 4e-14 a mode, where the doubling rests. Where it has not come to rest
    on its last rule of 16384 nodes, a warning says by how much that rule changed W2^2.
    """
    first, second = as_line(mu), as_line(nu)
    if isinstance(first, Atoms) and isinstance(second, Atoms):
        squared = between_atoms(first, second)
    elif isinstance(first, Atoms):
        assert isinstance(second, Distribution)
        squared = _to_atoms(second, first)
    elif isinstance(second, Atoms):
        squared = _to_atoms(first, second)
    else:
        squared = _between_densities(first, second)
    return float(np.sqrt(max(squared, 0.0)))


Line = Atoms | Distribution


def as_line(mu: Density | Measure) -> Line:
    """A measure on the circle by its quantile function, cut at -pi."""
    if isinstance(mu, Density) and isinstance(mu.on, Fourier):
        return mu.on.distribution(mu.state)
    tokens = mu.as_measure() if isinstance(mu, Density) and isinstance(mu.on, Quantiles) else mu
    if not isinstance(tokens, Measure) or tokens.space != Sphere(2):
        raise InputError(
            f"w2_on_circle compares measures on the circle, got {type(mu).__name__} on {mu.space}; use "
            "Fourier, Quantiles or tokens on Sphere(2), or sinkhorn_divergence elsewhere"
        )
    require(
        tokens.batch_shape == (),
        f"w2_on_circle compares two measures, got samples of shape {tokens.batch_shape}; take one",
    )
    return atoms_of(np.asarray(tokens.points), np.asarray(tokens.weights))


# --- A density and atoms --------------------------------------------------------------------------


def _to_atoms(mu: Distribution, nu: Atoms) -> float:
    """Atom j takes the mass of p between the quantiles of its two levels."""
    shift = _best_shift(mu, nu)
    levels = np.append(nu.masses[-1:] - 1.0, nu.masses) + shift
    whole, first, second = mu.moments(_lifted_quantiles(mu, levels))
    here = nu.angles
    parts = np.diff(second) - 2.0 * here * np.diff(first) + here**2 * np.diff(whole)
    return float(np.sum(parts))


def _best_shift(mu: Distribution, nu: Atoms) -> float:
    """The root of the slope, in a narrow bracket if the guess is good."""
    here, after = nu.angles, nu.lifted(np.arange(1, nu.angles.size + 1))
    gaps, ends = after - here, here + after

    def slopes(x: np.ndarray) -> np.ndarray:
        return gaps * (2.0 * x - ends)

    def quantiles(shift: float) -> np.ndarray:
        return _lifted_quantiles(mu, nu.masses + shift, GUESSING_MASS)

    guess = _shift_of_lines(mu, nu, slopes)
    low, high = guess - NEARBY_LINES, guess + NEARBY_LINES
    nodes = [quantiles(low), quantiles(guess), quantiles(high)]
    if not np.sum(slopes(nodes[0])) <= 0 <= np.sum(slopes(nodes[2])):
        return _root(lambda shift: float(np.sum(slopes(quantiles(shift)))))
    # Most quantiles move along straight lines in so narrow a bracket; the others cross a gap of the density.
    bent = np.abs(nodes[0] - 2.0 * nodes[1] + nodes[2]) > STRAIGHT
    first, last = (float(np.sum(slopes(x)[~bent])) for x in (nodes[0], nodes[2]))

    def slope(shift: float) -> float:
        along = (shift - low) / (high - low)
        x = _lifted_quantiles(mu, nu.masses[bent] + shift)
        return first + along * (last - first) + float(np.sum(gaps[bent] * (2.0 * x - ends[bent])))

    return _root(slope, (low, high))


def _shift_of_lines(
    mu: Distribution, nu: Atoms, slopes: Callable[[np.ndarray], np.ndarray]
) -> float:
    """About the best shift: that of the quantile function made of straight lines, which is cheap."""
    angles, masses = mu.table(max(GUESSING_CELLS, CELLS_PER_MODE * mu.coefficients.size))
    masses = np.maximum.accumulate(masses)

    def slope(shift: float) -> float:
        levels = nu.masses + shift
        turns = np.floor(levels)
        x = np.interp(levels - turns, masses, angles) + 2 * np.pi * turns
        return float(np.sum(slopes(x)))

    return _root(slope, tolerance=NEARBY_LINES / 10)


def _lifted_quantiles(
    mu: Distribution, levels: np.ndarray, tolerance: float = MASS_ROUNDING
) -> np.ndarray:
    turns = np.floor(levels)
    return mu.quantiles(levels - turns, tolerance) + 2 * np.pi * turns


def _root(
    slope: Callable[[float], float],
    bracket: tuple[float, float] = (-1.0, 1.0),
    tolerance: float = ROOT_TOLERANCE,
) -> float:
    return root_scalar(slope, bracket=bracket, method="brentq", xtol=tolerance).root


# --- Two densities --------------------------------------------------------------------------------


def _between_densities(mu: Distribution, nu: Distribution) -> float:
    """The least C, on more and more nodes."""
    ends = _Smooth(mu), _Smooth(nu)
    # Differences over cells amplify rounding of a distribution function by their number.
    rest = max(AT_REST, *(np.finfo(float).eps * end.angles.size for end in ends))
    count, before, shift = FEWEST_NODES, np.inf, None
    while True:
        walk = _Walk(*ends, count)
        shift = _root_near(walk.slope, shift)
        cost = walk.cost(shift)
        change = abs(cost - before)
        if change <= rest or count >= MOST_NODES:
            break
        count, before = 2 * count, cost
    if change > rest:
        warnings.warn(
            f"w2_on_circle did not come to rest: its last rule, of {count} nodes, changed W2^2 = {cost:.6g} "
            f"by {change:.1g}; for densities as sharp as these use Quantiles(n)",
            stacklevel=3,
        )
    return cost


def _root_near(slope: Callable[[float], float], guess: float | None) -> float:
    """The root of an increasing function, first sought near a guess."""
    if guess is None:
        return _root(slope)
    # The root finder asks for the ends again.
    slope = functools.cache(slope)
    low, high = max(guess - NEARBY, -1.0), min(guess + NEARBY, 1.0)
    inside = slope(low) <= 0 <= slope(high)
    return _root(slope, (low, high)) if inside else _root(slope)


class _Walk:
    """Couplings of two densities at equally spaced s = (x + y)/2, for any shift."""

    def __init__(self, mu: _Smooth, nu: _Smooth, count: int):
        self.mu, self.nu = mu, nu
        self.middles = CUT + 2 * np.pi * (np.arange(count) + 0.5) / count

    def slope(self, shift: float) -> float:
        """dC/dalpha over 4 pi: the mean of (x - y) dy/ds."""
        x, y = self.pairs(shift)
        p, q = self._densities(x, y)
        return float(np.mean((x - y) * 2.0 * p / (p + q)))

    def cost(self, shift: float) -> float:
        x, y = self.pairs(shift)
        p, q = self._densities(x, y)
        return float(np.mean((x - y) ** 2 * 2.0 * p * (q / (p + q))))

    def pairs(self, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """x and y = 2s - x with F(x) - G(y) = shift, by Newton's method inside a bracket."""
        x = self._guess(shift)
        # F and G are off a straight line by at most 1, and so is the shift.
        low, high = self.middles - 3 * np.pi, self.middles + 3 * np.pi
        for _ in range(NEWTON_STEPS):
            y = 2 * self.middles - x
            excess = self.mu.masses(x) - self.nu.masses(y) - shift
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            step = x - 2 * np.pi * excess / sum(self._densities(x, y))
            x = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            # The step just taken squares this error.
            if np.max(np.abs(excess)) <= MASS_TOLERANCE:
                break
        return x, 2 * self.middles - x

    def _guess(self, shift: float) -> np.ndarray:
        """x at the nodes, from both distribution functions as broken lines."""
        (angles, first), (others, second) = (end.seven_turns() for end in (self.mu, self.nu))
        second = second + shift
        levels = np.unique(np.concatenate([first, second]))
        x = np.interp(levels, first, angles)
        y = np.interp(levels, second, others)
        kept = (levels >= max(first[0], second[0])) & (levels <= min(first[-1], second[-1]))
        return np.interp(self.middles, (x[kept] + y[kept]) / 2, x[kept])

    def _densities(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, q = self.mu.densities(x), self.nu.densities(y)
        return np.maximum(p, SMALLEST_DENSITY), np.maximum(q, SMALLEST_DENSITY)


class _Smooth:
    """A distribution by a periodic spline of degree 7 through F, which costs nothing to look up.

    With h the spacing, a mode k is off by about (k h/(2 pi))^8 of itself: 1e-12 for the highest one, and
    nothing for those that matter in a resolved series.
    """

    def __init__(self, law: Distribution):
        cells = max(FEWEST_CELLS, CELLS_PER_MODE * law.coefficients.size)
        self.angles, self.table = law.table(cells)
        wave = self.table - (self.angles - CUT) / (2 * np.pi)
        wave[-1] = wave[0]
        self.wave = make_interp_spline(self.angles, wave, k=7, bc_type="periodic")
        self.slope = self.wave.derivative()

    def masses(self, theta: np.ndarray) -> np.ndarray:
        """F(theta), lifted."""
        return (theta - CUT) / (2 * np.pi) + self.wave(theta)

    def densities(self, theta: np.ndarray) -> np.ndarray:
        return 1.0 + 2 * np.pi * self.slope(theta)

    def seven_turns(self) -> tuple[np.ndarray, np.ndarray]:
        """Some angles and their masses, continued by three turns to either side, masses made to rise."""
        turns = np.arange(-3, 4)[:, None]
        every = -(-(self.angles.size - 1) // GUESSING_CELLS)
        angles, masses = self.angles[:-1:every], np.maximum.accumulate(self.table[:-1])[::every]
        return (angles + 2 * np.pi * turns).ravel(), (masses + turns).ravel()
