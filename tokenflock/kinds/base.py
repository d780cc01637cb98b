"""What a kind of attention is: how scores s_ij become the weights of the values v_j.

Most kinds are a fold over blocks of keys (`start`, `absorb`, `finish`), so that a reduction may hold
the whole score matrix or a tile of it and get the same sums. `log_mass` is log(w_j m_ij): the mass of
token j times the mask. Scores arrive already multiplied by beta.

A kind answers for itself. Its capabilities have defaults that refuse with a sentence, or say that there is
nothing to say; whoever needs one asks the kind, and never for its class:

| capability | who asks | what a new kind gains |
|---|---|---|
| `fold`, `blockwise` | Tiled | memory O(n) |
| `own_peak` | Tiled, GpuKernel | one pass less over the scores |
| `exponent`, `key_bias`, `shift` | GpuKernel, Spectral | the fused kernel, the series of the exponential |
| `has_series`, `weight`, `polynomial_degree` | Spectral | sums in O(n) |
| `primitive`, `clock` | energies, health, densities | energy, dissipation, a free energy |
| `exponential`, `averages`, `log_speed` | theory | the closed forms of SA and USA |
| `keeps_gaussians`, `gaussian_field`, `gaussian_moment` | Gaussian densities | the limit on R^d |
| `ranks` | `solve` | arrays of its own with one axis more in front are a batch of models |

`ranks = {"bias": (0,)}` says that `bias` has no axes for one model: a vector of them is a batch.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import InputError
from ..masks import Mask
from .gaussian import Affine, Gaussian, Head

Carry = Any
Convention = Literal["perspective", "metastability", "kinetic"]


class Kind(eqx.Module):
    """A way of weighing values by scores."""

    # True when the weights of a token sum to one, so that its output is an average of values.
    averages: ClassVar[bool]
    # The degree of the weight as a polynomial in <q, k>, for kinds whose weight is one.
    polynomial_degree: ClassVar[int | None] = None
    # How many axes its numbers have for one model, any of several: one more in front is a batch of models.
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {}
    # True when the weights are a coupling of the measure with itself.
    couples: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        return type(self).__name__

    @property
    def bilinear(self) -> bool:
        """Whether scores see <q_i, k_j> alone, so that K may move to the other side as K^T."""
        return True

    def check_mask(self, mask: Mask) -> None:
        """Refuse a mask this kind has no meaning with."""

    def scores(
        self, queries: Float[Array, "r k"], keys: Float[Array, "c k"], beta: Array
    ) -> Float[Array, "r c"]:
        """beta <q_i, k_j>."""
        return beta * (queries @ keys.T)

    @abc.abstractmethod
    def dense(
        self,
        scores: Float[Array, "r c"],
        log_mass: Float[Array, "r c"],
        values: Float[Array, "c m"],
        beta: Array,
        keep: Array,
    ) -> Float[Array, "r m"]:
        """The output of every row from the whole score matrix."""

    # --- sums without the score matrix ------------------------------------------------------------

    def fold(self) -> Fold | None:
        """Itself as a fold over blocks of keys, if it is one."""
        return None

    def blockwise(
        self,
        queries: Float[Array, "n k"],
        keys: Float[Array, "n k"],
        values: Float[Array, "n m"],
        mass: Float[Array, " n"],
        drop_self: bool,
        block: int,
    ) -> Float[Array, "n m"]:
        """The output of tokens with themselves, `block` rows at a time, for a kind that is no fold.

        Queries are multiplied by beta already.
        """
        raise InputError(
            f"{self.name} attention is not a fold over tokens, so it cannot be tiled; use reduction=Dense()"
        )

    def own_peak(self, beta: Array) -> Array | None:
        """s_ii of a unit token where no score of its row is larger and weights are e^s over their sum."""
        return None

    # --- the weight of a pair as a function of <q, k> ---------------------------------------------

    @property
    def exponent(self) -> float | None:
        """a of weights e^{a beta <q, k>}, up to functions of the row and of the key; None of others."""
        return None

    def key_bias(self, keys: Float[Array, "c k"], beta: Array) -> Float[Array, " c"] | None:
        """b_j of weights e^{a beta <q_i, k_j> + b_j}; None for 0."""
        return None

    def shift(self, beta: Array) -> Array:
        """What exponents are lowered by in the sums; `speed` gives it back."""
        return jnp.zeros_like(beta)

    @property
    def has_series(self) -> bool:
        """Whether the weight of a pair is a smooth function of <q, k>, which has a series in harmonics."""
        return self.exponent is not None

    def weight(self, scores: Array, beta: Array) -> Array:
        """f(s): what a pair weighs, before `speed` and before any normalisation."""
        raise InputError(f"{self.name} attention has no weight of a single pair")

    def speed(self, beta: Array) -> Array:
        """Factor of the whole field, kept out of the sums."""
        return jnp.ones_like(beta)

    def log_speed(self, beta: Array) -> Array:
        """log of `speed`, finite where that overflows: what closed forms take."""
        return jnp.log(self.speed(beta))

    # --- the energy -------------------------------------------------------------------------------

    @property
    def exponential(self) -> bool:
        """Whether pairs weigh e^{beta <q, k>}, with or without the partition function."""
        return self.exponent == 1.0

    @property
    def has_energy(self) -> bool:
        """Whether `primitive` is known, so that the field can be that of a gradient flow."""
        return type(self).primitive is not Kind.primitive

    def primitive(self, scores: Float[Array, "r c"]) -> Float[Array, "r c"]:
        """phi(s) with phi' = f the weight of a pair."""
        raise InputError(
            f"{self.name} attention has no interaction energy; energies exist for softmax and unnormalised "
            "(dot-product scores), kernel, linear and sigmoid attention, and kinds that say their `primitive`"
        )

    def clock(self, beta: Array) -> Array:
        """The field over the gradient of E = (1/2beta) sum w w phi(beta s), where weights do not average."""
        return self.speed(beta)

    # --- Gaussian measures ------------------------------------------------------------------------

    @property
    def keeps_gaussians(self) -> bool:
        """Whether the field at a Gaussian is affine, so that Gaussians stay Gaussian."""
        return False

    def gaussian_field(self, head: Head, mu: Gaussian) -> Affine:
        """The field of one head at a Gaussian measure."""
        raise InputError(
            f"{self.name} attention leaves the Gaussian family: its field at a Gaussian is not affine; use "
            "Softmax, L2, Sinkhorn or Linear, or tokens"
        )

    def gaussian_moment(self, head: Head, mu: Gaussian, scaled: Gaussian) -> Float[Array, "d d"]:
        """E[y x^T] over unit^2, for x ~ mu and y drawn by one head at x; `scaled` is mu in that unit."""
        raise InputError(f"{self.name} attention leaves the Gaussian family")


