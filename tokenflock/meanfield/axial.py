"""Attention with weights that respect an axis, on measures that are symmetric about it.

With B = diag(b, a, .., a) and points x = (u, s w), y = (u', s' w'), w and w' on S^{d-2}, the score is
beta (b u u' + a s s' <w, w'>). Averaged over the rotations about the axis,

    A(k) = mean over w' of e^{k <w, w'>} = Gamma(h) (2/k)^{h-1} I_{h-1}(k),   h = (d-1)/2,  k = beta a s s',

and A'(k) is the mean of <w, w'> e^{k <w, w'>}. With V = diag(v, c, .., c) the pull towards the pole is

    <e, int e^{beta<x,By>} V y dmu> = int e^{beta b u u'} (v s u' A(k) - c u s' A'(k)) dmu(u').

The means are sums over Gauss nodes of S^{d-2}, which 128 nodes give to rounding up to |k| = 800; beyond it
they are refused.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import require
from ..runtime import is_traced
from ..terms import Attention
from .legendre import gauss

TURNS = 128
STEEPEST = 800
# Matrices are asked to respect the axis to this relative accuracy.
AXIAL_TOLERANCE = 1e-10


class AxialKernel(eqx.Module):
    """Pull and partition between nodes, per head, divided by e^{shift} of the row."""

    pull: Float[Array, "heads node node"]
    partition: Float[Array, "heads node node"]
    shift: Float[Array, "heads node"]
    # b of every head.
    along: Float[Array, " heads"]

    def field(self, term: Attention, masses: Float[Array, " node"]) -> Float[Array, "node 1"]:
        """The field of the term at the nodes, towards the pole."""
        pulls = self.pull @ masses
        if term.kind.averages:
            return jnp.sum(pulls / (self.partition @ masses), axis=0)[:, None]
        return term.kind.speed(term.beta) * jnp.sum(pulls, axis=0)[:, None]

    def head_energies(
        self, term: Attention, u: Float[Array, " node"], masses: Float[Array, " node"]
    ) -> Float[Array, " heads"]:
        """(1/2beta) iint e^{beta<x, B_h y>} of every head; at beta = 0 (1/2) iint <x, B_h y>."""
        pairs = (jnp.exp(self.shift) * (self.partition @ masses)) @ masses
        flat = self.along * (masses @ u) ** 2 / 2.0
        return jnp.where(
            term.beta == 0, flat, pairs / (2.0 * jnp.where(term.beta == 0, 1.0, term.beta))
        )


def axial_kernel(term: Attention, u: Float[Array, " node"], d: int) -> AxialKernel:
    """The tables of one attention term."""
    weights = term.weights.at(0.0)
    B, V = axis_entries(weights.bilinear(d)), axis_entries(weights.value_matrices(d))
    one_head = jax.vmap(lambda b, v: _head(term, b, v, u, d))
    return AxialKernel(*one_head(B, V), B[:, 0])


def _head(
    term: Attention,
    B: Float[Array, " pair"],
    V: Float[Array, " pair"],
    u: Float[Array, " node"],
    d: int,
) -> tuple[Array, Array, Array]:
    s = jnp.sqrt((1.0 - u) * (1.0 + u))
    along, across = u[:, None] * u, s[:, None] * s
    turned = term.beta * B[1] * across
    exponent = term.beta * B[0] * along + jnp.abs(turned)
    # Softmax may shift every row by its largest score; USA's weight is e^{beta(<x,By>-1)}.
    largest = jnp.max(exponent, axis=1)
    row = largest if term.kind.averages else jnp.zeros_like(u) + term.beta
    scale = jnp.exp(exponent - row[:, None])
    mean, slope = _turn_means(turned, d)
    pull = scale * (V[0] * s[:, None] * u * mean - V[1] * u[:, None] * s * slope)
    return pull, scale * mean, row


def _turn_means(k: Float[Array, "node node"], d: int) -> tuple[Array, Array]:
    """e^{-|k|} A(k) and e^{-|k|} A'(k)."""
    angles = [jnp.asarray(part) for part in gauss(d - 1, TURNS)]

    def add(sums: tuple[Array, Array], node: tuple[Array, Array]) -> tuple[tuple, None]:
        cosine, weight = node
        term = weight * jnp.exp(k * cosine - jnp.abs(k))
        return (sums[0] + term, sums[1] + cosine * term), None

    zero = jnp.zeros_like(k)
    return jax.lax.scan(add, (zero, zero), (angles[0], angles[1]))[0]


def axis_entries(matrices: Float[Array, "heads d d"]) -> Float[Array, "heads 2"]:
    """(first, second) diagonal entry of every head."""
    return jnp.stack([matrices[:, 0, 0], matrices[:, 1, 1]], axis=-1)


def check_axial(term: Attention, d: int) -> None:
    """Refuse attention that does not respect the first axis, or has no reduced kernel."""
    require(
        term.kind.exponential and term.mask.sees_all,
        f"a zonal density needs softmax or unnormalised attention without a mask, got "
        f"{term.kind.name} with mask={type(term.mask).__name__}; use Harmonics, or tokens",
    )
    require(
        term.weights.is_fixed,
        f"a zonal density needs constant weights, got {type(term.weights).__name__}; use tokens",
    )
    if is_traced(term.weights):
        return
    weights = term.weights.at(0.0)
    steepest = float(jnp.max(jnp.abs(term.beta)) * jnp.max(jnp.abs(weights.bilinear(d)[:, 1, 1])))
    require(
        steepest <= STEEPEST,
        f"about the axis the scores vary by beta a = {steepest:g}, more than the {STEEPEST} that sums over "
        f"{TURNS} turns hold; use a smaller beta, or tokens",
    )
    for name, matrices in (("B = Q^T K", weights.bilinear(d)), ("V", weights.value_matrices(d))):
        require(
            _respects_axis(np.asarray(matrices)),
            f"a zonal density needs {name} = diag(b, a, .., a) in every head, so that the flow keeps "
            "the axis e_1; use Harmonics(degree) for d = 3, or tokens",
        )


def _respects_axis(matrices: np.ndarray) -> bool:
    d = matrices.shape[-1]
    for matrix in matrices:
        wanted = np.diag([matrix[0, 0], *[matrix[1, 1]] * (d - 1)])
        if np.max(np.abs(matrix - wanted)) > AXIAL_TOLERANCE * max(np.max(np.abs(matrix)), 1e-300):
            return False
    return True
