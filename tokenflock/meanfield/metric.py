"""The metric in which SA is the gradient flow of E (2312.10794, eq. 3.12).

On velocity fields u, v along a measure mu, with Z_mu(x) = int e^{beta<x,y>} dmu(y),

    <u, v>_mu = int <u, v> Z_mu dmu.

The Wasserstein gradient of E = (1/2beta) iint e^{beta<x,y>} is g = grad Z/beta, the field of USA; in this
metric it is g/Z = grad log Z/beta, the field of SA. (The paper writes dE/dmu = Z/beta for Z: the same
metric up to the factor beta, which is a clock.) With several terms nothing of the kind is known.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..measure import Measure
from ..observables.base import Snapshot
from ..observables.energies import energy, shifted_partition
from ..reduce import Dense
from ..terms import Attention
from ..weights import head_count
from .checks import require_fixed_numbers
from .jko import movements
from .quantiles import Characteristics


def sa_metric(model: Dynamics, mu: Measure | Density) -> Float[Array, " point"]:
    """Z_mu at the tokens, at the quantiles, or at the nodes of a density."""
    tokens = _tokens(mu)
    snapshot = Snapshot(jnp.zeros(()), tokens, model, Dense())
    attention = sa_attention(model)
    return jnp.exp(attention.beta) * shifted_partition(attention, tokens, snapshot)[0]


def inner_product(
    model: Dynamics,
    mu: Measure | Density,
    u: Float[Array, "point d"],
    v: Float[Array, "point d"],
) -> Float[Array, ""]:
    """int <u, v> Z_mu dmu of two fields given at the tokens (quantiles, nodes)."""
    return _tokens(mu).weights @ (sa_metric(model, mu) * jnp.sum(u * v, axis=-1))


def gradient(model: Dynamics, mu: Measure | Density) -> Float[Array, "point d"]:
    """The gradient of E in the metric, from E alone: (1/w_i) dE/dx_i, tangent, over Z_mu(x_i)."""
    tokens, ratio = _tokens(mu), sa_attention(model).weights.at(0.0).tied_ratios(2)[0]

    def value(points: Array) -> Array:
        return energy(Snapshot(jnp.zeros(()), tokens.at(points), model, Dense()))

    slope = jax.grad(value)(tokens.points) / tokens.weights[:, None]
    tangent = tokens.space.project(tokens.points, slope)
    return ratio * tangent / sa_metric(model, mu)[:, None]


def sa_flow(model: Dynamics, mu: Density, tau: float, steps: int) -> Float[Array, "time quantile"]:
    """Minimising movements of SA in quantiles, the metric of each taken where it starts.

    phi = argmin (1/n) sum_m Z(theta_m) (phi_m - theta_m)^2/(2 tau) - E[phi]: first order in tau.
    """
    attention = sa_attention(model)
    scheme = Characteristics(Dense())

    def metric(theta: Float[Array, " quantile"]) -> Float[Array, " quantile"]:
        tokens = scheme.measure(theta)
        snapshot = Snapshot(jnp.zeros(()), tokens, model, Dense())
        return jnp.exp(attention.beta) * shifted_partition(attention, tokens, snapshot)[0]

    return movements(model, mu, tau, steps, metric)


def sa_attention(model: Dynamics) -> Attention:
    """The only term, if it is softmax attention of one head with V = c B and B symmetric."""
    terms = model.parts()
    term = terms[0].attention()
    if len(terms) > 1 or model.noise is not None or term is None:
        raise InputError(
            f"the metric is that of SA alone, without noise and further terms; got {model.label}"
        )
    require_fixed_numbers(model, "the metric and its gradient")
    softmax = term.kind.averages and term.kind.exponential
    require(
        softmax and head_count(term.weights) == 1,
        "the metric is that of softmax attention with one head; USA's is Wasserstein's (jko_flow)",
    )
    require(
        bool(term.weights.at(0.0).tied_ratios(2)[0] != 0),
        "the metric needs V = c B with B symmetric and c != 0",
    )
    return term


def _tokens(mu: Measure | Density) -> Measure:
    return mu if isinstance(mu, Measure) else mu.as_measure()
