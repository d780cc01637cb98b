"""Terms of a velocity field: attention, perceptron, drift, potential. They are added with `+`.

A term is v[mu](t, x): what a point x feels, at depth t, from the measure mu. A new model is a new
value in one slot of a term, or a new term; nothing else in the library changes.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .errors import InputError, require
from .kinds import Kind, Softmax
from .masks import Full, Mask
from .measure import Measure
from .reduce import Dense, Problem, Reduction, Task
from .runtime import ArrayLike, Scalar, as_array, is_traced, known
from .schedule import Quantity, Schedule, as_number, jumps_in, now, values_of
from .space import Sphere
from .weights import Weights, check_dimension, head_count, keys_are_tokens, reach


class Term(eqx.Module):
    """A contribution to the velocity, before projection on the tangent space."""

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
        return Sum((*_parts(self), *_parts(other)))

    def check(self, mu: Measure) -> None:
        """Refuse a measure this term cannot act on."""

    def jumps(self, t1: float) -> list[Any]:
        """Times in (0, t1) where the term is discontinuous: those of its schedules."""
        return jumps_in(self, t1)


def _parts(term: Term) -> tuple[Term, ...]:
    return term.terms if isinstance(term, Sum) else (term,)


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])


class Sum(Term):
    """A sum of terms."""

    terms: tuple[Term, ...]

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return _total([term.field(t, x, mu, reduction) for term in self.terms])

    def tangent_field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return _total([term.tangent_field(t, x, mu, reduction) for term in self.terms])

    def check(self, mu: Measure) -> None:
        for term in self.terms:
            term.check(mu)

    def jumps(self, t1: float) -> list[Any]:
        return [jump for term in self.terms for jump in term.jumps(t1)]


class Attention(Term):
    """sum over heads of sum_j a_ij V x_j, with a_ij made by `kind` from beta <Q x_i, K x_j>.

    2312.10794, eq. (2.3) to (2.7). A vector beta is a batch of models: see `solve`. Where beta changes with
    depth it is `Piecewise(times, numbers)`.
    """

    weights: Schedule
    beta: Quantity
    kind: Kind
    mask: Mask
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"beta": (0,)}

    def __init__(
        self,
        weights: Schedule | None = None,
        beta: ArrayLike | Schedule = 1.0,
        kind: Kind | None = None,
        mask: Mask | None = None,
    ):
        self.weights = Weights() if weights is None else weights
        self.beta = _checked_beta(beta)
        self.kind = Softmax() if kind is None else kind
        self.mask = Full() if mask is None else mask

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return self.carried(t, x, mu, mu.points, reduction)

    def tangent_field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        V = self.weights.at(t).V
        scalar = V is None or V.ndim == 0
        return self.carried(t, x, mu, mu.points, reduction, drop_self=scalar)

    def carried(
        self,
        t: Scalar,
        x: Array,
        mu: Measure,
        carriers: Array,
        reduction: Reduction,
        drop_self: bool = False,
    ) -> Array:
        """The field with values V y_j of other carriers y_j than the tokens that are compared.

        The rescaled frame compares e^{tV} z and carries z. `drop_self` leaves V y_i out of row i.
        """
        weights = self.weights.at(t)
        sums = self.sums(
            t,
            x,
            mu,
            weights.values(carriers),
            reduction,
            drop_self=drop_self,
            tokens_as_values=carriers is mu.points and weights.V is None,
        )
        return jnp.sum(sums, axis=0)

    def sums(
        self,
        t: Scalar,
        x: Float[Array, "m d"],
        mu: Measure,
        values: Float[Array, "heads n v"],
        reduction: Reduction,
        kind: Kind | None = None,
        mask: Mask | None = None,
        drop_self: bool = False,
        tokens_as_values: bool = False,
    ) -> Float[Array, "heads m v"]:
        """The sums over tokens of every head, with any values and, if given, another kind or mask."""
        sphere = isinstance(mu.space, Sphere)
        weights, beta = self.weights.at(t), now(self, t).beta
        kind = self.kind if kind is None else kind
        weights = weights.folded() if sphere and kind.bilinear else weights
        log_weights = jnp.log(mu.weights)

        def head(queries: Array, keys: Array, values: Array) -> Array:
            problem = Problem(
                kind,
                self.mask if mask is None else mask,
                beta,
                queries,
                keys,
                values,
                log_weights,
                drop_self,
                unit_keys=sphere and weights.K is None,
                own_keys=x is mu.points and weights.compares_tokens(),
                own_values=tokens_as_values and weights.K is None,
            )
            return reduction(problem)

        queries, keys = weights.queries(x), weights.keys(mu.points)
        if weights.heads == 1 and values.shape[0] == 1:
            # No vmap over one head: under it, a reduction's choice at run time would run both ways.
            return head(queries[0], keys[0], values[0])[None]
        return jax.vmap(head)(queries, keys, values)

    def matrix(self, t: Scalar, mu: Measure) -> Float[Array, "heads n n"]:
        """The attention weights a_ij of every head (values replaced by the identity)."""
        heads = self.weights.at(t).heads
        identity = jnp.broadcast_to(jnp.eye(mu.n), (heads, mu.n, mu.n))
        return self.sums(t, mu.points, mu, identity, Dense())

    @known()
    def task(self, mu: Measure) -> Task:
        """What a reduction may know of these sums before they are evaluated."""
        betas = jnp.stack(values_of(self.beta))
        samples = int(np.prod(mu.batch_shape, dtype=int)) * np.size(self.beta)
        sphere = isinstance(mu.space, Sphere)
        return Task(
            n=mu.n,
            d=mu.d,
            kind=self.kind,
            mask=self.mask,
            beta=None if is_traced(betas) else float(np.asarray(betas).max()),
            reach=reach(self.weights) if sphere else None,
            unit_keys=sphere and keys_are_tokens(self.weights, mu.d, self.kind.bilinear),
            heads=head_count(self.weights),
            samples=samples,
            precision=mu.points.dtype.name,
        )

    def check(self, mu: Measure) -> None:
        check_dimension(self.weights, mu.d)
        if self.mask.needs_order and not mu.ordered:
            raise InputError(
                f"{type(self.mask).__name__} masks need an order of the tokens, but this measure has "
                "none (ordered=False); use mask=Full() or give tokens in reading order"
            )


@known()
def _checked_beta(beta: ArrayLike | Schedule) -> Any:
    if isinstance(beta, Schedule):
        for value in values_of(beta):
            require(
                np.ndim(value) == 0, f"beta at one time is a number, got shape {np.shape(value)}"
            )
            _checked_beta(value)
        return beta
    try:
        array = as_array(beta)
    except (TypeError, ValueError) as error:
        raise InputError(f"beta must be a number or a vector of them, got {beta!r}") from error
    require(array.size >= 1, "beta is an empty vector; give at least one value")
    require(array.ndim <= 1, f"beta must be a number or a vector of them, got shape {array.shape}")
    if not is_traced(array):
        values = np.asarray(array)
        require(
            bool(np.all(np.isfinite(values) & (values >= 0))),
            f"beta must be finite and >= 0, got {beta}; for repulsion use V=-I (Weights(V=-1.0))",
        )
    return array


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


class Potential(Term):
    """Gradient ascent of an external potential f: R^d -> R, any scalar JAX function, times a strength.

    The strength is a number, or a `Piecewise` of numbers where it changes with depth.
    """

    function: Callable[[Array], Array] = eqx.field(static=True)
    strength: Quantity = eqx.field(converter=as_number, default=1.0)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"strength": (0,)}

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        return now(self, t).strength * jax.vmap(jax.grad(self.function))(x)
