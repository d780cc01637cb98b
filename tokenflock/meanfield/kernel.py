"""The exponential kernel on harmonics: e^{beta(<x,y>-1)} acts on degree l as the number a_l(beta).

    a_l = Gamma(d/2) (2/beta)^{d/2-1} I_{l+d/2-1}(beta) e^{-beta}     (Funk-Hecke, against sigma_d)

The ratios a_l/a_{l-1} = beta/(2l + d - 2 + beta a_{l+1}/a_l) are run down from a degree where nothing is
left (Miller), so small numbers are as accurate as large ones and beta may be traced. The same ratios of
lower orders lead from the closed forms I_0 and I_{1/2} to a_0.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e
from jaxtyping import Array, Float

from ..terms import Attention, Term

# Degrees above the last one in use from which the recurrence runs down.
HEADROOM = 200


class KernelSeries(eqx.Module):
    """a_l, and a_l/beta (finite at beta = 0, left out for l = 0), for l = 0..degree."""

    partition: Float[Array, " degrees"]
    potential: Float[Array, " degrees"]


def plain_attention(term: Term) -> Attention | None:
    """The attention of a term whose field is the gradient of a function of Z; None of all others."""
    attention = term.attention()
    return attention if attention is not None and attention.is_plain else None


def kernel_series(beta: Float[Array, ""], d: int, degree: int) -> KernelSeries:
    """a_l and a_l/beta for l = 0..degree."""
    # Ratios r_k = I_{k+1}/(beta I_k) of all orders k from 0 or 1/2 up, of which a_0 is a product.
    first = (d % 2) / 2.0
    lead = (d - 2) // 2
    orders = first + np.arange(lead + degree + HEADROOM)
    start = jax.lax.stop_gradient(_ratio_above(beta, float(orders[-1])))

    def down(ratio: Array, order: Array) -> tuple[Array, Array]:
        below = 1.0 / (2.0 * order + 2.0 + beta**2 * ratio)
        return below, below

    _, ratios = jax.lax.scan(down, start, jnp.asarray(orders), reverse=True)
    below, above = ratios[:lead], ratios[lead : lead + degree]

    def up(term: Array, ratio: Array) -> tuple[Array, Array]:
        return term * beta * ratio, term * ratio

    _, slopes = jax.lax.scan(up, jnp.ones_like(beta), above)
    scale = _lowest(beta, d) * jnp.prod(2.0 * (jnp.asarray(orders[:lead]) + 1.0) * below)
    return KernelSeries(
        scale * jnp.concatenate([jnp.ones((1,)), beta * slopes]),
        scale * jnp.concatenate([jnp.zeros((1,)), slopes]),
    )


def _ratio_above(beta: Array, order: float) -> Array:
    """I_{k+2}/(beta I_{k+1}) at k = `order`, from so far up that where one starts does not matter.

    Each step down shrinks an error by the square of I_{k+1}/I_k < 1 - k/(k + beta): K of them by
    e^{-K^2/beta}.
    """
    steps = jnp.ceil(8.0 * jnp.sqrt(beta) + 50.0)

    def down(i: Array, ratio: Array) -> Array:
        return 1.0 / (2.0 * (order + steps - i) + 2.0 + beta**2 * ratio)

    return jax.lax.fori_loop(0.0, steps, down, jnp.zeros_like(beta))


def _lowest(beta: Array, d: int) -> Array:
    """a_0 on the circle (even d) or on S^2 (odd d), where it has a closed form."""
    if d % 2 == 0:
        return i0e(beta)
    safe = jnp.where(beta == 0, 1.0, beta)
    return jnp.where(beta == 0, 1.0, -jnp.expm1(-2.0 * safe) / (2.0 * safe))
