"""Attention: what a token feels from the others, by kind, mask and weights."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import InputError, require
from ..kinds import Kind, Softmax, Unnormalised
from ..kinds.gaussian import Affine, Gaussian, Head
from ..masks import Full, Mask
from ..measure import Measure
from ..reduce import Dense, Problem, Reduction, Task
from ..runtime import ArrayLike, Scalar, as_array, is_traced, known
from ..schedule import Quantity, Schedule, now, values_of
from ..space import Sphere
from ..weights import Weights, check_dimension, head_count, keys_are_tokens, reach, shapes_of
from .base import Term

# e^600 is far from the end of the range of doubles, e^710 beyond it.
LARGEST_LIFT = 600.0


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
    interacts: ClassVar[bool] = True

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

    def attention(self) -> Attention:
        return self

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
        self.kind.check_mask(self.mask)
        if self.mask.needs_order and not mu.ordered:
            raise InputError(
                f"{type(self.mask).__name__} masks need an order of the tokens, but this measure has "
                "none (ordered=False); use mask=Full() or give tokens in reading order"
            )

    # --- the energy -------------------------------------------------------------------------------

    @property
    def has_pairs(self) -> bool:
        """Whether it may have a pair energy; matrices are compared by `Weights.tied_ratios`."""
        return self.kind.has_energy and self.weights.is_fixed and self.mask.sees_all

    @property
    def is_plain(self) -> bool:
        """Whether the field is the gradient of a function of Z: no matrices, no mask, e^{beta<x,y>}."""
        plain = self.weights.is_fixed and not shapes_of(self.weights)
        return plain and self.mask.sees_all and self.kind.exponential

    def rising(self, d: int) -> Term | None:
        """sum_h s c_h B_h int f(beta <x, B_h y>) y dmu, for V_h = c_h B_h with B_h symmetric."""
        if not self.has_pairs:
            return None
        kind = Unnormalised("metastability") if self.kind.exponential else self.kind
        # Known numbers at once, inside compiled code too: terms check what they are given.
        with known():
            weights = self.weights.at(0.0)
            pull = (self.lift() if self.kind.exponential else 1.0) * weights.tied_ratios(d)
            if not weights.matrices():
                return Attention(Weights(V=pull[0]), self.beta, kind)
            B = weights.bilinear(d)
            return Attention(Weights(B=B, V=pull[:, None, None] * B), self.beta, kind)

    def lift(self) -> Array:
        """s e^beta, s the clock of the kind: what e^{-beta} E is multiplied with in the free energy.

        SA climbs any multiple of E: beyond beta = 600, where E leaves the range of doubles, it is counted in
        units of e^beta. Unnormalised attention has its own clock, and a field that leaves the range with it.
        """
        if not self.kind.averages:
            return self.kind.speed(self.beta)
        return jnp.exp(jnp.where(self.beta > LARGEST_LIFT, 0.0, self.beta))

    def one_per_head(self, d: int) -> list[Attention]:
        """One attention per head, with the scores of that head."""
        require(
            self.weights.is_fixed,
            "the energy of a density is that of constant weights, these change with depth; leave it out of "
            "save, or hold the weights fixed",
        )
        with known():
            weights = self.weights.at(0.0)
            if not weights.matrices():
                return [Attention(None, self.beta, self.kind)]
            return [Attention(Weights(B=B), self.beta, self.kind) for B in weights.bilinear(d)]

    def opposite(self) -> Attention:
        require(self.weights.is_fixed, "attention with weights that change has no fixed opposite")
        weights = self.weights.at(0.0)
        V = -1.0 if weights.V is None else -weights.V
        turned = Weights(Q=weights.Q, K=weights.K, B=weights.B, V=V)
        return Attention(turned, self.beta, self.kind, self.mask)

    # --- Gaussian measures ------------------------------------------------------------------------

    def check_gaussian(self, d: int) -> None:
        check_dimension(self.weights, d)
        require(self.mask.sees_all, "a Gaussian measure has no masks; use mask=Full()")
        require(
            self.kind.keeps_gaussians,
            f"{self.kind.name} attention leaves the Gaussian family: its field at a Gaussian is not affine; "
            "use Softmax, L2, Sinkhorn or Linear, or tokens",
        )

    def gaussian_heads(self, t: Scalar, d: int) -> list[Head]:
        """The heads in force at time t; a given B = Q^T K enters, as in the sums, as queries B^T x."""
        weights = self.weights.at(t)
        count, identity = weights.heads, jnp.eye(d)

        def matrix(given: Array | None, head: int) -> Array:
            if given is None:
                return identity
            return given * identity if given.ndim == 0 else given[head]

        queries = weights.Q if weights.B is None else jnp.swapaxes(weights.B, -1, -2)
        return [
            Head(matrix(queries, h), matrix(weights.K, h), matrix(weights.V, h), self.beta)
            for h in range(count)
        ]

    def gaussian_field(self, t: Scalar, mu: Gaussian) -> Affine:
        """The sum over heads of the kind's field."""
        first, *others = (
            self.kind.gaussian_field(head, mu) for head in self.gaussian_heads(t, mu.mean.size)
        )
        return sum(others, first)

    def gaussian_virial(self, t: Scalar, mu: Gaussian, scaled: Gaussian) -> Array:
        """<x, V y> averaged over x and the y that attention draws there, without slopes of the field."""
        parts = [
            jnp.trace(head.V @ self.kind.gaussian_moment(head, mu, scaled))
            for head in self.gaussian_heads(t, mu.mean.size)
        ]
        return sum(parts[1:], parts[0])


@known()
def _checked_beta(beta: ArrayLike | Schedule) -> Quantity:
    if isinstance(beta, Schedule):
        for value in values_of(beta):
            require(
                np.ndim(value) == 0,
                f"beta at one time is a number, got shape {np.shape(value)}; for several schedules use "
                "jax.vmap over a function that makes the model and solves it",
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
