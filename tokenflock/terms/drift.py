"""A linear drift."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import require
from ..kinds.gaussian import Affine, Gaussian
from ..measure import Measure
from ..reduce import Reduction
from ..runtime import Scalar, is_traced, known
from ..schedule import Quantity, as_number, now, values_of
from ..weights import TIED_TOLERANCE
from .base import Term


class Drift(Term):
    """M x for a matrix M, or m x for a number m; a `Piecewise` of them where it changes with depth."""

    matrix: Quantity = eqx.field(converter=as_number)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"matrix": (0, 2)}

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        matrix = now(self, t).matrix
        return matrix * x if matrix.ndim == 0 else x @ matrix.T

    def check(self, mu: Measure) -> None:
        for matrix in values_of(self.matrix):
            require(
                np.shape(matrix)[-2:] in ((), (mu.d, mu.d)) or np.ndim(matrix) == 1,
                f"the drift matrix must be ({mu.d}, {mu.d}) or a number, got {np.shape(matrix)}",
            )

    @known()
    def rising(self, d: int) -> Drift:
        """(M + M^T)/2 x, and itself where M is a number or, as far as is known, symmetric."""
        if self.matrix.ndim == 0:
            return self
        half = Drift((self.matrix + self.matrix.T) / 2.0)
        if is_traced(self.matrix):
            return half
        off = np.max(np.abs(np.asarray(self.matrix - half.matrix)))
        return self if off <= TIED_TOLERANCE * np.max(np.abs(np.asarray(self.matrix))) else half

    def free_potential(self, x: Array) -> Array | None:
        """<x, Mx>/2; a number moves nothing on a sphere."""
        if self.matrix.ndim == 0:
            return None
        return jnp.sum(x * (x @ self.matrix.T), axis=-1) / 2.0

    def opposite(self) -> Drift:
        return Drift(-self.matrix)

    def check_gaussian(self, d: int) -> None:
        require(
            self.matrix.ndim == 0 or self.matrix.shape == (d, d),
            f"the drift matrix must be ({d}, {d}) or a number, got {self.matrix.shape}",
        )

    def gaussian_field(self, t: Scalar, mu: Gaussian) -> Affine:
        return Affine(jnp.zeros(mu.mean.size), self._square(mu.mean.size))

    def gaussian_virial(self, t: Scalar, mu: Gaussian, scaled: Gaussian) -> Array:
        return jnp.sum(self._square(mu.mean.size) * scaled.second_moment)

    def _square(self, d: int) -> Float[Array, "d d"]:
        return self.matrix * jnp.eye(d) if self.matrix.ndim == 0 else self.matrix
