"""A Gaussian measure, an affine field, the matrices of one head: what kinds say of Gaussians is in these."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


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
