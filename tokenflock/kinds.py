"""Kinds of attention: how scores s_ij become the weights of the values v_j.

Most kinds are a fold over blocks of keys (`start`, `absorb`, `finish`), so that a reduction may hold
the whole score matrix or a tile of it and get the same sums. `log_mass` is log(w_j m_ij): the mass of
token j times the mask. Scores arrive already multiplied by beta.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import require, require_extra
from .potentials import Potentials, implicit_potentials
from .runtime import as_array

Carry = Any
Convention = Literal["perspective", "metastability", "kinetic"]


class Kind(eqx.Module):
    """A way of weighing values by scores."""

    # True when the weights of a token sum to one, so that its output is an average of values.
    averages: ClassVar[bool]

    @property
    def bilinear(self) -> bool:
        """Whether scores see <q_i, k_j> alone, so that K may move to the other side as K^T."""
        return True

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

    def dense(
        self, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Array:
        carry = self.start(scores.shape[0], values.shape[-1], values.dtype)
        return self.finish(self.absorb(carry, scores, log_mass, values, beta, keep), beta)


def safe_divide(numerator: Array, denominator: Array) -> Array:
    """Quotient, and 0 where a token sees nobody."""
    empty = denominator == 0
    return jnp.where(empty, 0.0, numerator / jnp.where(empty, 1.0, denominator))


def _empty_with_peak(rows: int, width: int, dtype: Any) -> tuple[Array, Array, Array]:
    """Largest score so far, its count or partition, and the sum of values: of nothing yet."""
    return (
        jnp.full((rows, 1), -jnp.inf, dtype),
        jnp.zeros((rows, 1), dtype),
        jnp.zeros((rows, width), dtype),
    )


class Score(eqx.Module):
    """What is compared: a function of queries and keys, before beta."""

    @abc.abstractmethod
    def __call__(
        self, queries: Float[Array, "r k"], keys: Float[Array, "c k"]
    ) -> Float[Array, "r c"]:
        """The block of scores."""


class DotProduct(Score):
    """<q_i, k_j>."""

    def __call__(self, queries: Array, keys: Array) -> Array:
        return queries @ keys.T


class SquaredDistance(Score):
    """-|q_i - k_j|^2."""

    def __call__(self, queries: Array, keys: Array) -> Array:
        squares = jnp.sum(queries**2, -1)[:, None] + jnp.sum(keys**2, -1)
        return 2 * queries @ keys.T - squares


class Softmax(Fold):
    """out_i = sum_j w_j e^{s_ij} v_j / sum_j w_j e^{s_ij}: SA (2312.10794, eq. 2.3).

    Shifted by the largest exponent of the row, so nothing overflows at any beta.
    """

    score: Score = DotProduct()
    averages: ClassVar[bool] = True

    @property
    def bilinear(self) -> bool:
        return isinstance(self.score, DotProduct)

    def scores(self, queries: Array, keys: Array, beta: Array) -> Array:
        return beta * self.score(queries, keys)

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return _empty_with_peak(rows, width, dtype)

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        peak, partition, numerator = carry
        exponent = scores + log_mass
        # The result does not depend on the shift, so neither does its derivative.
        top = jax.lax.stop_gradient(jnp.maximum(peak, jnp.max(exponent, -1, keepdims=True)))
        # A row that has seen nobody yet has peak -inf; 0 keeps inf - inf out of it.
        shift = jnp.where(jnp.isfinite(top), top, 0.0)
        kernel = jnp.exp(exponent - shift)
        rescale = jnp.exp(peak - shift)
        return (
            top,
            partition * rescale + jnp.sum(kernel, axis=-1, keepdims=True),
            numerator * rescale + (kernel * keep) @ values,
        )

    def finish(self, carry: Carry, beta: Array) -> Array:
        return safe_divide(carry[2], carry[1])


def L2() -> Softmax:
    """Softmax of -beta |q_i - k_j|^2 (the l2 attention of 2501.18322 with c = beta)."""
    return Softmax(SquaredDistance())


class Weighted(Fold):
    """out_i = sum_j w_j m_ij f(s_ij) v_j / sum_j w_j m_ij: an average over the visible tokens."""

    averages: ClassVar[bool] = False

    @abc.abstractmethod
    def weight(self, scores: Array, beta: Array) -> Array:
        """f(s)."""

    def speed(self, beta: Array) -> Array:
        """Factor of the whole field, kept out of the sums."""
        return jnp.ones_like(beta)

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


class Unnormalised(Weighted):
    """USA: e^{s_ij} without the partition function, in three published clocks.

    | convention | weight of token j | source |
    |---|---|---|
    | perspective | e^{beta <x,y>} / n | 2312.10794 |
    | metastability | e^{beta (<x,y> - 1)} / n | 2410.06833: the same path, slower by e^{-beta} |
    | kinetic | beta e^{beta <x,y>} / n | 2605.09213 |

    The sums always hold e^{beta(<x,y>-1)}; the factor is applied once, at the end.
    """

    convention: Convention = eqx.field(static=True, default="perspective")

    def __check_init__(self) -> None:
        require(
            self.convention in ("perspective", "metastability", "kinetic"),
            f"USA's convention is perspective, metastability or kinetic, got {self.convention!r}",
        )

    def weight(self, scores: Array, beta: Array) -> Array:
        return jnp.exp(scores - beta)

    def speed(self, beta: Array) -> Array:
        if self.convention == "metastability":
            return jnp.ones_like(beta)
        factor = jnp.exp(beta)
        return factor if self.convention == "perspective" else beta * factor


class Sigmoid(Weighted):
    """f(s) = 1/(1 + e^{-(s + bias)})."""

    bias: Float[Array, ""] = eqx.field(default=0.0, converter=as_array)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"bias": (0,)}

    def weight(self, scores: Array, beta: Array) -> Array:
        return jax.nn.sigmoid(scores + self.bias)


class Linear(Weighted):
    """f(s) = s: attention with no nonlinearity."""

    def weight(self, scores: Array, beta: Array) -> Array:
        return scores


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """phi(u) = sum_k c_k u^k."""

    coefficients: tuple[float, ...]

    def __call__(self, u: Array) -> Array:
        return jnp.polyval(jnp.asarray(self.coefficients[::-1]), u)


Interaction = Callable[[Array], Array] | list[float]


def as_function(phi: Interaction) -> Callable[[Array], Array]:
    """A function of <x, y>, from itself or from the coefficients of a polynomial."""
    return phi if callable(phi) else Polynomial(tuple(float(c) for c in phi))


class Kernel(Weighted):
    """f = phi' for an interaction phi(<x,y>): field P_x int phi'(<x,y>) y dmu(y) (2405.18273).

    phi(u) = e^{beta u}/beta is USA and phi(u) = u is its beta = 0. Scores are beta <q,k>, so leave
    beta = 1 unless phi is meant to see the product. `phi` is any scalar JAX function.
    """

    phi: Callable[[Array], Array] = eqx.field(static=True)

    def weight(self, scores: Array, beta: Array) -> Array:
        return jax.vmap(jax.grad(self.phi))(scores.ravel()).reshape(scores.shape)


class Hardmax(Fold):
    """Mean of the values over C_i = argmax_j s_ij, ties shared by mass (2407.01602).

    Ties are exact (`==`): a tolerance here would change which leader a token follows. Leaders are
    recognised by location, with a tolerance, in `observables.leaders`. beta plays no role but its sign.
    """

    averages: ClassVar[bool] = True

    def start(self, rows: int, width: int, dtype: Any = float) -> Carry:
        return _empty_with_peak(rows, width, dtype)

    def absorb(
        self, carry: Carry, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Carry:
        peak, count, total = carry
        mass = jnp.exp(log_mass)
        seen = jnp.where(mass > 0, scores, -jnp.inf)
        top = jnp.maximum(peak, jnp.max(seen, axis=-1, keepdims=True))
        chosen = jnp.where((seen == top) & (mass > 0), mass, 0.0)
        same = jnp.where(peak == top, 1.0, 0.0)
        return (
            top,
            count * same + jnp.sum(chosen, -1, keepdims=True),
            total * same + (chosen * keep) @ values,
        )

    def finish(self, carry: Carry, beta: Array) -> Array:
        return safe_divide(carry[2], carry[1])


class Sinkhorn(Kind):
    """Doubly stochastic attention (2110.11773): the plan e^{s_ij + f_i + g_j} w_i w_j with both
    marginals equal to the measure, computed by ott-jax in the log domain.

    out_i = (1/w_i) sum_j plan_ij v_j. `threshold` bounds the marginal error; a run that does not
    reach it within `iterations` returns NaN rather than a wrong field.
    """

    threshold: float = eqx.field(static=True, default=1e-10)
    iterations: int = eqx.field(static=True, default=20_000)
    averages: ClassVar[bool] = True

    def dense(
        self, scores: Array, log_mass: Array, values: Array, beta: Array, keep: Array
    ) -> Array:
        require_ott()
        from ott.geometry import geometry

        def find(theta: tuple[Array, Array]) -> Potentials:
            return self.potentials(geometry.Geometry(cost_matrix=-theta[0], epsilon=1.0), theta[1])

        def marginals(theta: tuple[Array, Array], f: Array, g: Array) -> tuple[Array, Array]:
            plan = jnp.exp(theta[0] + f[:, None] + g)
            return plan.sum(axis=1) - theta[1], plan.sum(axis=0) - theta[1]

        mass = jnp.exp(log_mass[0])
        f, g, converged = implicit_potentials(find, marginals, (scores, mass))
        out = (jnp.exp(scores + f[:, None] + g) * keep) @ values / mass[:, None]
        return jnp.where(converged > 0, out, jnp.nan)

    def potentials(self, geometry: Any, mass: Array) -> Potentials:
        """ott-jax's solution for a geometry of costs -s_ij at temperature 1."""
        require_ott()
        from ott.problems.linear import linear_problem
        from ott.solvers.linear import sinkhorn

        solver = sinkhorn.Sinkhorn(
            threshold=self.threshold, max_iterations=self.iterations, lse_mode=True
        )
        found = solver(linear_problem.LinearProblem(geometry, a=mass, b=mass))
        return Potentials(found.f, found.g, jnp.asarray(found.converged, dtype=mass.dtype))


def require_ott() -> None:
    """Say how to get ott-jax, which an extra installs."""
    require_extra("Sinkhorn attention", "ott", "transport")
