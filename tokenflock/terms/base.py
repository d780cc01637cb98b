"""Terms of a velocity field: attention, perceptron, drift, potential. They are added with `+`.

A term is v[mu](t, x): what a point x feels, at depth t, from the measure mu. A new model is a new
value in one slot of a term, or a new term; nothing else in the library changes.

A term answers for itself. Beyond `field` all is optional, with defaults that know nothing:

| capability | who asks | what a new term gains |
|---|---|---|
| `potential`, `is_gradient` | energy, densities, landscape | its part of the energy and of the free energy |
| `rising`, `free_potential` | densities, minimising movements | a place in the dissipation identity |
| `opposite`, `scaled` | landscape | descent, continuation in its strength |
| `dimension`, `turn_conditions`, `kinks`, `curvature_bound` | landscape | certified critical points |
| `gaussian_field`, `gaussian_virial` | Gaussian densities | the limit on R^d |
| `attention` | whoever needs scores | (attention only) |
| `ranks` | `solve` | arrays of its own with one axis more in front are a batch of models |

`ranks = {"strength": (0,), "matrix": (2,)}` says how many axes each has for one model: a vector of strengths,
or matrices with one axis more, are a batch.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError
from ..kinds.gaussian import Affine, Gaussian
from ..measure import Measure
from ..reduce import Reduction
from ..runtime import Scalar
from ..schedule import jumps_in

if TYPE_CHECKING:
    from .attention import Attention


class Kinks(NamedTuple):
    """Neurons whose activation has a kink at a_j . x = 0: their omega_j and a_j."""

    omega: Float[Array, " neuron"]
    inner: Float[Array, "neuron d"]


class Term(eqx.Module):
    """A contribution to the velocity, before projection on the tangent space."""

    # How many axes its numbers have for one model, any of several: one more in front is a batch of models.
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {}
    # Whether the field depends on the measure.
    interacts: ClassVar[bool] = False

    @abc.abstractmethod
    def field(
        self, t: Scalar, x: Float[Array, "m d"], mu: Measure, reduction: Reduction
    ) -> Float[Array, "m d"]:
        """v[mu](t, x) at the points x."""

    def tangent_field(
        self, t: Scalar, x: Float[Array, "n d"], mu: Measure, reduction: Reduction
    ) -> Float[Array, "n d"]:
        """The field at the tokens of mu up to multiples of x_i, which a projection P_{x_i} removes."""
        return self.field(t, x, mu, reduction)

    def __add__(self, other: Term) -> Sum:
        return Sum((*self.parts(), *other.parts()))

    def check(self, mu: Measure) -> None:
        """Refuse a measure this term cannot act on."""

    def jumps(self, t1: float) -> list[Any]:
        """Times in (0, t1) where the term is discontinuous: those of its schedules."""
        return jumps_in(self, t1)

    def parts(self) -> tuple[Term, ...]:
        """The terms it is a sum of."""
        return (self,)

    def attention(self) -> Attention | None:
        """Itself, where it is attention."""
        return None

    # --- the energy -------------------------------------------------------------------------------

    def potential(self, t: Scalar, x: Float[Array, "m d"]) -> Float[Array, " m"] | None:
        """f(x) where the term is grad f at time t, whatever the measure; None where it is no gradient."""
        return None

    @property
    def is_gradient(self) -> bool:
        """Whether it is grad f of one function at all times."""
        return False

    def rising(self, d: int) -> Term | None:
        """The term whose field is the gradient of this one's part of the energy, itself if it is all of it.

        None where it has no part: its field is no gradient, or of a function that changes with time.
        """
        return self if self.is_gradient else None

    def free_potential(self, x: Float[Array, "m d"]) -> Float[Array, " m"] | None:
        """The function whose gradient is the field of `rising`; None where there is none."""
        return None if self.rising(x.shape[-1]) is None else self.potential(0.0, x)

    def opposite(self) -> Term:
        """The term with the opposite field."""
        raise InputError(f"{type(self).__name__} does not say which term is its opposite")

    def scaled(self, factor: Scalar) -> Term:
        """The term with `factor` times its field, where it is external; attention as it is."""
        if not self.interacts:
            raise InputError(f"{type(self).__name__} does not say what a multiple of it is")
        return self

    # --- what certificates of critical points ask of external terms --------------------------------

    @property
    def dimension(self) -> int | None:
        """The number of coordinates its weights have; None if it takes any."""
        return None

    def turn_conditions(self, generators: np.ndarray, present: bool) -> np.ndarray | None:
        """Numbers (generators, .) that vanish for turns which leave the term as it is; None if none does.

        `present` is False where the term is multiplied by 0.
        """
        return None

    def kinks(self) -> Kinks | None:
        """Its neurons with a kink, if any."""
        return None

    def curvature_bound(self) -> float:
        """A bound of the second derivatives of its potential; NaN where none is known."""
        return float("nan")

    # --- Gaussian measures ------------------------------------------------------------------------

    def check_gaussian(self, d: int) -> None:
        """Refuse where the field at a Gaussian on R^d is not affine."""
        raise InputError(
            f"{type(self).__name__} does not keep a Gaussian Gaussian: its field is not affine; use "
            "attention and Drift, or tokens: normal(...).sample(n, seed)"
        )

    def gaussian_field(self, t: Scalar, mu: Gaussian) -> Affine:
        """The field at a Gaussian measure, an affine map."""
        raise InputError(f"{type(self).__name__} does not keep a Gaussian Gaussian")

    def gaussian_virial(self, t: Scalar, mu: Gaussian, scaled: Gaussian) -> Float[Array, ""]:
        """int <x, v> dmu over unit^2, for mu and the same measure `scaled` to a unit."""
        raise InputError(f"{type(self).__name__} does not keep a Gaussian Gaussian")


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])


class Sum(Term):
    """A sum of terms."""

    terms: tuple[Term, ...]

    def parts(self) -> tuple[Term, ...]:
        return self.terms

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return _total([term.field(t, x, mu, reduction) for term in self.terms])

    def tangent_field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return _total([term.tangent_field(t, x, mu, reduction) for term in self.terms])

    def check(self, mu: Measure) -> None:
        for term in self.terms:
            term.check(mu)

    def jumps(self, t1: float) -> list[Any]:
        return [jump for term in self.terms for jump in term.jumps(t1)]
