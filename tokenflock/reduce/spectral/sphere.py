"""S^2: real spherical harmonics by recurrences in (x, y, z), with no angle and no pole."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .circle import complex_powers


@dataclasses.dataclass(frozen=True)
class SphericalHarmonics:
    """Features with sum over group l of f(x) f(y) = P_l(<x, y>) (Schmidt's normalisation).

    The sectoral harmonics are multiples of Re and Im (x + iy)^l; from them, upwards in l,

        sqrt(l^2 - m^2) S_l^m = (2l - 1) z S_{l-1}^m - sqrt((l-1)^2 - m^2) S_{l-2}^m,

    which is stable (Holmes and Featherstone, J. Geodesy 76, 2002).
    """

    degree: int

    @property
    def groups(self) -> np.ndarray:
        """Degree of every feature."""
        degrees = np.arange(self.degree + 1)
        return np.repeat(degrees, 2 * degrees + 1)

    @property
    def size(self) -> int:
        """Number of features."""
        return (self.degree + 1) ** 2

    def features(self, points: Float[Array, "3 c"]) -> Float[Array, "f c"]:
        """Degree by degree: m = 0, then cosine and sine of m = 1, ..., l.

        Written out for every degree: as a loop over padded arrays it runs four times slower.
        """
        z, sectors = points[2], _sectors(points[:2], self.degree)
        rows = [sectors[:1]]
        for degree in range(1, self.degree + 1):
            first, second = _ladder(degree, points.dtype)
            raised = [sectors[2 * degree - 1 : 2 * degree + 1]]
            if degree == 1:
                raised = [first * z * rows[-1], *raised]
            else:
                # S_{l-2}^{l-1} = 0: the last two rows have no second term.
                both = first[:-2] * z * rows[-1][:-2] - second * rows[-2]
                raised = [both, first[-2:] * z * rows[-1][-2:], *raised]
            rows.append(jnp.concatenate(raised))
        return jnp.concatenate(rows)


def _sectors(points: Float[Array, "2 c"], degree: int) -> Float[Array, "f c"]:
    """S_l^l for l = 0, ..., degree, cosine and sine."""
    steps = np.arange(2, degree + 1)
    heights = np.cumprod([1.0, 1.0, *np.sqrt((2 * steps - 1) / (2 * steps))])[: degree + 1]
    powers = jnp.asarray(heights, points.dtype)[:, None, None] * complex_powers(points, degree)
    flat = powers.reshape(2 * degree + 2, -1)
    return jnp.concatenate([flat[:1], flat[2:]])


def _ladder(degree: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Factors of z S_{l-1}^m for m < l, and of S_{l-2}^m for m < l - 1."""
    m = np.repeat(np.arange(degree), 2)[1:]
    root = np.sqrt(degree**2 - m**2)
    second = np.sqrt((degree - 1) ** 2 - m**2) / root
    return ((2 * degree - 1) / root)[:, None].astype(dtype), second[:-2, None].astype(dtype)
