"""The slow limit at zero temperature: its drift coefficient k by Monte Carlo, and its equation.

At beta = infinity two tokens in a crowd move by O(1) only after tau ~ d, as u = R(tau = t d) with
du = -k u(1-u^2) dt + sqrt2 (1-u^2) dB. 2604.01978 is transcribed with k = 1; its own overlap drift gives
k = 2 for A = W W'^T and 3/2 for one Gaussian matrix (`theory.slow_coefficient`), so k is a parameter here.
"""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..errors import require
from ..integrate.unchecked import unchecked
from ..runtime import ArrayLike

MOST_STEPS = 10_000_000


class Estimate(NamedTuple):
    """A Monte Carlo mean and its standard error."""

    value: float
    error: float

    def interval(self, errors: float = 1.96) -> tuple[float, float]:
        """The confidence interval of so many standard errors (95 % by default)."""
        return self.value - errors * self.error, self.value + errors * self.error


def measured_direction_overlap(
    overlap: float, d: int, draws: int, seed: int = 0, factors: int = 2
) -> Estimate:
    """E cos(Ax, Ay) over Gaussian A (factors = 1) or A = W W'^T (2), for unit x, y with <x, y> = R.

    Each factor maps the pair to two Gaussian vectors, drawn as such. Their squared lengths and inner
    product have known means: taking out what cos owes to these deviations (a linear regression, whose bias
    is of order 1/draws) leaves a standard error of order 1/(d sqrt draws).
    """
    require(-1 < overlap < 1, f"the overlap must lie in (-1, 1), got {overlap}")
    require(factors in (1, 2), f"A has one or two Gaussian factors, got factors={factors}")
    require(draws >= 100, f"need at least 100 draws for a standard error, got {draws}")
    random = np.random.default_rng([seed, d, factors])
    values = np.concatenate(
        [_cosines(random, overlap, d, size, factors) for size in _blocks(draws, d)]
    )
    cosine, known = values[:, 0], values[:, 1:] - values[:, 1:].mean(axis=0)
    weight = np.linalg.lstsq(known, cosine - cosine.mean(), rcond=None)[0]
    rest = cosine - values[:, 1:] @ weight
    return Estimate(float(rest.mean()), float(rest.std(ddof=1 + weight.size) / np.sqrt(draws)))


def _blocks(draws: int, d: int) -> list[int]:
    """Draws in pieces that fit the cache."""
    size = max(1, min(draws, 400_000 // d))
    whole, left = divmod(draws, size)
    return [size] * whole + [left] * (left > 0)


def _cosines(
    random: np.random.Generator, overlap: float, d: int, size: int, factors: int
) -> np.ndarray:
    """cos(Ax, Ay) in the first column, then three centred quantities per factor."""
    cosine: np.ndarray = np.full(size, overlap)
    known = []
    for _ in range(factors):
        one, other = random.standard_normal((2, size, d))
        other = cosine[:, None] * one + np.sqrt(1 - cosine**2)[:, None] * other
        first, second = np.sum(one**2, axis=1), np.sum(other**2, axis=1)
        inner = np.sum(one * other, axis=1)
        known += [first / d - 1, second / d - 1, inner / d - cosine]
        # Rounding may take a cosine of nearly parallel vectors out of [-1, 1].
        cosine = np.clip(inner / np.sqrt(first * second), -1.0, 1.0)
    return np.stack([cosine, *known], axis=1)


def measured_slow_coefficient(
    d: int, overlap: float = 0.5, draws: int = 200_000, seed: int = 0, factors: int = 2
) -> Estimate:
    """k_d(R) = ((d-1) R - (d-2+R^2) s_12)/(R(1-R^2)) with s_12 by Monte Carlo; tends to k as d grows."""
    require(overlap != 0, "the drift vanishes at overlap 0: choose another one to measure k")
    s = measured_direction_overlap(overlap, d, draws, seed, factors)
    size = overlap * (1 - overlap**2)
    weight = d - 2 + overlap**2
    return Estimate(((d - 1) * overlap - weight * s.value) / size, weight * s.error / abs(size))


def slow_paths(
    times: ArrayLike,
    k: float,
    start: float = 0.0,
    paths: int = 10_000,
    dt: float = 0.02,
    seed: int = 0,
) -> np.ndarray:
    """z = artanh u of the slow limit at increasing times, (path, time): dz = (2-k) tanh z dt + sqrt2 dB.

    In z the noise is additive and u = tanh z cannot leave (-1, 1). Heun's method, weak order 2 in dt; every
    time is reached by equal steps of at most dt from the one before.
    """
    moments = np.asarray(times, dtype=float)
    require(-1 < start < 1, f"the slow limit starts inside (-1, 1), got {start}")
    require(dt > 0 and paths >= 1, f"need dt > 0 and paths >= 1, got dt={dt}, paths={paths}")
    require(
        moments.ndim == 1 and moments.size > 0 and bool(np.all(np.diff(moments, prepend=0) > 0)),
        f"times must be positive and increasing, got {times}",
    )
    steps = moments[-1] / dt
    require(
        steps <= MOST_STEPS, f"{steps:.3g} steps per path; {MOST_STEPS:.0g} are the most: raise dt"
    )
    keys = jr.split(jr.key(seed), paths)
    z0, grid = jnp.asarray(np.arctanh(start)), jnp.asarray(_grid(moments, dt))
    return np.asarray(_slow(keys, z0, jnp.asarray(moments), grid, jnp.asarray(float(k))))


def _grid(times: np.ndarray, dt: float) -> np.ndarray:
    """0 and all times, with equal steps of at most dt between them: a path between steps is unknown."""
    pieces = [np.zeros(1)]
    for first, last in pairwise([0.0, *times]):
        count = max(1, int(np.ceil((last - first) / dt * (1 - 1e-9))))
        inner = first + (last - first) / count * np.arange(1, count)
        pieces += [inner, np.array([last])]
    return np.concatenate(pieces)


@eqx.filter_jit
@functools.partial(jax.vmap, in_axes=(0, None, None, None, None))
def _slow(key: Array, z0: Array, times: Array, grid: Array, k: Array) -> Float[Array, " time"]:
    """One path; the batch of them is one program."""
    drift = diffrax.ODETerm(lambda t, z, args: (2 - k) * jnp.tanh(z))
    path = diffrax.UnsafeBrownianPath((), key)
    noise = diffrax.ControlTerm(lambda t, z, args: jnp.sqrt(2.0), path)
    with unchecked():
        found = diffrax.diffeqsolve(
            diffrax.MultiTerm(drift, noise),
            diffrax.Heun(),
            grid[0],
            grid[-1],
            None,
            z0,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.StepTo(ts=grid),
            max_steps=None,
            adjoint=diffrax.ForwardMode(),
            throw=False,
        )
    assert found.ys is not None
    return found.ys
