"""Observables of the attention matrix: itself, the entropy of its rows, its effective rank.

They read the model's first attention term (or the one inside its common noise), head by head.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float

from ..errors import require
from .base import Observable, Snapshot
from .geometry import spectrum_rank
from .reading import compared, first_attention
from .registry import register


def _attention_matrix(snapshot: Snapshot) -> Float[Array, "heads n n"]:
    """a_ij with x_i' = P sum_j a_ij V x_j, per head; masses and masks included. O(heads n^2)."""
    attention = first_attention(snapshot.model, "attention_matrix")
    return attention.matrix(snapshot.t, compared(snapshot))


def _attention_entropy(snapshot: Snapshot) -> Float[Array, " heads"]:
    """sum_i w_i H_i, H_i = -sum_j a_ij log a_ij: log n for a flat row, 0 for one-hot. O(n^2).

    A token that sees nobody (the first one of a causal mask without self term) counts 0. Needs
    weights that sum to one: refuses unnormalised, kernel, sigmoid and linear attention.
    """
    kind = first_attention(snapshot.model, "attention_entropy").kind
    require(
        kind.averages,
        f"attention_entropy needs rows that sum to one; {type(kind).__name__} attention does not "
        "normalise them; use attention_rank",
    )
    rows = jnp.sum(entr(_attention_matrix(snapshot)), axis=-1)
    return rows @ snapshot.measure.weights


def _attention_rank(snapshot: Snapshot) -> Float[Array, " heads"]:
    """exp(-sum_k p_k log p_k), p the singular values of (a_ij) divided by their sum. O(heads n^3).

    Between 1 (all rows proportional: every token receives the same) and n.
    """
    return spectrum_rank(jnp.linalg.svd(_attention_matrix(snapshot), compute_uv=False))


attention_matrix = register(
    Observable(
        "attention_matrix",
        "1",
        _attention_matrix,
        axes=("head", "token", "other_token"),
        says="Weight each token gives to each other token, per head",
    )
)
attention_entropy = register(
    Observable(
        "attention_entropy",
        "nats",
        _attention_entropy,
        axes=("head",),
        says="Mean Shannon entropy of the attention rows, per head",
    )
)
attention_rank = register(
    Observable(
        "attention_rank",
        "1",
        _attention_rank,
        axes=("head",),
        says="Exponential of the entropy of the attention matrix's singular values, per head",
    )
)
