"""The contract between a model, which states a sum over tokens, and a reduction, which evaluates it."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..kinds import Kind
from ..masks import Mask


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

    def keep(self, rows: Int[Array, " r"], columns: Int[Array, " c"]) -> Array:
        """1 where a value counts, 0 where it is the row's own and dropped."""
        if not self.drop_self:
            return jnp.ones(())
        return jnp.where(rows[:, None] == columns[None, :], 0.0, 1.0)

    def log_mass(self, rows: Int[Array, " r"], columns: Int[Array, " c"]) -> Float[Array, "r c"]:
        """log(w_j m_ij) on a block."""
        weights = jnp.broadcast_to(self.log_weights[columns], (rows.size, columns.size))
        factor = self.mask.log_factor(rows, columns, self.keys.shape[0])
        return weights if factor is None else weights + factor


class Reduction(eqx.Module):
    """Evaluates a `Problem`."""

    @abc.abstractmethod
    def __call__(self, problem: Problem) -> Float[Array, "rows m"]:
        """The sums of every row."""

    @abc.abstractmethod
    def error_bound(self, problem_size: int) -> float:
        """Relative error of a sum beyond that of Dense, for the health report."""

    @abc.abstractmethod
    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        """Largest temporary array of one evaluation, to refuse what cannot fit."""
