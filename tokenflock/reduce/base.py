"""The contract between a model, which states a sum over tokens, and a reduction, which evaluates it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from ..kinds import Kind
from ..masks import Mask
from ..runtime import is_traced


class Problem(eqx.Module):
    """out_i = the `kind`'s sum over j of values v_j weighed by scores beta <q_i, k_j>.

    One head. Rows are the evaluation points, columns the tokens of the measure with masses e^log_weights.
    """

    kind: Kind
    mask: Mask
    beta: Float[Array, ""]
    queries: Float[Array, "rows k"]
    keys: Float[Array, "columns k"]
    values: Float[Array, "columns m"]
    log_weights: Float[Array, " columns"]
    # Leave v_i out of the sum of row i (not out of its normalisation): see `Fold.absorb`.
    drop_self: bool = eqx.field(static=True, default=False)
    # Facts that traced arrays cannot show: |k_j| = 1; row i has the query q_i = k_i; v_j = k_j.
    unit_keys: bool = eqx.field(static=True, default=False)
    own_keys: bool = eqx.field(static=True, default=False)
    own_values: bool = eqx.field(static=True, default=False)

    def keep(self, rows: Int[Array, " r"], columns: Int[Array, " c"]) -> Array:
        """1 where a value counts, 0 where it is the row's own and dropped."""
        if not self.drop_self:
            return jnp.ones((), self.values.dtype)
        return jnp.where(rows[:, None] == columns[None, :], 0.0, 1.0).astype(self.values.dtype)

    def log_mass(self, rows: Int[Array, " r"], columns: Int[Array, " c"]) -> Float[Array, "r c"]:
        """log(w_j m_ij) on a block."""
        return self.block_log_mass(rows, columns, self.log_weights[columns])

    def block_log_mass(
        self,
        rows: Int[Array, " r"],
        columns: Int[Array, " c"],
        log_weights: Float[Array, " c"],
        n: int | None = None,
    ) -> Float[Array, "r c"]:
        """log(w_j m_ij) on a block whose log w_j are at hand; n where these keys are a part of all."""
        weights = jnp.broadcast_to(log_weights, (rows.size, columns.size))
        factor = self.mask.log_factor(rows, columns, self.keys.shape[0] if n is None else n)
        return weights if factor is None else weights + factor.astype(weights.dtype)

    def cast(self, dtype: str) -> Problem:
        """The same problem with its numbers in another precision."""
        return jax.tree.map(
            lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf,
            self,
        )

    def task(self) -> Task:
        """What is known of this problem without looking at traced numbers."""
        reach = 1.0 if self.own_keys and self.unit_keys else None
        if reach is None and not is_traced(self.queries, self.keys):
            reach = float(_largest_norm(self.queries) * _largest_norm(self.keys))
        return Task(
            n=self.keys.shape[0],
            d=self.keys.shape[1],
            kind=self.kind,
            mask=self.mask,
            beta=None if is_traced(self.beta) else float(self.beta),
            reach=reach,
            unit_keys=self.unit_keys,
            precision=self.queries.dtype.name,
        )


def _largest_norm(vectors: Float[Array, "n k"]) -> Array:
    return jnp.max(jnp.linalg.norm(vectors, axis=-1))


@dataclasses.dataclass(frozen=True)
class Task:
    """What is known of sums before any is evaluated: what a reduction may choose by."""

    n: int
    d: int
    kind: Kind
    mask: Mask
    beta: float | None  # the largest one; None where it is traced
    reach: float | None  # bound of |q_i| |k_j|; None where nothing is known
    unit_keys: bool
    heads: int = 1
    samples: int = 1
    precision: str = "float64"
    platform: str = dataclasses.field(default_factory=jax.default_backend)

    def largest_score(self) -> float | None:
        """Bound of beta <q_i, k_j>, where it is known."""
        return None if self.beta is None or self.reach is None else self.beta * self.reach


class Reduction(eqx.Module):
    """Evaluates a `Problem`."""

    # Whether its sums are split over devices: such a program is compiled as a whole, with no primitive of
    # ours around it, and has reverse derivatives only.
    spans_devices: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, problem: Problem) -> Float[Array, "rows m"]:
        """The sums of every row."""

    @abc.abstractmethod
    def error_bound(self, problem_size: int) -> float:
        """Relative error of a sum beyond that of Dense, for the health report."""

    @abc.abstractmethod
    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        """Largest temporary array of one evaluation, to refuse what cannot fit."""

    def settle(self, tasks: Sequence[Task]) -> Reduction:
        """This reduction with the choices made that compiled code cannot make; refuses what it cannot do.

        Called once per solve with every attention of the model, before anything is traced.
        """
        return self


def largest_score(tasks: Sequence[Task]) -> float | None:
    """Bound of beta <q, k> over all tasks; None where one is unknown."""
    scores = [task.largest_score() for task in tasks]
    known = [score for score in scores if score is not None]
    return max(known) if known and len(known) == len(scores) else None


def in_blocks(
    array: Shaped[Array, "n ..."], size: int, fill: float = 0.0
) -> Shaped[Array, "blocks size ..."]:
    """The leading axis cut into blocks of `size`, the last one filled up."""
    missing = -array.shape[0] % size
    padded = jnp.pad(array, ((0, missing), *[(0, 0)] * (array.ndim - 1)), constant_values=fill)
    return padded.reshape(-1, size, *array.shape[1:])


def machine_epsilon(dtype: np.typing.DTypeLike) -> float:
    """Spacing of the numbers at 1."""
    return float(jnp.finfo(dtype).eps)
