r"""Two tokens at beta = 0 under random values, by quadrature: the chain and its diffusion (2604.01978).

Both tokens receive the same (eta/sqrt H) V m, m their mean, so R = <x_1, x_2> is a Markov chain. In
z = artanh R, where neither end R = +-1 is a boundary, one layer with sigma = (eta/sqrt H) d^{-1/2} is

    sinh z' = (u/y) sinh(z + log u),   u^2 = y^2 + sigma^2 b^2,

b standard normal and y/sigma noncentral chi with d - 1 degrees of freedom and centre 1/sigma; its limit in
tau = (eta^2/H) layer is dz = (d - 2 + tanh z)/(2d) dtau + d^{-1/2} dB. Both are applied to cosine series
in z on an interval at whose ends E phi is flat; the grid is refined until two answers agree.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.stats import ncx2

from ...errors import require
from ...theory._checks import Array, bounded, sphere_dimension, whole

Function = Callable[[Array], Array]
# Grids in z are refined until two agree to GOAL; an answer known less well than TOLERANCE is refused.
GOAL, TOLERANCE = 1e-9, 1e-6
# Distances of grid points. tanh z has poles at +-i pi/2, so that errors fall like e^{-pi^2/(2 h)}.
SPACINGS = (0.2, 0.14, 0.1)
MOST_NODES = 1000
# A Gaussian path leaves 7.5 standard deviations with probability 1e-13.
DEVIATIONS = 7.5
# A law of standard deviation 1 is summed over points at this distance.
QUADRATURE = 0.7


@dataclass(frozen=True)
class Expectation:
    """R_0 -> E phi, a cosine series in z = artanh R_0 between two ends beyond which it is flat."""

    low: float
    high: float
    coefficients: Array
    error: float  # how far the two finest grids differ

    def __call__(self, start: ArrayLike) -> Array:
        R = bounded("start", start, -1, 1, advice="an inner product of unit vectors")
        with np.errstate(divide="ignore"):
            return self.at(np.arctanh(R))

    def at(self, z: Array) -> Array:
        """E phi from z = artanh R_0, also where R_0 is -1 to the last digit."""
        phase = np.pi * (np.clip(z, self.low, self.high) - self.low) / (self.high - self.low)
        return np.cos(phase[..., None] * np.arange(self.coefficients.size)) @ self.coefficients


def chain_expectation(phi: Function, layers: int, step: float, d: int) -> Expectation:
    """R_0 -> E phi(R_L) of the chain with step = eta/sqrt H: a quadrature matrix to the power L.

    d >= 2 and phi smooth on [-1, 1]; `error` is mostly below 1e-9. Steps that often bring a token to the
    origin are harder (4e-7 at step 0.8, d = 4); InputError where 1e-6 is not reached.
    """
    d, layers = int(sphere_dimension(d)), int(whole("layers", layers, 0))
    step = float(bounded("step", step, 0, closed="neither", advice="the layer's step eta/sqrt H"))
    y, weight = _lengths(step, d, QUADRATURE)
    drift = float(weight @ np.log(y))
    spread = np.sqrt(weight @ (np.log(y) - drift) ** 2)
    front = max(drift, 0.0) * layers + DEVIATIONS * spread * np.sqrt(layers)

    def solved(z: Array, low: float, high: float) -> Array:
        transfer = _one_layer(z, low, high, step, d)
        return np.linalg.matrix_power(transfer, layers) @ _values(phi, z)

    return _converged(solved, front, d, f"{layers} layers of step {step:g} in d={d}")


def diffusion_expectation(phi: Function, tau: float, d: int) -> Expectation:
    """R_0 -> E phi(R(tau)) = e^{tau G} phi of the diffusion, G u = (d-2+tanh z)/(2d) u' + u''/(2d).

    d >= 2 and phi smooth on [-1, 1]; `error` is mostly below 1e-9, and InputError where 1e-6 is not reached.
    """
    d = int(sphere_dimension(d))
    tau = float(bounded("tau", tau, 0, closed="low", advice="times start at 0"))
    front = max(d - 3, 0) / (2 * d) * tau + DEVIATIONS * np.sqrt(tau / d)

    def solved(z: Array, low: float, high: float) -> Array:
        return expm(tau * _generator(z, low, high, d)) @ _values(phi, z)

    return _converged(solved, front, d, f"tau={tau:g} in d={d}")


def _converged(
    solved: Callable[[Array, float, float], Array], front: float, d: int, what: str
) -> Expectation:
    """The solution on the first grid that agrees with the one before.

    From z = reach the mean of 1 - R and the chance to return, e^{-(d-1)z}, are below e^{-26}. A `front`,
    where E phi leaves phi(-1), moves towards z = -infinity; at d = 2 both ends attract and there is none.
    """
    reach = 26 / min(d - 1, 2)
    low, high = -reach - (front if d > 2 else 0.0), reach
    before, error = None, np.inf
    for spacing in SPACINGS:
        nodes = int(np.ceil((high - low) / spacing))
        require(
            nodes <= MOST_NODES,
            f"E phi after {what} needs {nodes} grid points, more than {MOST_NODES}; ask for less depth: "
            "by then R = 1 but for starts next to -1",
        )
        z = low + (high - low) * (np.arange(nodes) + 0.5) / nodes
        values = solved(z, low, high)
        error = np.inf if before is None else float(np.max(np.abs(before.at(z) - values)))
        before = Expectation(low, high, _to_coefficients(nodes) @ values, error)
        if error < GOAL * max(1.0, float(np.max(np.abs(values)))):
            return before
    assert before is not None
    require(
        error < TOLERANCE * max(1.0, float(np.max(np.abs(before.coefficients)))),
        f"E phi after {what} is not known to {TOLERANCE:g}: two grids differ by {error:.1e}; use a smoother "
        "phi or a smaller step",
    )
    return before


def _values(phi: Function, z: Array) -> Array:
    found = np.broadcast_to(np.asarray(phi(np.tanh(z)), dtype=np.float64), z.shape)
    require(bool(np.isfinite(found).all()), "phi must be finite on [-1, 1]; it is not")
    return found


def _to_coefficients(nodes: int) -> Array:
    """Values at the midpoints of `nodes` cells -> coefficients of cosines (a discrete cosine transform)."""
    k, j = np.arange(nodes)[:, None], np.arange(nodes) + 0.5
    return np.cos(np.pi * k * j / nodes) * np.where(k == 0, 1, 2) / nodes


def _generator(z: Array, low: float, high: float, d: int) -> Array:
    """G on the values at z."""
    waves = np.pi * np.arange(z.size) / (high - low)
    phase = (z[:, None] - low) * waves
    drift = (d - 2 + np.tanh(z[:, None])) / (2 * d)
    moved = -drift * waves * np.sin(phase) - waves**2 / (2 * d) * np.cos(phase)
    return moved @ _to_coefficients(z.size)


def _one_layer(z: Array, low: float, high: float, step: float, d: int) -> Array:
    """Values at z -> their expectation one layer later, (z, z); the quadrature is refined with z."""
    spacing = QUADRATURE * (z[1] - z[0]) / SPACINGS[0]
    y, length, weight = _draws(step, d, spacing)
    rows = []
    for point in z:
        reached = np.arcsinh(length / y * np.sinh(point + np.log(length)))
        phase = np.pi * (np.clip(reached, low, high) - low) / (high - low)
        rows.append(_mean_cosines(phase, weight, z.size))
    return np.stack(rows) @ _to_coefficients(z.size)


def _mean_cosines(phase: Array, weight: Array, count: int) -> Array:
    """sum_j weight_j cos(k phase_j) for k < count, with k = block p + q: 2 sqrt(count) powers per j."""
    block = int(np.ceil(np.sqrt(count)))
    fine = np.vander(np.exp(1j * phase), block + 1, increasing=True)
    coarse = np.vander(fine[:, -1], block, increasing=True) * weight[:, None]
    return (coarse.T @ fine[:, :-1]).real.ravel()[:count]


def _draws(step: float, d: int, spacing: float) -> tuple[Array, Array, Array]:
    """y, u and their probabilities. b = (y/sigma) sinh t takes what is singular at b = +-i y/sigma away."""
    sigma = step / np.sqrt(d)
    y, weight = _lengths(step, d, spacing)
    half = int(np.ceil(9 / spacing))
    t = np.arcsinh(9 * sigma / y)[:, None] * np.arange(half + 1) / half
    ratio = y[:, None] / sigma
    bell = np.exp(-((ratio * np.sinh(t)) ** 2) / 2) * ratio * np.cosh(t)
    bell[:, 1:] *= 2
    bell *= (weight / bell.sum(axis=1))[:, None]
    kept = bell > 1e-15
    return np.broadcast_to(y[:, None], t.shape)[kept], (y[:, None] * np.cosh(t))[kept], bell[kept]


def _lengths(step: float, d: int, spacing: float) -> tuple[Array, Array]:
    """y and its probabilities, y^2/sigma^2 noncentral chi square.

    Points are even in x, y = sigma log(1 + e^x): the density is analytic in x and falls like e^{(d-1)x} on
    the left, so that sums converge exponentially.
    """
    sigma = step / np.sqrt(d)
    centre = np.sqrt(1 / sigma**2 + d - 2)
    x = np.arange(centre - 9 if centre > 10 else -36 / (d - 1), centre + 9, spacing)
    root = np.logaddexp(0.0, x)
    with np.errstate(all="ignore"):
        bell = np.exp(ncx2.logpdf(root**2, d - 1, 1 / sigma**2) + np.log(2 * root) - root + x)
    require(
        bool(abs(np.sum(bell) * spacing - 1) < 1e-8),
        f"the law of a token's length after one layer of step {step:g} in d={d} cannot be computed; "
        "use another step or a smaller d",
    )
    return sigma * root, bell / np.sum(bell)