class Fold(Kind):
    """A kind whose output is one pass of sums over the keys, in blocks of any size."""

    @abc.abstractmethod
    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        """Empty sums for a block of rows, in the precision of the values."""

    @abc.abstractmethod
    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        """Sums with one more block of columns.

        `keep` (0 or 1) multiplies the terms of the numerator only: it drops a token's own value where
        the projection would cancel it, which loses all digits once other weights fall below 1e-16.
        """

    @abc.abstractmethod
    def finish(self, carry: Carry, beta: Array) -> Float[Array, "r m"]:
        """The output of the rows."""

    def fold(self) -> Fold:
        return self

    def dense(
        self, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Array:
        carry = self.start(scores.shape[0], values.shape[-1], values.dtype)
        return self.finish(self.absorb(carry, scores, log_mass, values, beta, keep), beta)


class Weighted(Fold):
    """out_i = speed sum_j w_j m_ij f(s_ij) v_j / sum_j w_j m_ij: an average over the visible tokens.

    A new kind of this sort is one method, `weight`; with `primitive` it has energies, too.
    """

    averages: ClassVar[bool] = False

    @abc.abstractmethod
    def weight(self, scores: Array, beta: Array) -> Array:
        """f(s)."""

    @property
    def has_series(self) -> bool:
        return True

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return (jnp.zeros((rows, 1), dtype), jnp.zeros((rows, width), dtype))

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        mass = jnp.exp(log_mass)
        weight = mass * jnp.where(mass > 0, self.weight(scores, beta), 0.0)
        return (carry[0] + jnp.sum(mass, -1, keepdims=True), carry[1] + (weight * keep) @ values)

    def finish(self, carry: Carry, beta: Array) -> Array:
        return self.speed(beta) * safe_divide(carry[1], carry[0])


class PairPotential(Weighted):
    """phi(s_ij) of another kind in the place of f(s_ij), so that any reduction sums its energy."""

    kind: Kind

    def weight(self, scores: Array, beta: Array) -> Array:
        return self.kind.primitive(scores)


def safe_divide(numerator: Array, denominator: Array) -> Array:
    """Quotient, and 0 where a token sees nobody."""
    empty = denominator == 0
    return jnp.where(empty, 0.0, numerator / jnp.where(empty, 1.0, denominator))


def empty_with_peak(rows: int, width: int, dtype: Any) -> tuple[Array, Array, Array]:
    """Largest score so far, its count or partition, and the sum of values: of nothing yet."""
    return (
        jnp.full((rows, 1), -jnp.inf, dtype),
        jnp.zeros((rows, 1), dtype),
        jnp.zeros((rows, width), dtype),
    )
