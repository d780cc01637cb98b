"""What a flow increases: the energy A[mu] of a model's terms, and the field grad dA/dmu.

| term | its part of A | grad dA/dmu |
|---|---|---|
| attention, V_h = c_h B_h, B_h symmetric | sum_h c_h E_h | sum_h c_h B_h int f y dmu |
| perceptron of gradient structure | (1/2) int v dmu | its field |
| potential | int f dmu | its field |
| drift M | (1/2) int <x, Mx> dmu | (M + M^T)/2 x |
| anything else | none | none |

E = (1/2beta) iint phi(beta <x,By>), and phi' = f is the weight of a pair: e^{beta s} for SA and USA,
whose other clocks multiply E as they multiply the speed. Whatever A is, dA/dt = int grad(dA/dmu) . v dmu
along v: that is the identity runs are held to. Where every term has a part and attention is not
normalised, v is grad dA/dmu and A can only grow; SA climbs the same E in another metric (see `metric`).
A term without a part (V not a multiple of B, a general perceptron, weights that change with time) is in v
and not in A, so A may fall, and the identity then checks the other terms alone. Terms say their parts
themselves (`Term.rising`, `Term.free_potential`, `Attention.has_pairs`).
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..measure import Measure
from ..observables.base import Observable, Snapshot
from ..observables.energies import energy, scaled_energy
from ..reduce import Reduction
from ..runtime import Scalar
from ..terms import Attention, Term


def external_part(term: Term, x: Float[Array, "m d"]) -> Float[Array, " m"]:
    """The function of the point that a term adds to A; 0 where it adds none."""
    found = term.free_potential(x)
    return jnp.zeros(x.shape[0]) if found is None else found


def pair_energy(term: Attention, t: Scalar, mu: Measure, reduction: Reduction) -> Array:
    """s sum_h c_h E_h summed over the tokens of mu; 0 where the term has no part in A."""
    if not term.has_pairs:
        return jnp.zeros(())
    ratios = term.weights.at(t).tied_ratios(mu.d)
    if term.kind.exponential:
        return jnp.sum(term.lift() * ratios * _shifted_energies(term, mu, reduction))
    clock = term.kind.clock(term.beta)
    return jnp.sum(clock * ratios * head_energies(term, mu, reduction))


def _shifted_energies(term: Attention, mu: Measure, reduction: Reduction) -> Float[Array, " heads"]:
    """e^{-beta} E_h, which no beta takes out of the range of doubles."""
    beta = term.beta
    heads = term.one_per_head(mu.d)
    flat = [dataclasses.replace(head, beta=jnp.zeros_like(beta)) for head in heads]

    def read(thing: Observable, head: Attention) -> Array:
        return thing(Snapshot(jnp.zeros(()), mu, Dynamics(None, head), reduction))

    shifted = jnp.stack([read(scaled_energy, head) for head in heads])
    limit = jnp.stack([read(energy, head) for head in flat])
    return jnp.where(beta == 0, limit, shifted / (2.0 * jnp.where(beta == 0, 1.0, beta)))


def head_energies(term: Attention, mu: Measure, reduction: Reduction) -> Float[Array, " heads"]:
    """E_h = (1/2beta) sum_ij w_i w_j phi(beta <x_i, B_h x_j>) of every head (constant weights)."""
    return jnp.stack(
        [
            energy(Snapshot(jnp.zeros(()), mu, Dynamics(None, head), reduction))
            for head in term.one_per_head(mu.d)
        ]
    )
