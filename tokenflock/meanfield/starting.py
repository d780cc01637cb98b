"""Where densities start: laws projected on a basis, and coefficients that are a probability."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..density import Law
from ..errors import require
from ..runtime import is_traced
from .galerkin import Basis, Galerkin

# Coefficients given by hand are a probability to this accuracy; a series may undershoot a little.
MASS_TOLERANCE = 1e-9
LARGEST_UNDERSHOOT = 1e-2


def project(basis: Basis, finer: Basis, law: Law, tail: float) -> Float[Array, " mode"]:
    """Coefficients of a law, made a probability.

    Refuses laws that are negative or not finite, and those with scales beyond the basis: what a `finer`
    one finds there, or finds differently, may not exceed `tail`.
    """
    c, fine = _coefficients(basis, law), _coefficients(finer, law)
    if not is_traced(c, fine):
        held, found = _sizes(basis, c), _sizes(finer, fine)
        off = np.abs(np.pad(held, (0, len(found) - len(held))) - found)
        require(
            float(np.max(off)) <= tail,
            f"this law has scales that degree {basis.degree} cannot hold: its degree {np.argmax(off)} is off "
            f"by {np.max(off):.2g}, the tail allowed is {tail:g}; use more modes, or Quantiles(n) on the "
            "circle",
        )
    return c


def _coefficients(basis: Basis, law: Law) -> Float[Array, " mode"]:
    values = jnp.asarray(law(basis.nodes), dtype=float)
    require(
        values.shape == basis.weights.shape,
        f"a law gives one number per point: expected shape {basis.weights.shape}, got {values.shape}",
    )
    if not is_traced(values):
        require(
            bool(jnp.all(jnp.isfinite(values)) and jnp.min(values) >= 0 and jnp.max(values) > 0),
            "a law must be finite and non-negative with a positive integral; got values from "
            f"{float(jnp.min(values)):.3g} to {float(jnp.max(values)):.3g}",
        )
    c = basis.analyse(values)
    return c / c[0]


def _sizes(basis: Basis, c: Array) -> np.ndarray:
    """The size of every degree: root of the sum of squares of its coefficients."""
    degrees = np.asarray(basis.degrees, dtype=int)
    return np.sqrt(np.bincount(degrees, weights=np.asarray(c) ** 2))


def check_coefficients(basis: Basis, state: Array) -> None:
    """Refuse coefficients that are no probability."""
    mass, lowest = float(state[0]), float(Galerkin(basis).lowest(state))
    require(
        abs(mass - 1.0) <= MASS_TOLERANCE,
        f"a density has mass 1 (its first coefficient), got {mass:.6g}; divide by it",
    )
    require(
        lowest >= -LARGEST_UNDERSHOOT,
        f"these coefficients make a density that falls to {lowest:.3g}; a density is not negative",
    )
