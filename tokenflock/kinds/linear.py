"""Linear attention."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from .base import Weighted
from .gaussian import Affine, Gaussian, Head


class Linear(Weighted):
    """f(s) = s: attention with no nonlinearity."""

    polynomial_degree: ClassVar[int | None] = 1

    def weight(self, scores: Array, beta: Array) -> Array:
        return scores

    def primitive(self, scores: Array) -> Array:
        return scores**2 / 2.0

    @property
    def keeps_gaussians(self) -> bool:
        return True

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """V (Sigma + alpha alpha^T) A x: second moments."""
        return Affine(jnp.zeros_like(mu.mean), head.V @ mu.second_moment @ head.score)

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Array:
        return mu.second_moment @ head.score @ scaled.second_moment
