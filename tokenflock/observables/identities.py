"""Dissipation identities: dE/dt of a gradient flow as a weighted sum of squared speeds."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import require
from ..runtime import is_traced
from ..terms import Attention
from ..weights import TIED_TOLERANCE, Weights
from .base import Observable, Snapshot
from .energies import interacting, shifted_partition
from .reading import velocity, weighted_sum
from .registry import register


def _dissipation(snapshot: Snapshot) -> Float[Array, ""]:
    """dE/dt by the identity of a gradient flow, for V = c B with B = Q^T K symmetric.

    dE/dt = (1/c) sum_i w_i g_i |x_i'|^2 with

    | attention | g_i | source |
    |---|---|---|
    | softmax (one head) | sum_k w_k e^{beta s_ik} | 2312.10794, eq. (3.6) |
    | unnormalised, perspective | 1 | 2312.10794, eq. (3.11) |
    | unnormalised, metastability | e^beta: a clock e^beta times slower | 2410.06833 |
    | unnormalised, kinetic | 1/beta: a clock beta times faster | 2605.09213 |
    | kernel, linear, sigmoid | 1 | 2405.18273 |

    The sign is that of c: V = -I flips it. Needs a full mask, post-LN or R^d, no other term and no
    noise; refuses otherwise (use `energy_rate`). Inside compiled code matrices cannot be inspected:
    V that is not a multiple of a symmetric B then gives NaN.
    """
    mu, attention = snapshot.measure, _gradient_attention(snapshot)
    ratio = _tied_ratio(attention.weights.at(snapshot.t), mu.d)
    squares = jnp.sum(velocity(snapshot) ** 2, axis=-1)
    total = weighted_sum(mu, _metric(attention, snapshot) * squares)
    # c = 0 moves nothing, so its rate is 0; NaN (not tied) is kept.
    return jnp.where(ratio == 0, 0.0, total / jnp.where(ratio == 0, 1.0, ratio))


def _metric(attention: Attention, snapshot: Snapshot) -> Float[Array, " n"] | Float[Array, ""]:
    """g_i with g_i x_i' = c times (1/w_i) grad_i E."""
    beta, kind = attention.beta, attention.kind
    if kind.averages:
        return jnp.exp(beta) * shifted_partition(attention, snapshot.measure, snapshot)[0]
    clock = kind.clock(beta)
    # A clock that stands still moves nothing.
    return jnp.where(clock == 0, 0.0, 1.0 / jnp.where(clock == 0, 1.0, clock))


def _gradient_attention(snapshot: Snapshot) -> Attention:
    """The only term of a gradient flow, or a sentence why there is no identity."""
    model, attention = snapshot.model, interacting(snapshot)
    kind = attention.kind
    reasons = {
        # The metric of averages is the partition function of an exponential.
        f"{kind.name} attention": not kind.has_energy or (kind.averages and not kind.exponential),
        "a model with further terms": len(model.parts()) > 1,
        f"the mask {type(attention.mask).__name__}": not attention.mask.sees_all,
        "noise": model.noise is not None,
        "this frame": not model.frame.is_original,
        f"the scheme {type(model.normalisation).__name__}": not model.scheme().is_plain,
        "softmax with several heads": kind.averages and attention.weights.at(snapshot.t).heads > 1,
    }
    for what, applies in reasons.items():
        require(
            not applies, f"no dissipation identity is known for {what}; use energy_rate instead"
        )
    return attention


def _tied_ratio(weights: Weights, d: int) -> Float[Array, ""]:
    """c of V = c B with B symmetric; else InputError, or NaN inside compiled code."""
    if not weights.matrices():
        return jnp.ones(()) if weights.V is None else weights.V
    B, V = weights.bilinear(d), weights.value_matrices(d)
    ratio = jnp.sum(V * B) / jnp.sum(B * B)
    error = jnp.max(jnp.abs(V - ratio * B)) / jnp.maximum(jnp.max(jnp.abs(V)), 1e-300)
    skew = jnp.max(jnp.abs(B - jnp.swapaxes(B, -1, -2))) / jnp.max(jnp.abs(B))
    tied = jnp.maximum(error, skew) <= TIED_TOLERANCE
    if not is_traced(tied):
        require(
            bool(tied),
            "the dissipation identity needs V = c Q^T K with Q^T K symmetric (here V differs by "
            f"{float(error):.2g}, the asymmetry is {float(skew):.2g}); use energy_rate instead",
        )
    return jnp.where(tied, ratio, jnp.nan)


dissipation = register(
    Observable(
        "dissipation",
        "1/time",
        _dissipation,
        says="Rate of change of the energy by the dissipation identity of a gradient flow",
    )
)
