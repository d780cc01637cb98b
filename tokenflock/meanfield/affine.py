"""The field of attention at a Gaussian measure: an affine map, so that Gaussians stay Gaussian.

For mu = N(alpha, Sigma) and A = beta K^T Q = beta B^T (scores y^T A x), one head of each kind has

| kind | field at x | source |
|---|---|---|
| softmax | V (alpha + Sigma A x) | 2501.18322 |
| l2, e^{-beta abs(Qx-Ky)^2} | V (alpha + L (Q x - K alpha)) | 2501.18322 |
| Sinkhorn | V (alpha + M (x - alpha)), M = (Sigma - M Sigma M^T) A | 2501.18322, 2110.11773 |
| linear | V (Sigma + alpha alpha^T) A x | second moments |

Softmax tilts the Gaussian by e^{<Ax, y>}, which moves its mean by Sigma A x; l2 conditions it on a noisy
sight Ky of Qx, whence the Kalman gain L = 2 beta Sigma K^T (I + 2 beta K Sigma K^T)^{-1} (no inverse of
Sigma: it may have lost rank, and so may K); Sinkhorn couples it with itself. Other kinds make another
field, and the measure is no longer Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..kinds import DotProduct, Kind, Linear, Sinkhorn, Softmax, SquaredDistance
from ..masks import Full
from ..runtime import Scalar
from ..terms import Attention, Drift
from ..weights import check_dimension
from .coupling import coupling_slope


class Gaussian(eqx.Module):
    """N(mean, covariance)."""

    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]

    @property
    def second_moment(self) -> Float[Array, "d d"]:
        """int x x^T dmu."""
        return self.covariance + jnp.outer(self.mean, self.mean)


class Affine(eqx.Module):
    """The map x -> offset + slope x."""

    offset: Float[Array, " d"]
    slope: Float[Array, "d d"]

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.offset + other.offset, self.slope + other.slope)

    def push(self, mu: Gaussian) -> Gaussian:
        """Time derivatives of mean and covariance: offset + slope alpha, slope Sigma + transpose."""
        half = self.slope @ mu.covariance
        return Gaussian(self.offset + self.slope @ mu.mean, half + half.T)


class Head(eqx.Module):
    """The matrices of one head, all (., d): queries Q x, keys K y, values V y."""

    Q: Float[Array, "k d"]
    K: Float[Array, "k d"]
    V: Float[Array, "d d"]
    beta: Float[Array, ""]

    @property
    def score(self) -> Float[Array, "d d"]:
        """A with scores y^T A x: beta K^T Q."""
        return self.beta * self.K.T @ self.Q


def heads_of(term: Attention, t: Scalar, d: int) -> list[Head]:
    """The heads in force at time t; a given B = Q^T K enters, as in the engine, as queries B^T x."""
    weights = term.weights.at(t)
    count, identity = weights.heads, jnp.eye(d)

    def matrix(given: Array | None, head: int) -> Array:
        if given is None:
            return identity
        return given * identity if given.ndim == 0 else given[head]

    queries = weights.Q if weights.B is None else jnp.swapaxes(weights.B, -1, -2)
    return [
        Head(matrix(queries, h), matrix(weights.K, h), matrix(weights.V, h), term.beta)
        for h in range(count)
    ]


# --- one head of each kind ------------------------------------------------------------------------


def softmax_field(head: Head, mu: Gaussian) -> Affine:
    """V (alpha + Sigma A x)."""
    return Affine(head.V @ mu.mean, head.V @ mu.covariance @ head.score)


def l2_field(head: Head, mu: Gaussian) -> Affine:
    """V (alpha + L (Q x - K alpha)) with the Kalman gain L of a sight Ky with variance 1/(2 beta)."""
    seen = head.K @ mu.covariance
    spread = jnp.eye(head.K.shape[0]) + 2.0 * head.beta * seen @ head.K.T
    gain = 2.0 * head.beta * jax.scipy.linalg.solve(spread, seen, assume_a="pos").T
    return Affine(head.V @ (mu.mean - gain @ head.K @ mu.mean), head.V @ gain @ head.Q)


def sinkhorn_field(head: Head, mu: Gaussian) -> Affine:
    """V (alpha + M (x - alpha)), M the slope of the Gaussian coupling of mu with itself."""
    slope = head.V @ coupling_slope(mu.covariance, head.score)
    return Affine(head.V @ mu.mean - slope @ mu.mean, slope)


def linear_field(head: Head, mu: Gaussian) -> Affine:
    """V (Sigma + alpha alpha^T) A x."""
    return Affine(jnp.zeros_like(mu.mean), head.V @ mu.second_moment @ head.score)


# --- a whole model --------------------------------------------------------------------------------


def head_field(kind: Kind) -> Callable[[Head, Gaussian], Affine] | None:
    """The affine field of one head of this kind; None where Gaussians do not stay Gaussian."""
    if isinstance(kind, Softmax):
        by_score = {DotProduct: softmax_field, SquaredDistance: l2_field}
        return by_score.get(type(kind.score))
    return {Sinkhorn: sinkhorn_field, Linear: linear_field}.get(type(kind))


def field(model: Dynamics, t: Scalar, mu: Gaussian) -> Affine:
    """The field of the whole model: heads and terms are added."""
    d = mu.mean.size
    total = Affine(jnp.zeros(d), jnp.zeros((d, d)))
    for term in model.parts():
        if isinstance(term, Attention):
            of_head = head_field(term.kind)
            assert of_head is not None
            for head in heads_of(term, t, d):
                total += of_head(head, mu)
        elif isinstance(term, Drift):
            total += Affine(jnp.zeros(d), drift_matrix(term, d))
    return total


def virial(model: Dynamics, t: Scalar, mu: Gaussian, scaled: Gaussian) -> Float[Array, ""]:
    """int <x, v> dmu over unit^2, for mu and the same measure `scaled` to a unit.

    <x, V y> is averaged over x and the y that attention draws there, without the slopes of `field`.
    """
    total = jnp.zeros(())
    for term in model.parts():
        if isinstance(term, Attention):
            for head in heads_of(term, t, mu.mean.size):
                total += jnp.trace(head.V @ joint_moment(term.kind, head, mu, scaled))
        elif isinstance(term, Drift):
            total += jnp.sum(drift_matrix(term, mu.mean.size) * scaled.second_moment)
    return total


def joint_moment(kind: Kind, head: Head, mu: Gaussian, scaled: Gaussian) -> Float[Array, "d d"]:
    """E[y x^T] over unit^2, for x ~ mu and y drawn by one head at x.

    Given x, softmax and l2 draw y from mu times e^{<Ax, y> - beta' |Ky|^2}, beta' = 0 or beta (what is left
    of |Qx|^2 is no function of y), with A for l2 twice as large: a Gaussian of precision
    P = Sigma^{-1} + 2 beta' K^T K and mean P^{-1} (Sigma^{-1} alpha + A x), written without Sigma^{-1}.
    """
    centre = jnp.outer(scaled.mean, scaled.mean)
    if isinstance(kind, Linear):
        return mu.second_moment @ head.score @ scaled.second_moment
    if isinstance(kind, Sinkhorn):
        return centre + coupling_slope(mu.covariance, head.score) @ scaled.covariance
    assert isinstance(kind, Softmax)
    tilt = mu.covariance @ head.score @ scaled.second_moment
    if isinstance(kind.score, DotProduct):
        return centre + tilt
    precision = jnp.eye(mu.mean.size) + 2.0 * head.beta * mu.covariance @ head.K.T @ head.K
    return jnp.linalg.solve(precision, centre + 2.0 * tilt)


def drift_matrix(term: Drift, d: int) -> Float[Array, "d d"]:
    """M of the drift M x."""
    return term.matrix * jnp.eye(d) if term.matrix.ndim == 0 else term.matrix


def check_affine(model: Dynamics, d: int) -> None:
    """Refuse terms whose field at a Gaussian is not affine, or that do not fit R^d."""
    for term in model.parts():
        require(
            isinstance(term, Attention | Drift),
            f"{type(term).__name__} does not keep a Gaussian Gaussian: its field is not affine; use "
            "attention and Drift, or tokens: normal(...).sample(n, seed)",
        )
        if isinstance(term, Drift):
            require(
                term.matrix.ndim == 0 or term.matrix.shape == (d, d),
                f"the drift matrix must be ({d}, {d}) or a number, got {term.matrix.shape}",
            )
        elif isinstance(term, Attention):
            _check_attention(term, d)


def _check_attention(term: Attention, d: int) -> None:
    check_dimension(term.weights, d)
    require(isinstance(term.mask, Full), "a Gaussian measure has no masks; use mask=Full()")
    if head_field(term.kind) is None:
        raise InputError(
            f"{type(term.kind).__name__} attention leaves the Gaussian family: its field at a Gaussian is "
            "not affine; use Softmax, L2, Sinkhorn or Linear, or tokens"
        )
