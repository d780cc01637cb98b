"""Weight matrices of attention heads, and schedules that change them with depth.

Heads are an array axis: Q, K have shape (H, k, d), B = Q^T K and V have shape (H, d, d). `None` means
the identity and a number means that multiple of it, so that SA needs no dimension. A schedule is
anything with `.at(t) -> Weights`, `.jumps(t1)` and `.for_sample(index)`; a `Weights` is the constant one, and
`Piecewise(times, [Weights, ...])` switches between some.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeGuard

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .errors import InputError, require
from .old_names import refusing
from .runtime import ArrayLike, Scalar, as_array, is_traced, known
from .schedule import Piecewise, Schedule

# V = c B and B = B^T are asked to this relative accuracy: matrix products of exact data reach it.
TIED_TOLERANCE = 1e-10


class HeadSchedule(Schedule):
    """Weights of attention heads as a function of time."""

    @abc.abstractmethod
    def at(self, t: Scalar) -> Weights:
        """The weights in force at time t."""


def shapes_of(schedule: Schedule) -> dict[str, tuple[int, ...]]:
    """Shapes of the matrices that are not the identity, for checks against d."""
    if isinstance(schedule, Weights):
        matrices = schedule.matrices()
    else:
        matrices = jax.eval_shape(lambda: schedule.at(0.0).matrices())
    return {name: leaf.shape[-3:] for name, leaf in matrices.items()}


def head_count(schedule: Schedule) -> int:
    """Number of heads H."""
    return next((shape[0] for shape in shapes_of(schedule).values()), 1)


@known()
def reach(schedule: Schedule) -> float | None:
    """Largest <Q x, K y> of unit vectors at any time; None where it is unknown (redrawn, traced)."""
    if is_traced(schedule):
        return None
    if isinstance(schedule, Piecewise):
        return max(piece.reach() for piece in schedule.pieces)
    return schedule.at(0.0).reach() if schedule.is_fixed else None


def keys_are_tokens(schedule: Schedule, d: int, folds: bool) -> bool:
    """Whether the tokens themselves are the keys, after `Weights.folded` where it is allowed."""
    shape = shapes_of(schedule).get("K")
    return shape is None or (folds and shape[-2] >= d)


class Weights(HeadSchedule):
    """Constant weights: Q, K, V or B = Q^T K, V.

    `V` enters as the value V x_j, `B` as the score <x_i, B x_j>. Heads are summed with no 1/H. One axis more
    in front, (k, H, d, d), or a vector in the place of the number V, is a batch of k models: see `solve`.
    """

    Q: Float[Array, "heads k d"] | None = None
    K: Float[Array, "heads k d"] | None = None
    V: Float[Array, "heads d d"] | Float[Array, ""] | None = None
    B: Float[Array, "heads d d"] | None = None
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"Q": (3,), "K": (3,), "B": (3,), "V": (0, 3)}

    @known()
    def __init__(
        self,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        B: ArrayLike | None = None,
    ):
        require(
            B is None or (Q is None and K is None),
            "give either Q and K, or B = Q^T K, not both",
        )
        self.Q, self.K, self.B = _matrix("Q", Q), _matrix("K", K), _matrix("B", B)
        self.V = as_array(V) if _is_number(V) else _matrix("V", V)
        for name, value in (("Q", self.Q), ("K", self.K), ("V", self.V), ("B", self.B)):
            finite = value is None or is_traced(value) or bool(jnp.all(jnp.isfinite(value)))
            require(finite, f"{name} contains NaN or infinity")
        heads = {name: m.shape[-3] for name, m in self.matrices().items()}
        require(
            len(set(heads.values())) <= 1,
            f"Q, K, V must have the same number of heads, got {heads}",
        )

    @staticmethod
    @known()
    def gaussian(d: int, seed: int, heads: int = 1, scale: float | None = None) -> Weights:
        """Q, K, V with independent N(0, scale^2) entries; default scale d^{-1/2}."""
        require(heads >= 1, f"heads must be at least 1, got {heads}")
        size = d**-0.5 if scale is None else scale

        def entries(key: Array) -> Array:
            return size * jr.normal(key, (d, d), dtype=jnp.float64)

        return Weights(**{name: draw_heads(jr.key(seed), name, heads, entries) for name in "QKV"})

    def matrices(self) -> dict[str, Array]:
        """The entries that are matrices (not the identity, not a number)."""
        named = {"Q": self.Q, "K": self.K, "V": self.V, "B": self.B}
        return {name: m for name, m in named.items() if m is not None and m.ndim >= 3}

    @property
    def heads(self) -> int:
        """Number of heads H."""
        return next((m.shape[-3] for m in self.matrices().values()), 1)

    def at(self, t: Scalar) -> Weights:
        return self

    @property
    def is_fixed(self) -> bool:
        return True

    def folded(self) -> Weights:
        """The same scores with K moved to the other side, B = Q^T K, unless that makes heads wider."""
        if self.K is None or self.K.shape[-2] < self.K.shape[-1]:
            return self
        B = self.K if self.Q is None else jnp.einsum("hkd,hke->hde", self.Q, self.K)
        return Weights(V=self.V, B=B)

    def compares_tokens(self) -> bool:
        """Whether queries and keys are the tokens themselves: Q = K = I."""
        return self.Q is None and self.K is None and self.B is None

    @known()
    def reach(self) -> float:
        """Largest <Q x, K y> of unit vectors."""
        if self.B is not None:
            return float(jnp.max(jnp.linalg.norm(self.B, ord=2, axis=(-2, -1))))
        norms = [
            jnp.linalg.norm(m, ord=2, axis=(-2, -1)) for m in (self.Q, self.K) if m is not None
        ]
        return float(jnp.max(functools.reduce(jnp.multiply, norms))) if norms else 1.0

    def queries(self, x: Float[Array, "n d"]) -> Float[Array, "heads n k"]:
        """Q x_i, or B^T x_i when B is given, so that a score is <query_i, key_j>."""
        if self.B is not None:
            return jnp.einsum("nd,hde->hne", x, self.B)
        return _apply(self.Q, x, self.heads)

    def keys(self, x: Float[Array, "n d"]) -> Float[Array, "heads n k"]:
        """K x_j."""
        return _apply(self.K, x, self.heads)

    def values(self, x: Float[Array, "n d"]) -> Float[Array, "heads n d"]:
        """V x_j."""
        return _apply(self.V, x, self.heads)

    def bilinear(self, d: int) -> Float[Array, "heads d d"]:
        """B = Q^T K of every head, given or not."""
        if self.B is not None:
            return self.B
        identity = jnp.broadcast_to(jnp.eye(d), (self.heads, d, d))
        query = identity if self.Q is None else self.Q
        return jnp.einsum("hkd,hke->hde", query, identity if self.K is None else self.K)

    def value_matrices(self, d: int) -> Float[Array, "heads d d"]:
        """V of every head as a matrix, also where it is a number or left out."""
        V = jnp.ones(()) if self.V is None else self.V
        return jnp.broadcast_to(V * jnp.eye(d) if V.ndim == 0 else V, (self.heads, d, d))

    def tied_ratios(self, d: int) -> Float[Array, " heads"]:
        """c_h of V_h = c_h B_h with B_h = Q_h^T K_h symmetric, and 0 where it is not so."""
        if not self.matrices():
            return jnp.ones(1) if self.V is None else jnp.reshape(self.V, 1)
        B, V = self.bilinear(d), self.value_matrices(d)
        ratio = jnp.sum(V * B, axis=(-2, -1)) / jnp.sum(B * B, axis=(-2, -1))
        off = jnp.max(jnp.abs(V - ratio[:, None, None] * B), axis=(-2, -1))
        skew = jnp.max(jnp.abs(B - jnp.swapaxes(B, -1, -2)), axis=(-2, -1))
        tied = (off <= TIED_TOLERANCE * jnp.max(jnp.abs(V), axis=(-2, -1))) & (
            skew <= TIED_TOLERANCE * jnp.max(jnp.abs(B), axis=(-2, -1))
        )
        return jnp.where(tied, ratio, 0.0)


def draw_heads(key: Array, name: str, heads: int, draw: Callable[[Array], Array]) -> Array:
    """The matrix of this name, drawn independently for every head."""
    return jax.vmap(draw)(jr.split(jr.fold_in(key, ord(name)), heads))


def _is_number(value: object) -> TypeGuard[float]:
    """A number, or a vector of them: a batch."""
    return value is not None and np.ndim(value) <= 1  # type: ignore[arg-type]


def _matrix(name: str, value: ArrayLike | None) -> Array | None:
    if value is None:
        return None
    array = as_array(value)
    if array.ndim == 2:
        array = array[None]
    require(
        array.ndim in (3, 4),
        f"{name} must be one matrix (rows, d) or one per head (H, rows, d), and for a batch of "
        f"models have one axis more in front, got {array.shape}",
    )
    if name in ("V", "B"):
        require(
            array.shape[-1] == array.shape[-2],
            f"{name} must be square, got {array.shape[-2:]}; low-rank heads go into Q and K",
        )
    return array


def _apply(matrix: Array | None, x: Array, heads: int) -> Array:
    if matrix is None:
        return jnp.broadcast_to(x, (heads, *x.shape))
    if matrix.ndim == 0:
        return jnp.broadcast_to(matrix * x, (heads, *x.shape))
    return jnp.einsum("nd,hkd->hnk", x, matrix)


def check_dimension(schedule: Schedule, d: int) -> None:
    """Refuse matrices that do not act on R^d."""
    shapes = shapes_of(schedule)
    for name, shape in shapes.items():
        if shape[-1] != d:
            raise InputError(
                f"{name} has shape {shape[1:]} but the tokens have d={d}: its last axis must be {d}"
            )
    rows = {name: shapes[name][1] if name in shapes else d for name in ("Q", "K")}
    if rows["Q"] != rows["K"]:
        raise InputError(f"Q and K must have the same number of rows, got {rows}")


# A type checker sees the names that there are.
if not TYPE_CHECKING:
    __getattr__ = refusing(__name__)
