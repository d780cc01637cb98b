"""Softmax attention, of the dot product (SA) or of another score (l2)."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import InputError
from .base import Carry, Fold, Kind, empty_with_peak, safe_divide
from .gaussian import Affine, Gaussian, Head


class Score(eqx.Module):
    """What is compared: a function of queries and keys, before beta.

    Beyond its values a score may say what softmax of it can then do; the defaults know nothing.
    """

    @abc.abstractmethod
    def __call__(
        self, queries: Float[Array, "r k"], keys: Float[Array, "c k"]
    ) -> Float[Array, "r c"]:
        """The block of scores."""

    @property
    def bilinear(self) -> bool:
        """Whether it is a function of <q, k> alone."""
        return False

    @property
    def exponent(self) -> float | None:
        """a of a score a <q, k>, up to functions of the row and of the key."""
        return None

    def key_bias(self, keys: Float[Array, "c k"]) -> Float[Array, " c"] | None:
        """The function of the key; None for 0."""
        return None

    def own_peak(self) -> float | None:
        """The score of a unit vector with itself, where no unit vector has a larger one with it."""
        return None

    @property
    def keeps_gaussians(self) -> bool:
        """Whether softmax of this score is affine at a Gaussian."""
        return False

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """The field of one head at a Gaussian."""
        raise InputError(f"softmax of {type(self).__name__} leaves the Gaussian family")

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Float[Array, "d d"]:
        """E[y x^T] over unit^2: see `Kind`."""
        raise InputError(f"softmax of {type(self).__name__} leaves the Gaussian family")


class DotProduct(Score):
    """<q_i, k_j>."""

    def __call__(self, queries: Array, keys: Array) -> Array:
        return queries @ keys.T

    @property
    def bilinear(self) -> bool:
        return True

    @property
    def exponent(self) -> float:
        return 1.0

    def own_peak(self) -> float:
        return 1.0

    @property
    def keeps_gaussians(self) -> bool:
        return True

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """V (alpha + Sigma A x): the Gaussian tilted by e^{<Ax, y>} (2501.18322)."""
        return Affine(head.V @ mu.mean, head.V @ mu.covariance @ head.score)

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Array:
        """alpha alpha^T + Sigma A E[x x^T]."""
        tilt = mu.covariance @ head.score @ scaled.second_moment
        return jnp.outer(scaled.mean, scaled.mean) + tilt


class SquaredDistance(Score):
    """-|q_i - k_j|^2."""

    def __call__(self, queries: Array, keys: Array) -> Array:
        squares = jnp.sum(queries**2, -1)[:, None] + jnp.sum(keys**2, -1)
        return 2 * queries @ keys.T - squares

    @property
    def exponent(self) -> float:
        return 2.0

    def key_bias(self, keys: Array) -> Array:
        return -jnp.sum(keys**2, axis=-1)

    def own_peak(self) -> float:
        return 0.0

    @property
    def keeps_gaussians(self) -> bool:
        return True

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """V (alpha + L (Q x - K alpha)) with the Kalman gain L of a sight Ky with variance 1/(2 beta)."""
        seen = head.K @ mu.covariance
        spread = jnp.eye(head.K.shape[0]) + 2.0 * head.beta * seen @ head.K.T
        gain = 2.0 * head.beta * jax.scipy.linalg.solve(spread, seen, assume_a="pos").T
        return Affine(head.V @ (mu.mean - gain @ head.K @ mu.mean), head.V @ gain @ head.Q)

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Array:
        """P^{-1} (Sigma^{-1} alpha alpha^T + 2 A E[x x^T]), P = Sigma^{-1} + 2 beta K^T K.

        Given x, y is drawn from mu times e^{2 <Ax, y> - beta |Ky|^2} (what is left of |Qx|^2 is no function
        of y): a Gaussian of precision P, written without Sigma^{-1}.
        """
        tilt = mu.covariance @ head.score @ scaled.second_moment
        precision = jnp.eye(mu.mean.size) + 2.0 * head.beta * mu.covariance @ head.K.T @ head.K
        return jnp.linalg.solve(precision, jnp.outer(scaled.mean, scaled.mean) + 2.0 * tilt)


class Softmax(Fold):
    """out_i = sum_j w_j e^{s_ij} v_j / sum_j w_j e^{s_ij}: SA (2312.10794, eq. 2.3).

    Shifted by the largest exponent of the row, so nothing overflows at any beta.
    """

    score: Score = DotProduct()
    averages: ClassVar[bool] = True

    @property
    def name(self) -> str:
        plain = self.exponential
        return "Softmax" if plain else f"Softmax({type(self.score).__name__})"

    @property
    def bilinear(self) -> bool:
        return self.score.bilinear

    @property
    def exponent(self) -> float | None:
        return self.score.exponent

    def key_bias(self, keys: Array, beta: Array) -> Array | None:
        bias = self.score.key_bias(keys)
        return None if bias is None else beta * bias

    def own_peak(self, beta: Array) -> Array | None:
        peak = self.score.own_peak()
        return None if peak is None else peak * beta

    @property
    def has_energy(self) -> bool:
        return self.exponential

    def primitive(self, scores: Array) -> Array:
        """e^s: SA climbs USA's energy, in another metric."""
        return jnp.exp(scores) if self.has_energy else Kind.primitive(self, scores)

    @property
    def keeps_gaussians(self) -> bool:
        return self.score.keeps_gaussians

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        return self.score.gaussian_field(head, mu)

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Array:
        return self.score.gaussian_moment(head, mu, scaled)

    def scores(self, queries: Array, keys: Array, beta: Array) -> Array:
        return beta * self.score(queries, keys)

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return empty_with_peak(rows, width, dtype)

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        peak, partition, numerator = carry
        exponent = scores + log_mass
        # The result does not depend on the shift, so neither does its derivative.
        top = jax.lax.stop_gradient(jnp.maximum(peak, jnp.max(exponent, -1, keepdims=True)))
        # A row that has seen nobody yet has peak -inf; 0 keeps inf - inf out of it.
        shift = jnp.where(jnp.isfinite(top), top, 0.0)
        kernel = jnp.exp(exponent - shift)
        rescale = jnp.exp(peak - shift)
        return (
            top,
            partition * rescale + jnp.sum(kernel, axis=-1, keepdims=True),
            numerator * rescale + (kernel * keep) @ values,
        )

    def finish(self, carry: Carry, beta: Array) -> Array:
        return safe_divide(carry[2], carry[1])


def L2() -> Softmax:
    """Softmax of -beta |q_i - k_j|^2 (the l2 attention of 2501.18322 with c = beta)."""
    return Softmax(SquaredDistance())
