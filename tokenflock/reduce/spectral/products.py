"""Any dimension: products of coordinates, for polynomials of low degree in <x, y>."""

from __future__ import annotations

import dataclasses
from math import comb

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Products:
    """Features sqrt(m!/alpha!) x^alpha, |alpha| = m <= degree, so that group m sums to <x, y>^m.

    There are C(degree + d, d) of them: affordable at small beta or low degree only.
    """

    d: int
    degree: int

    @property
    def groups(self) -> np.ndarray:
        """Degree of every feature."""
        counts = [comb(m + self.d - 1, m) for m in range(self.degree + 1)]
        return np.repeat(np.arange(self.degree + 1), counts)

    @property
    def size(self) -> int:
        """Number of features."""
        return count(self.d, self.degree)

    def features(self, points: Float[Array, "d c"]) -> Float[Array, "f c"]:
        """All products, degree by degree.

        Products are sorted by their last variable, so those that may be multiplied by x_v without
        meeting a product twice are the first ones.
        """
        current = jnp.ones((1, points.shape[-1]), points.dtype)
        exponents, ends = np.zeros((1, self.d), int), [1] * self.d
        rows = [current]
        for m in range(1, self.degree + 1):
            parts, raised = [], []
            for variable in range(self.d):
                powers = exponents[: ends[variable]].copy()
                powers[:, variable] += 1
                factor = np.sqrt(m / powers[:, variable]).astype(points.dtype)
                parts.append(factor[:, None] * points[variable] * current[: ends[variable]])
                raised.append(powers)
            current, exponents = jnp.concatenate(parts), np.concatenate(raised)
            ends = np.cumsum([len(part) for part in raised]).tolist()
            rows.append(current)
        return jnp.concatenate(rows)


def count(d: int, degree: int) -> int:
    """Number of products of at most `degree` coordinates."""
    return comb(degree + d, d)


def monomials(degree: int) -> np.ndarray:
    """Row k: the coefficients of T_k in powers of u."""
    table = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        table[k, : k + 1] = np.polynomial.chebyshev.cheb2poly(np.eye(degree + 1)[k])[: k + 1]
    return table
