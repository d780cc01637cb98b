"""Sinkhorn's coupling of a Gaussian with itself: its regression, its correlations, its energy.

Among the couplings pi of N(alpha, Sigma) with itself, the one with density e^{y^T A x + f(x) + g(y)} is
Gaussian. With R = Sigma^{1/2} and the singular value decomposition R A R = U D W^T, the canonical
correlations of x and y are n = D (1 - n^2), that is n = D g(D^2), g(s) = 2/(1 + sqrt(1 + 4 s)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..runtime import Scalar


def coupling_slope(covariance: Float[Array, "d d"], A: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """M = (Sigma - M Sigma M^T) A: the regression of y on x under Sinkhorn's coupling.

    M = R U n W^T R^{-1} = R g(R A Sigma A^T R) R A, without an inverse of Sigma. O(d^3).
    """
    root = spectral(_root, covariance)
    squares, scale = _scaled_squares(root @ A @ root)
    return root @ spectral(_damping, squares, scale) @ root @ A


def coupling_energy(
    mean: Float[Array, " d"], covariance: Float[Array, "d d"], A: Float[Array, "d d"]
) -> Float[Array, ""]:
    """F = max over couplings of (1/2) (int y^T A x dpi - KL(pi | mu x mu)) (F_inf of 2110.11773).

    = (alpha^T A alpha + sum_i (D_i n_i + log(1 - n_i^2)/2))/2.
    """
    root = spectral(_root, covariance)
    matrix, scale = _scaled_squares(root @ A @ root)
    squares = jnp.maximum(jnp.linalg.eigvalsh(matrix), 0.0)
    damping = _damping(squares, scale)
    # n^2 = D^2 g^2 and 1 - n^2 = n/D = g; D^2 g without the number D^2.
    gain = scale * squares * (scale * damping) + jnp.log(damping) / 2.0
    return (mean @ A @ mean + jnp.sum(gain)) / 2.0


def coupling_power(
    mean: Float[Array, " d"],
    covariance: Float[Array, "d d"],
    A: Float[Array, "d d"],
    drift: Float[Array, " d"],
    slope: Float[Array, "d d"],
    temperature: Scalar,
) -> Float[Array, ""]:
    """dF/dt = int grad(f + g)/2 . v dmu + T int Laplacian(f + g)/2 dmu along v(x) = slope x + ...

    f and g are the potentials, with gradients A^T E[y|x] and A E[x|y]; `drift` is the mean of v.
    """
    forward = coupling_slope(covariance, A)
    backward = coupling_slope(covariance, A.T)
    of_mean = (A + A.T) @ mean @ drift
    of_spread = jnp.trace((forward.T @ A + backward.T @ A.T) @ slope @ covariance)
    of_noise = temperature * (jnp.trace(A.T @ forward) + jnp.trace(A @ backward))
    return (of_mean + of_spread + of_noise) / 2.0


def _scaled_squares(inner: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """N N^T/c^2 and c >= 1, the size of N: the squares of N = 1e160 are no numbers.

    Nothing depends on c, so its derivative is left out.
    """
    scale = jax.lax.stop_gradient(jnp.maximum(1.0, jnp.max(jnp.abs(inner))))
    unit = inner / scale
    return unit @ unit.T, scale


def _root(x: Array, scale: Array | float) -> Array:
    """sqrt(x)."""
    return jnp.sqrt(jnp.maximum(x, 0.0))


def _damping(x: Array, scale: Array | float) -> Array:
    """g(c^2 x) = 2/(1 + sqrt(1 + 4 c^2 x)) = (1/c)/(1/(2c) + sqrt(x + 1/(2c)^2))."""
    half = 0.5 / scale
    return (1.0 / scale) / (half + jnp.sqrt(jnp.maximum(x, 0.0) + half**2))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def spectral(
    f: Callable[..., Array], X: Float[Array, "d d"], scale: Array | float = 1.0
) -> Float[Array, "d d"]:
    """f(X, scale) of a symmetric matrix: f applied to its eigenvalues; `scale` is held constant.

    Its derivative is that of Daleckii and Krein, which equal eigenvalues do not disturb; the square
    root has none where an eigenvalue is 0, and 0 is returned for those entries.
    """
    values, vectors = jnp.linalg.eigh(X)
    return (vectors * f(values, scale)) @ vectors.T


@spectral.defjvp
def _spectral_jvp(
    f: Callable[..., Array], primals: tuple[Array, Any], tangents: tuple[Array, Any]
) -> tuple[Array, Array]:
    (X, constant), (dX, _) = primals, tangents
    values, vectors = jnp.linalg.eigh(X)
    image = f(values, constant)
    gap = values[:, None] - values
    scale = jnp.max(jnp.abs(values)) + jnp.finfo(values.dtype).tiny
    close = jnp.abs(gap) < 1e-6 * scale
    # Of close eigenvalues the slope at their middle: the error is of second order in the gap.
    middle = (values[:, None] + values) / 2.0
    slope = jax.vmap(jax.grad(lambda x: f(x, constant)))(middle.ravel()).reshape(middle.shape)
    quotient = (image[:, None] - image) / jnp.where(close, 1.0, gap)
    divided = jnp.where(close, slope, quotient)
    divided = jnp.where(jnp.isfinite(divided), divided, 0.0)
    turned = vectors.T @ (dX + dX.T) @ vectors / 2.0
    return (vectors * image) @ vectors.T, vectors @ (divided * turned) @ vectors.T
