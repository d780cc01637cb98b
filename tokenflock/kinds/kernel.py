"""Attention by any interaction phi(<x, y>)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..errors import require
from .base import Weighted


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """phi(u) = sum_k c_k u^k."""

    coefficients: tuple[float, ...]

    def __call__(self, u: Array) -> Array:
        return jnp.polyval(jnp.asarray(self.coefficients[::-1]), u)


Interaction = Callable[[Array], Array] | Sequence[Any]


def as_function(phi: Interaction) -> Callable[[Array], Array]:
    """A function of <x, y>, from itself or from the coefficients of a polynomial."""
    if callable(phi):
        return phi
    require(
        np.ndim(phi) == 1,
        f"phi must be a function or one list of coefficients, got shape {np.shape(phi)}; coefficients are "
        "no batch: solve one model for each",
    )
    return Polynomial(tuple(float(c) for c in phi))


class Kernel(Weighted):
    """f = phi' for an interaction phi(<x,y>): field P_x int phi'(<x,y>) y dmu(y) (2405.18273).

    phi(u) = e^{beta u}/beta is USA and phi(u) = u is its beta = 0. Scores are beta <q,k>, so leave
    beta = 1 unless phi is meant to see the product. `phi` is any scalar JAX function.
    """

    phi: Callable[[Array], Array] = eqx.field(static=True)

    def weight(self, scores: Array, beta: Array) -> Array:
        return jax.vmap(jax.grad(self.phi))(scores.ravel()).reshape(scores.shape)

    def primitive(self, scores: Array) -> Array:
        return jax.vmap(self.phi)(scores.ravel()).reshape(scores.shape)
