"""The exponential kernel on harmonics: e^{beta(<x,y>-1)} acts on degree l as the number a_l(beta).

    a_l = Gamma(d/2) (2/beta)^{d/2-1} I_{l+d/2-1}(beta) e^{-beta}     (Funk-Hecke, against sigma_d)

The ratios a_l/a_{l-1} = beta/(2l + d - 2 + beta a_{l+1}/a_l) are run down from a degree where nothing is
left (Miller), so small numbers are as accurate as large ones and beta may be traced. The value of the
kernel at <x,y> = 1 gives the scale: sum_l N_l a_l = 1, N_l the number of harmonics of degree l.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from ..kinds import DotProduct, Kind, Softmax, Unnormalised
from ..masks import Full
from ..terms import Attention
from ..weights import Weights

# Degrees above the last one in use from which the recurrence runs down.
HEADROOM = 200


class KernelSeries(eqx.Module):
    """a_l, and a_l/beta (finite at beta = 0, left out for l = 0), for l = 0..degree."""

    partition: Float[Array, " degrees"]
    potential: Float[Array, " degrees"]


def is_plain(term: Attention) -> bool:
    """Whether the field is the gradient of a function of Z: no matrices, no mask, e^{beta<x,y>}."""
    if not isinstance(term.weights, Weights) or term.weights.matrices():
        return False
    return isinstance(term.mask, Full) and is_exponential(term.kind)


def is_exponential(kind: Kind) -> bool:
    """Softmax of a dot product, or unnormalised attention."""
    if isinstance(kind, Softmax):
        return isinstance(kind.score, DotProduct)
    return isinstance(kind, Unnormalised)


def multiplicity(degrees: np.ndarray, d: int) -> np.ndarray:
    """N_l: the number of independent harmonics of degree l on S^{d-1}."""
    degree = np.asarray(degrees, dtype=float)
    if d == 2:
        return np.where(degree == 0, 1.0, 2.0)
    count = np.exp(gammaln(degree + d - 2) - gammaln(degree + 1) - gammaln(d - 1))
    return (2 * degree + d - 2) * count


def kernel_series(beta: Float[Array, ""], d: int, degree: int) -> KernelSeries:
    """a_l and a_l/beta for l = 0..degree."""
    top = 2 * degree + HEADROOM
    orders = 2.0 * np.arange(1, top + 1) + (d - 2)

    def down(ratio: Array, order: Array) -> tuple[Array, Array]:
        # ratio is a_{l+1}/(beta a_l)
        below = 1.0 / (order + beta**2 * ratio)
        return below, below

    _, ratios = jax.lax.scan(down, jnp.zeros_like(beta), jnp.asarray(orders), reverse=True)

    def up(term: Array, ratio: Array) -> tuple[Array, Array]:
        return term * beta * ratio, term * ratio

    _, slopes = jax.lax.scan(up, jnp.ones_like(beta), ratios)
    relative = jnp.concatenate([jnp.ones((1,)), beta * slopes])
    first = 1.0 / jnp.sum(jnp.asarray(multiplicity(np.arange(top + 1), d)) * relative)
    return KernelSeries(
        first * relative[: degree + 1],
        first * jnp.concatenate([jnp.zeros((1,)), slopes[:degree]]),
    )
