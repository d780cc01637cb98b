"""Interaction energies, and their rate of change along any model.

With s_ij = <x_i, B x_j> (B = Q^T K, the identity by default) and masses w_i, an attention whose
weight of token j is f(beta s_ij) has the energy

    E = (1/(2 beta)) sum_ij w_i w_j phi(beta s_ij),   phi' = f,

because then dE/dx_i = w_i sum_j w_j f(beta s_ij) B x_j when B is symmetric. f = exp gives the
energy of SA and USA (2312.10794, eq. 3.5), Kernel(phi) at beta = 1 gives
(1/2) sum_ij w_i w_j phi(<x_i, x_j>).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import InputError, require
from ..kinds import Kind, Unnormalised
from ..kinds.base import PairPotential
from ..masks import Full
from ..measure import Measure
from ..terms import Attention
from .base import Observable, Snapshot
from .reading import compared, velocity, weighted_sum
from .registry import register


def _pair_means(
    attention: Attention, kind: Kind, mu: Measure, snapshot: Snapshot
) -> Float[Array, "heads n"]:
    """sum_j w_j f(beta s_ij) for the weight f of `kind`, by the run's own reduction."""
    ones = jnp.ones((attention.weights.at(snapshot.t).heads, mu.n, 1))
    sums = attention.sums(
        snapshot.t, mu.points, mu, ones, snapshot.reduction, kind=kind, mask=Full()
    )
    return sums[..., 0]


def shifted_partition(attention: Attention, mu: Measure, snapshot: Snapshot) -> Array:
    """sum_j w_j e^{beta (s_ij - 1)}, per head and token: e^{-beta} Zbar_i."""
    return _pair_means(attention, Unnormalised("metastability"), mu, snapshot)


def _mean_score(attention: Attention, t: Array, mu: Measure) -> Float[Array, ""]:
    """sum_h sum_ij w_i w_j s_ij, in O(n)."""
    weights = attention.weights.at(t)
    query = jnp.einsum("n,hnk->hk", mu.weights, weights.queries(mu.points))
    key = jnp.einsum("n,hnk->hk", mu.weights, weights.keys(mu.points))
    return jnp.sum(query * key)


def _interaction(attention: Attention, mu: Measure, snapshot: Snapshot) -> Float[Array, ""]:
    beta, kind = attention.beta, attention.kind
    if kind.exponential:
        partition = shifted_partition(attention, mu, snapshot)
        double, slope = jnp.exp(beta) * jnp.sum(partition @ mu.weights), jnp.ones(())
    else:
        double = jnp.sum(_pair_means(attention, PairPotential(kind), mu, snapshot) @ mu.weights)
        slope = kind.weight(jnp.zeros(()), beta)
    # (phi(beta s) - phi(0))/(2 beta) -> phi'(0) s/2: the constant phi(0)/(2 beta) is dropped at 0.
    limit = slope * _mean_score(attention, snapshot.t, mu) / 2.0
    return jnp.where(beta == 0, limit, double / (2.0 * jnp.where(beta == 0, 1.0, beta)))


def _external(snapshot: Snapshot, mu: Measure) -> Float[Array, ""]:
    """sum_i w_i f(x_i) of terms grad f: potentials, and f = v/2 of gradient-structured perceptrons."""
    found = [term.potential(snapshot.t, mu.points) for term in snapshot.model.parts()]
    return sum((weighted_sum(mu, f) for f in found if f is not None), jnp.zeros(()))


def interacting(snapshot: Snapshot) -> Attention:
    """The attention term whose energy is read: the model's first."""
    terms = snapshot.model.attentions()
    if not terms:
        raise InputError(
            f"an interaction energy needs an attention term, {snapshot.model.label} has none"
        )
    return terms[0]


def _energy(snapshot: Snapshot) -> Float[Array, ""]:
    """E = (1/(2 beta)) sum_ij w_i w_j e^{beta <x_i, B x_j>} + (1/2) sum_i w_i v(x_i).

    2312.10794 eq. (3.5); the potential v of a gradient-structured perceptron, 2601.21366; other
    kinds as in the head of this file. Only the first attention term enters, with its beta and the
    sum of its heads; masks, V and terms without a potential (a general perceptron, a drift) do not.
    At beta = 0 the value is the Kuramoto energy (1/2) sum_ij w_i w_j <x_i, x_j>: the limit of
    E - 1/(2 beta), so E jumps there. O(n^2), or what the reduction costs. Overflows to inf for
    beta > 700: use `scaled_energy`.
    """
    mu = compared(snapshot)
    return _interaction(interacting(snapshot), mu, snapshot) + _external(snapshot, mu)


def _scaled_energy(snapshot: Snapshot) -> Float[Array, ""]:
    """Ehat = 2 beta e^{-beta} E = sum_ij w_i w_j e^{beta (<x_i, B x_j> - 1)} (2410.06833).

    In (0, 1] on the sphere for B = I and one head: sum_q p_q^2 at clusters of masses p_q far apart,
    1 at a single cluster (the paper's display has another prefactor, whose maximum tends to 0).
    A perceptron's potential enters as beta e^{-beta} sum_i w_i v(x_i). Needs an e^{beta s} kernel.
    """
    mu, attention = compared(snapshot), interacting(snapshot)
    require(
        attention.kind.exponential,
        f"scaled_energy needs softmax or unnormalised attention, got {attention.kind.name}; use energy",
    )
    pairs = jnp.sum(shifted_partition(attention, mu, snapshot) @ mu.weights)
    return pairs + 2.0 * attention.beta * jnp.exp(-attention.beta) * _external(snapshot, mu)


def _energy_rate(snapshot: Snapshot) -> Float[Array, ""]:
    """dE/dt along the model's drift: the derivative of E(t, X) in the direction (1, dX/dt).

    Always valid (any mask, weights, terms, normalisation); with noise it is the drift's part only.
    Twice the cost of the energy, plus one velocity.
    """
    mu = snapshot.measure

    def along(t: Array, points: Array) -> Array:
        moved = dataclasses.replace(snapshot, t=t, here=mu.at(points, mu.radii))
        return _energy(moved)

    t = jnp.asarray(snapshot.t, dtype=float)
    here, direction = (t, mu.points), (jnp.ones_like(t), velocity(snapshot))
    return jax.jvp(along, here, direction)[1]


energy = register(
    Observable(
        "energy",
        "1",
        _energy,
        says="Interaction energy of the tokens, with the perceptron's potential",
    )
)
scaled_energy = register(
    Observable(
        "scaled_energy",
        "1",
        _scaled_energy,
        says="Interaction energy 2 beta e^(-beta) E, at most 1 when all tokens agree",
    )
)
energy_rate = register(
    Observable(
        "energy_rate", "1/time", _energy_rate, says="Rate of change of the energy along the drift"
    )
)
