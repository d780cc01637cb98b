"""Asymmetric tokens and matrices for the suites: equal weights or symmetric data would hide mistakes."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..kinds.gaussian import Gaussian
from ..measure import Measure, from_array
from ..reduce import Dense, Reduction
from ..space import Euclidean, Space, Sphere
from ..terms import Term

# Numbers at which models are tried.
BETA = 1.3
# Nodes of Gauss-Hermite quadrature per dimension: they integrate the fields below to rounding.
NODES = 48


def tokens(space: Space, n: int = 7, seed: int = 3) -> Measure:
    """Tokens with unequal weights, ordered."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, space.d)) * (1.0 if isinstance(space, Sphere) else 0.4)
    return from_array(space, x, weights=random.uniform(0.3, 1.7, n), normalise=True)


def tilted_gaussian() -> Gaussian:
    """A Gaussian on R^2 with a mean and correlated coordinates, narrow enough for every kind."""
    return Gaussian(jnp.asarray([0.3, -0.2]), jnp.asarray([[0.09, 0.03], [0.03, 0.05]]))


def as_tokens(mu: Gaussian) -> Measure:
    """Tokens with the integrals of a Gaussian: a tensor grid of Gauss-Hermite nodes, turned and stretched."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel()
    # Nodes without weight in double precision only cost time.
    heavy = mass > 1e-18 * mass.max()
    root = np.linalg.cholesky(np.asarray(mu.covariance))
    return from_array(Euclidean(2), np.asarray(mu.mean) + grid[heavy] @ root.T, weights=mass[heavy])


def points_of(mu: Gaussian) -> Float[Array, "m d"]:
    """Where a field at a Gaussian is compared: around its mean, within two deviations."""
    return mu.mean + jnp.asarray([[0.0, 0.0], [0.5, 0.1], [-0.3, 0.4], [0.2, -0.4]])


@eqx.filter_jit
def field_at_tokens(
    term: Term, mu: Measure, reduction: Reduction | None = None
) -> Float[Array, "n d"]:
    """The field of a term at the tokens of its measure, in one program and not in a hundred small ones."""
    return term.field(0.0, mu.points, mu, reduction or Dense())
