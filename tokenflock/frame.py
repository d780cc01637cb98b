"""Frames: the coordinates in which a model is integrated."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import InputError, require
from .measure import Measure
from .reduce import Reduction
from .runtime import Scalar
from .schedule import Schedule
from .space import Euclidean
from .terms import Term

# e^{2 lambda t} enters the scores of the rescaled frame; beyond this exponent it overflows float64.
LARGEST_EXPONENT = 600.0


class Frame(eqx.Module):
    """The coordinates in which the equation is integrated."""

    # Whether these are the coordinates of the tokens themselves.
    is_original: ClassVar[bool] = False

    @abc.abstractmethod
    def force(self, terms: Term, t: Scalar, mu: Measure, reduction: Reduction) -> Array:
        """The field in these coordinates, at the tokens of mu."""

    @abc.abstractmethod
    def original(self, terms: Term, t: Scalar, mu: Measure) -> Measure:
        """The tokens themselves, which attention compares, from those in these coordinates."""

    def check(self, terms: Term, mu: Measure, t1: float) -> None:
        """Refuse a model this frame cannot express."""


class Original(Frame):
    """The tokens as they are."""

    is_original: ClassVar[bool] = True

    def original(self, terms: Term, t: Scalar, mu: Measure) -> Measure:
        return mu

    def force(self, terms: Term, t: Scalar, mu: Measure, reduction: Reduction) -> Array:
        return terms.field(t, mu.points, mu, reduction)


class Rescaled(Frame):
    """z = e^{-tV} x on R^d: z_i' = sum_j P_ij V (z_j - z_i), scores of e^{tV} z (2305.05465).

    Bounded where x grows like e^{lambda t}. Needs one attention term with one head and constant V.
    """

    def force(self, terms: Term, t: Scalar, mu: Measure, reduction: Reduction) -> Array:
        attention = terms.attention()
        assert attention is not None
        z, V = mu.points, _value_matrix(attention.weights, mu.d)
        x = self.original(terms, t, mu)
        return attention.carried(t, x.points, x, z, reduction) - z @ V.T

    def original(self, terms: Term, t: Scalar, mu: Measure) -> Measure:
        """x = e^{tV} z."""
        attention = terms.attention()
        assert attention is not None
        V = _value_matrix(attention.weights, mu.d)
        return mu.at(mu.points @ jax.scipy.linalg.expm(jnp.asarray(t) * V).T, mu.radii)

    def check(self, terms: Term, mu: Measure, t1: float) -> None:
        require(
            isinstance(mu.space, Euclidean), f"the rescaled frame lives on R^d, not on {mu.space}"
        )
        attention = terms.attention()
        if attention is None or not attention.weights.is_fixed:
            raise InputError(
                "the rescaled frame needs exactly one attention term with constant weights"
            )
        weights = attention.weights.at(0.0)
        require(weights.heads == 1, "the rescaled frame needs a single head")
        V = weights.V
        if V is None or V.ndim == 0:
            fastest = jnp.asarray(1.0 if V is None else V)
        else:
            fastest = jnp.max(jnp.linalg.eigvals(V[0]).real)
        require(
            2 * float(fastest) * t1 < LARGEST_EXPONENT,
            f"scores grow like e^(2 lambda t) with lambda={float(fastest):.3g}: t1={t1:g} overflows, "
            f"stop before t={LARGEST_EXPONENT / (2 * float(fastest) or 1):.3g}; attention is one-hot "
            "in double precision long before",
        )


def _value_matrix(weights: Schedule, d: int) -> Float[Array, "d d"]:
    V = weights.at(0.0).V
    if V is None:
        return jnp.eye(d)
    return V * jnp.eye(d) if V.ndim == 0 else V[0]
