"""Circle: the Fourier basis 1, cos k phi, sin k phi, by powers of z = x + iy (no angle is needed)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Fourier:
    """Features with sum over group k of f(x) f(y) = cos k(phi - phi') = T_k(<x, y>).

    z^{k+1} = z z^k for a block of tokens at once: error at most sqrt(5) k units of rounding.
    """

    degree: int

    @property
    def groups(self) -> np.ndarray:
        """Degree of every feature."""
        return np.repeat(np.arange(self.degree + 1), 2)

    @property
    def size(self) -> int:
        """Number of features."""
        return 2 * (self.degree + 1)

    def features(self, points: Float[Array, "2 c"]) -> Float[Array, "f c"]:
        """cos k phi and sin k phi in turn, contiguous along the tokens."""
        powers = complex_powers(points, self.degree)
        return powers.reshape(self.size, points.shape[-1])


def complex_powers(points: Float[Array, "2 c"], degree: int) -> Float[Array, "k 2 c"]:
    """Real and imaginary parts of (x + iy)^k for k = 0, ..., degree."""

    def turn(power: Array, _: None) -> tuple[Array, Array]:
        real = power[0] * points[0] - power[1] * points[1]
        imaginary = power[0] * points[1] + power[1] * points[0]
        return jnp.stack([real, imaginary]), power

    one = jnp.stack([jnp.ones_like(points[0]), jnp.zeros_like(points[0])])
    return jax.lax.scan(turn, one, None, length=degree + 1)[1]
