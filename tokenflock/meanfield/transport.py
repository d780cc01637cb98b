"""The exact Wasserstein-2 distance on the circle.

With the lifted quantile functions X, Y of two measures (X(u + 1) = X(u) + 2 pi),

    W2^2 = min over alpha of C(alpha),   C(alpha) = int_0^1 (X(u) - Y(u - alpha))^2 du,

and C is convex in the shift alpha (Delon, Salomon, Sobolevski 2010): its slope is bisected in [-1, 1],
where it changes sign because X and Y stay in [-pi, pi] on [0, 1].

| measures | C | shift |
|---|---|---|
| atoms, atoms | a sum over the common refinement of the masses | a breakpoint of a piecewise linear C |
| density, atoms | primitives of p, theta p, theta^2 p from the Fourier series | root of the slope |
| density, density | the mean over equally spaced masses, doubled until it rests | root of the slope |

All on the host in NumPy. Atoms cost O(n log n) per evaluation of the slope, densities n times the modes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import root_scalar

from ..density import Density
from ..errors import InputError, require
from ..measure import Measure
from ..space import Sphere
from .cdf import CUT, Distribution, middle_masses, trimmed
from .circle import Fourier
from .quantiles import Quantiles

# Two densities: numbers of masses, and the change of C at which doubling ends.
FEWEST_MASSES, MOST_MASSES = 1 << 10, 1 << 17
AT_REST = 1e-13
# A series may undershoot by this much mass and still be read as a measure.
LARGEST_UNDERSHOOT = 1e-6
SHIFT_TOLERANCE = 4e-16


def w2_on_circle(mu: Density | Measure, nu: Density | Measure) -> float:
    """W2(mu, nu) in radians, for the geodesic distance of the circle.

    Each is a Density on Fourier(modes), a Density on Quantiles(n) (read as n atoms of mass 1/n) or a
    Measure on Sphere(2). Exact to rounding of W2^2, about 1e-15; for densities as far as their quantile
    functions are smooth (the density must not vanish).
    """
    first, second = as_line(mu), as_line(nu)
    if isinstance(first, Atoms) and isinstance(second, Atoms):
        squared = _between_atoms(first, second)
    elif isinstance(first, Atoms):
        assert isinstance(second, Distribution)
        squared = _to_atoms(second, first)
    elif isinstance(second, Atoms):
        squared = _to_atoms(first, second)
    else:
        squared = _between_densities(first, second)
    return float(np.sqrt(max(squared, 0.0)))


@dataclasses.dataclass(frozen=True)
class Atoms:
    """Angles in [-pi, pi), increasing, with the mass up to and including each."""

    angles: Float[np.ndarray, " n"]
    masses: Float[np.ndarray, " n"]

    def quantiles(self, levels: np.ndarray, side: str) -> np.ndarray:
        """Lifted quantiles; at a jump the value before it (`left`) or after it (`right`)."""
        turns = np.floor(levels)
        wanted = "left" if side == "left" else "right"
        index = np.searchsorted(self.masses, levels - turns, side=wanted)
        return self.lifted(index) + 2 * np.pi * turns

    def lifted(self, index: np.ndarray) -> np.ndarray:
        """The angle of atom number index, counted on around the circle."""
        turns, atom = np.divmod(index, self.angles.size)
        return self.angles[atom] + 2 * np.pi * turns


Line = Atoms | Distribution


def as_line(mu: Density | Measure) -> Line:
    """A measure on the circle by its quantile function, cut at -pi."""
    if isinstance(mu, Density) and isinstance(mu.on, Fourier):
        return _series(mu.on, np.asarray(mu.state))
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
    points, weights = np.asarray(tokens.points), np.asarray(tokens.weights)
    # arctan2 gives (-pi, pi]; the cut belongs to the left end.
    angles = np.arctan2(points[:, 1], points[:, 0])
    angles = np.where(angles >= np.pi, CUT, angles)
    order = np.argsort(angles, kind="stable")
    masses = np.cumsum(weights[order])
    return Atoms(angles[order], np.append(masses[:-1] / masses[-1], 1.0))


def _series(on: Fourier, state: np.ndarray) -> Distribution:
    values = np.asarray(on.scheme().values(jnp.asarray(state)))
    undershoot = -float(np.mean(np.minimum(values, 0.0)))
    require(
        undershoot <= LARGEST_UNDERSHOOT,
        f"the density is negative on a mass of {undershoot:.2g}, so it is no measure; use more modes than "
        f"{on.modes}, or Quantiles(n)",
    )
    cos, sin = state[1 : on.modes + 1], state[on.modes + 1 :]
    return trimmed((cos - 1j * sin) / np.sqrt(2.0) / state[0])


# --- Atoms and atoms ------------------------------------------------------------------------------


def _between_atoms(mu: Atoms, nu: Atoms) -> float:
    """The least C: at a breakpoint of this convex, piecewise linear function, found to rounding."""
    low, high = -1.0, 1.0
    while high - low > SHIFT_TOLERANCE:
        shift = (low + high) / 2.0
        if _slope(mu, nu, shift, "right") < 0:
            low = shift
        elif _slope(mu, nu, shift, "left") > 0:
            high = shift
        else:
            return _cost(mu, nu, shift)
    return min(_cost(mu, nu, low), _cost(mu, nu, high))


def _slope(mu: Atoms, nu: Atoms, shift: float, side: str) -> float:
    """One-sided derivative of C: every jump y_j -> y_{j+1} of Y moves to larger masses.

    sum_j ((x_j - y_j)^2 - (x_j - y_{j+1})^2), x_j = X at the jump, approached from that side.
    """
    here = nu.angles
    after = nu.lifted(np.arange(1, here.size + 1))
    x = mu.quantiles(nu.masses + shift, side)
    return float(np.sum((after - here) * (2.0 * x - here - after)))


def _cost(mu: Atoms, nu: Atoms, shift: float) -> float:
    """C(shift), exactly: both quantile functions are constant between the merged levels."""
    jumps = nu.masses + shift
    levels = np.sort(np.concatenate([[0.0], mu.masses, jumps - np.floor(jumps)]))
    middle = (levels[1:] + levels[:-1]) / 2.0
    apart = mu.quantiles(middle, "right") - nu.quantiles(middle - shift, "right")
    return float(np.sum(np.diff(levels) * apart**2))


# --- A density and atoms --------------------------------------------------------------------------


def _to_atoms(mu: Distribution, nu: Atoms) -> float:
    """Atom j takes the mass of p between the quantiles of its two levels."""
    here, after = nu.angles, nu.lifted(np.arange(1, nu.angles.size + 1))

    def slope(shift: float) -> float:
        x = _lifted_quantiles(mu, nu.masses + shift)
        return float(np.sum((after - here) * (2.0 * x - here - after)))

    shift = _root(slope)
    levels = np.append(nu.masses[-1:] - 1.0, nu.masses) + shift
    ends = _lifted_quantiles(mu, levels)
    whole, first, second = mu.moments(ends)
    parts = np.diff(second) - 2.0 * here * np.diff(first) + here**2 * np.diff(whole)
    return float(np.sum(parts))


def _lifted_quantiles(mu: Distribution, levels: np.ndarray) -> np.ndarray:
    turns = np.floor(levels)
    return mu.quantiles(levels - turns) + 2 * np.pi * turns


def _root(slope: Callable[[float], float]) -> float:
    return root_scalar(slope, bracket=(-1.0, 1.0), method="brentq", xtol=SHIFT_TOLERANCE).root


# --- Two densities --------------------------------------------------------------------------------


def _between_densities(mu: Distribution, nu: Distribution) -> float:
    """C by equally spaced masses: X(u) - 2 pi u is smooth and periodic, so the mean converges fast."""
    count, before = FEWEST_MASSES, np.inf
    while True:
        cost = _mean_cost(mu, nu, count)
        if abs(cost - before) <= AT_REST or count >= MOST_MASSES:
            return cost
        count, before = 2 * count, cost


def _mean_cost(mu: Distribution, nu: Distribution, count: int) -> float:
    levels = middle_masses(count)
    x = mu.quantiles(levels)

    def slope(shift: float) -> float:
        y = _lifted_quantiles(nu, levels - shift)
        return float(np.mean((x - y) / nu.densities(y)))

    shift = _root(slope)
    return float(np.mean((x - _lifted_quantiles(nu, levels - shift)) ** 2))
