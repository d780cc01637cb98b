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
and not in A, so A may fall, and the identity then checks the other terms alone.
"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import require
from ..kinds import Kernel, Linear, Sigmoid, Unnormalised
from ..masks import Full
from ..measure import Measure
from ..observables.base import Observable, Snapshot
from ..observables.energies import energy, is_exponential, scaled_energy
from ..observables.identities import TIED_TOLERANCE
from ..perceptron import Perceptron
from ..reduce import Reduction
from ..runtime import Scalar
from ..terms import Attention, Drift, Potential, Term
from ..weights import Weights

# e^600 is far from the end of the range of doubles, e^710 beyond it.
LARGEST_LIFT = 600.0


def rising(term: Term, d: int) -> Term | None:
    """The term whose field is grad dA/dmu of this one's part of A; None where it has none."""
    if isinstance(term, Attention):
        return _rising_attention(term, d) if has_pairs(term) else None
    if isinstance(term, Drift):
        return term if term.matrix.ndim == 0 else Drift((term.matrix + term.matrix.T) / 2.0)
    return term if has_potential(term) else None


def has_potential(term: Term) -> bool:
    """Whether the term is the gradient of one function of the point, at all times."""
    return isinstance(term, Potential) or (
        isinstance(term, Perceptron) and term.has_fixed_potential
    )


def has_pairs(term: Attention) -> bool:
    """Whether A may have the term's pair energy; matrices are compared by `tied_ratios`."""
    known = is_exponential(term.kind) or isinstance(term.kind, Kernel | Linear | Sigmoid)
    return known and isinstance(term.weights, Weights) and isinstance(term.mask, Full)


def potential(term: Term, x: Float[Array, "m d"]) -> Float[Array, " m"]:
    """f(x) of terms that pull alike on any measure; 0 of all others."""
    if isinstance(term, Perceptron) and term.has_fixed_potential:
        return term.potential(x) / 2.0
    if isinstance(term, Potential):
        return jax.vmap(term.function)(x)
    if isinstance(term, Drift) and term.matrix.ndim == 2:
        return jnp.sum(x * (x @ term.matrix.T), axis=-1) / 2.0
    return jnp.zeros(x.shape[0])


def pair_energy(term: Attention, t: Scalar, mu: Measure, reduction: Reduction) -> Array:
    """s sum_h c_h E_h summed over the tokens of mu; 0 where the term has no part in A."""
    if not has_pairs(term):
        return jnp.zeros(())
    ratios = tied_ratios(term.weights.at(t), mu.d)
    if is_exponential(term.kind):
        return jnp.sum(lift(term) * ratios * _shifted_energies(term, mu, reduction))
    return jnp.sum(ratios * head_energies(term, mu, reduction))


def _shifted_energies(term: Attention, mu: Measure, reduction: Reduction) -> Float[Array, " heads"]:
    """e^{-beta} E_h, which no beta takes out of the range of doubles."""
    beta = term.beta
    heads = one_per_head(term, mu.d)
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
            for head in one_per_head(term, mu.d)
        ]
    )


def lift(term: Attention) -> Array:
    """s e^beta, s as in `clock_factor`: what e^{-beta} E is multiplied with in A.

    SA climbs any multiple of E: beyond beta = 600, where E leaves the range of doubles, it is counted in
    units of e^beta. Unnormalised attention has its own clock, and a field that leaves the range with it.
    """
    if isinstance(term.kind, Unnormalised):
        return term.kind.speed(term.beta)
    return jnp.exp(jnp.where(term.beta > LARGEST_LIFT, 0.0, term.beta))


def clock_factor(term: Attention) -> Array:
    """s: the speed of unnormalised attention over that of the perspective's clock; else 1."""
    if not isinstance(term.kind, Unnormalised):
        return jnp.ones(())
    return term.kind.speed(term.beta) * jnp.exp(-term.beta)


def tied_ratios(weights: Weights, d: int) -> Float[Array, " heads"]:
    """c_h of V_h = c_h B_h with B_h symmetric, and 0 where it is not so."""
    if not weights.matrices():
        return jnp.ones(1) if weights.V is None else jnp.reshape(weights.V, 1)
    B, V = weights.bilinear(d), weights.value_matrices(d)
    ratio = jnp.sum(V * B, axis=(-2, -1)) / jnp.sum(B * B, axis=(-2, -1))
    off = jnp.max(jnp.abs(V - ratio[:, None, None] * B), axis=(-2, -1))
    skew = jnp.max(jnp.abs(B - jnp.swapaxes(B, -1, -2)), axis=(-2, -1))
    tied = (off <= TIED_TOLERANCE * jnp.max(jnp.abs(V), axis=(-2, -1))) & (
        skew <= TIED_TOLERANCE * jnp.max(jnp.abs(B), axis=(-2, -1))
    )
    return jnp.where(tied, ratio, 0.0)


def one_per_head(term: Attention, d: int) -> list[Attention]:
    """One attention per head, with the scores of that head."""
    require(
        isinstance(term.weights, Weights),
        "the energy of a density is that of constant weights, these change with depth; leave it out of "
        "save, or hold the weights fixed",
    )
    weights = term.weights.at(0.0)
    with known_numbers():
        if not weights.matrices():
            return [Attention(None, term.beta, term.kind)]
        return [Attention(Weights(B=B), term.beta, term.kind) for B in weights.bilinear(d)]


def _rising_attention(term: Attention, d: int) -> Attention:
    """sum_h s c_h B_h int f(beta <x, B_h y>) y dmu."""
    weights, exponential = term.weights.at(0.0), is_exponential(term.kind)
    kind = Unnormalised("metastability") if exponential else term.kind
    with known_numbers():
        pull = (lift(term) if exponential else 1.0) * tied_ratios(weights, d)
        if not weights.matrices():
            return Attention(Weights(V=pull[0]), term.beta, kind)
        B = weights.bilinear(d)
        return Attention(Weights(B=B, V=pull[:, None, None] * B), term.beta, kind)


def known_numbers() -> AbstractContextManager[None]:
    """Compute with known numbers at once, also inside compiled code: terms check what they are given."""
    return jax.ensure_compile_time_eval()
