"""Random weights: laws of random matrices, and heads drawn from them once or anew in every layer."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .errors import require
from .runtime import ArrayLike, Number, Scalar, known
from .schedule import Per, Schedule, check_draws, layer_key, switches
from .weights import HeadSchedule, Weights, draw_heads


class Law(eqx.Module):
    """Law of one random matrix."""

    @abc.abstractmethod
    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        """One draw."""


class Scaled(Law):
    """A law with a scale, which is one number."""

    scale: Number = 1.0

    def __check_init__(self) -> None:
        _check_number(f"the scale of {type(self).__name__}", self.scale)


def _check_number(name: str, value: ArrayLike) -> None:
    require(
        np.ndim(value) == 0,  # type: ignore[arg-type]
        f"{name} must be one number, got shape {np.shape(value)}; for a batch of models draw the matrices "  # type: ignore[arg-type]
        "and give them with one axis more in front: Weights(Q=jnp.stack([...]))",
    )


class Ginibre(Scaled):
    """Independent N(0, scale^2) entries."""

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        return self.scale * jr.normal(key, (d, d), dtype=jnp.float64)


class Wigner(Scaled):
    """Symmetric; independent N(0, scale^2) entries on and above the diagonal."""

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        upper = jnp.triu(jr.normal(key, (d, d), dtype=jnp.float64))
        return self.scale * (upper + jnp.triu(upper, 1).T)


class GOE(Scaled):
    """scale (G + G^T)/sqrt 2: off-diagonal variance scale^2, diagonal 2 scale^2; law invariant by O(d)."""

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        g = jr.normal(key, (d, d), dtype=jnp.float64)
        return self.scale * (g + g.T) / jnp.sqrt(2.0)


class PositiveSemidefinite(Scaled):
    """scale G G^T with G of independent N(0, 1) entries."""

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        g = jr.normal(key, (d, d), dtype=jnp.float64)
        return self.scale * (g @ g.T)


class Product(Scaled):
    """scale G1 G2 with independent Gaussian factors: the law of Q^T K for Gaussian Q and K."""

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        first, second = jr.split(key)
        left = jr.normal(first, (d, d), dtype=jnp.float64)
        return self.scale * (left @ jr.normal(second, (d, d), dtype=jnp.float64))


MATRIX_LAWS = {law.__name__: law for law in (Ginibre, Wigner, GOE, PositiveSemidefinite, Product)}


class RandomWeights(HeadSchedule):
    """Independent draws per head, and per layer when `period` is given.

    `per` chooses what a batch shares: "run" (all samples meet the same weights, quenched) or
    "sample" (each has its own). With `period` the weights are drawn anew on [m period, (m+1) period):
    a random deep network is `Layers(step)` with `period=step`. `tied=scale` sets V = scale B instead
    of drawing it (2312.10794, Figure 5 c and d).
    """

    d: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    per: Per = eqx.field(static=True)
    period: float | None = eqx.field(static=True)
    tied: float | None = eqx.field(static=True)
    laws: dict[str, Any]
    key: Array

    @known()
    def __init__(
        self,
        d: int,
        seed: int,
        heads: int = 1,
        Q: Law | None = None,
        K: Law | None = None,
        B: Law | None = None,
        V: Law | ArrayLike | None = None,
        tied: float | None = None,
        period: float | None = None,
        per: Per = "run",
    ):
        require(heads >= 1, f"heads must be at least 1, got {heads}")
        check_draws(period, per)
        require(B is None or (Q is None and K is None), "give either laws of Q and K, or of B")
        require(tied is None or V is None, "V is either drawn or tied to B, not both")
        self.d, self.heads, self.per, self.period, self.tied = d, heads, per, period, tied
        if V is not None and not isinstance(V, Law):
            _check_number("V of random weights", V)
        given = {"Q": Q, "K": K, "B": B, "V": V}
        self.laws = {name: law for name, law in given.items() if law is not None}
        self.key = jr.key(seed)

    def at(self, t: Scalar) -> Weights:
        key = layer_key(self.key, self.period, t)
        drawn = {name: self._draw(key, name, law) for name, law in self.laws.items()}
        if self.tied is not None:
            drawn["V"] = self.tied * self._bilinear(drawn)
        return Weights(**drawn)

    def _draw(self, key: Array, name: str, law: Any) -> Array:
        if not isinstance(law, Law):
            return jnp.asarray(law, dtype=float)
        return draw_heads(key, name, self.heads, lambda k: law.sample(k, self.d))

    def _bilinear(self, drawn: dict[str, Array]) -> Array:
        if "B" in drawn:
            return drawn["B"]
        identity = jnp.broadcast_to(jnp.eye(self.d), (self.heads, self.d, self.d))
        query, key = drawn.get("Q", identity), drawn.get("K", identity)
        return jnp.einsum("hkd,hke->hde", query, key)

    def jumps(self, t1: float) -> list[float]:
        return switches(self.period, t1)

    @property
    def is_fixed(self) -> bool:
        return self.period is None and self.per == "run"

    def for_sample(self, index: Array) -> Schedule:
        if self.per == "run":
            return self
        return eqx.tree_at(lambda s: s.key, self, jr.fold_in(self.key, index))
