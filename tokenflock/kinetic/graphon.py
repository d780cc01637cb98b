"""Averages over earlier positions, int_0^s k(s, s') u(s') ds', on the grid s_i = i/cells.

k(s, s') = e^{-lambda(s-s')}/int_0^s e^{-lambda(s-r)} dr for s' < s (2605.09213). u is taken linear
between grid points and integrated exactly against the exponential: order 2 in 1/cells, any slope lambda,
and the weights of a row sum to one, as those of the graphon do. At s = 0 the average is u(0).
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..masks import Mask

# Gauss-Legendre on one cell: exact to rounding for |slope|/cells below `STEEP`.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
STEEP = 8.0


class Averages(eqx.Module):
    """Weights of the two ends of cell m in the average at s_i, zero for cells that lie beyond s_i."""

    left: Float[Array, "point cell"]
    right: Float[Array, "point cell"]
    slope: Float[Array, ""]

    @staticmethod
    def of(mask: Mask, cells: int) -> Averages:
        """The averages of a causal mask; without a bias the slope is 0."""
        slope = jnp.zeros(()) if mask.decay is None else mask.decay
        places = jnp.arange(cells + 1) / cells
        behind = jnp.tril(jnp.ones((cells + 1, cells), bool), -1)
        # From the nearer end of a cell to s_i, or to 0 for slopes below 0: exponents are at most 0.
        nearer = jnp.where(slope >= 0, places[1:] - places[:, None], places[:-1])
        reach = jnp.where(behind, jnp.exp(jnp.where(behind, slope * nearer, 0.0)), 0.0)
        near, far = _ends(jnp.abs(slope) / cells)
        left = reach * jnp.where(slope >= 0, far, near)
        right = reach * jnp.where(slope >= 0, near, far)
        total = jnp.sum(left + right, axis=1, keepdims=True).at[0].set(1.0)
        return Averages(left / total, right / total, slope)

    @property
    def cells(self) -> int:
        """Number of cells of the grid."""
        return self.left.shape[1]

    def matrix(self) -> Float[Array, "point point"]:
        """u -> int_0^{s_i} k(s_i, s') u(s') ds', and u(0) at s = 0."""
        return self.since(0).at[0, 0].set(1.0)

    def since(self, first: int) -> Float[Array, "late late"]:
        """u -> int_{s_first}^{s_i} k(s_i, s') u(s') ds' for the positions from s_first on."""
        left, right = self.left[first:, first:], self.right[first:, first:]
        return jnp.pad(left, ((0, 0), (0, 1))) + jnp.pad(right, ((0, 0), (1, 0)))

    def at(self, first: int) -> Float[Array, " late"]:
        """k(s_i, s_first) for the positions from s_first on, the limit from above at s_first itself."""
        late = jnp.arange(first, self.cells + 1) / self.cells
        size, start = jnp.abs(self.slope), first / self.cells
        distance = jnp.where(self.slope >= 0, late - start, start)
        # (1 - e^{-x})/x, with the value at 0 put in: derivatives by the slope are not asked here.
        x = size * late
        mean = jnp.where(x > 0, -jnp.expm1(-x) / jnp.where(x > 0, x, 1.0), 1.0)
        return jnp.exp(-size * distance) / (late * mean)


def _ends(steepness: Float[Array, ""]) -> tuple[Array, Array]:
    """int_0^1 (1 - y) e^{-cy} dy and int_0^1 y e^{-cy} dy: the weights of a cell's near and far end.

    (c - 1 + e^{-c})/c^2 and (1 - (1 + c) e^{-c})/c^2, which cancel for small c: there by quadrature.
    """
    within = (NODES + 1) / 2
    gentle = jnp.minimum(steepness, STEEP)
    mass = WEIGHTS / 2 * jnp.exp(-gentle * within)
    c = jnp.maximum(steepness, STEEP)
    near, far = (c - 1 + jnp.exp(-c)) / c**2, (1 - (1 + c) * jnp.exp(-c)) / c**2
    steep = steepness > STEEP
    return jnp.where(steep, near, mass @ (1 - within)), jnp.where(steep, far, mass @ within)
