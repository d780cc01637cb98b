"""Distance to a target measure: exact W2 for few tokens, or any number on the circle; Sinkhorn divergence.

The ground cost is the squared geodesic distance of the space.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..errors import InputError, require, require_extra
from ..measure import Measure
from ..space import Space, Sphere
from .base import Observable, Snapshot
from .circle_atoms import atoms_of, between_atoms
from .pairs import distances
from .registry import in_python_only

# Assignment is O(n^3): 512 tokens take some 10 ms. The linear program has n m unknowns.
LARGEST_ASSIGNMENT = 512
LARGEST_PROGRAM = 128 * 128
EQUAL_WEIGHTS = 1e-12

# Marginal error (l1) at which Sinkhorn stops: the cost is then good to about 1e-6 of its range.
SINKHORN_THRESHOLD = 1e-6
SINKHORN_ITERATIONS = 100_000


def _cost(
    snapshot: Snapshot, target_points: Float[Array, "m d"], space: str, name: str
) -> Float[Array, "n m"]:
    """Squared geodesic distances from the tokens to the target."""
    mu = snapshot.measure
    _check_place(mu, target_points, space, name)
    return distances(mu.space, mu.points, target_points) ** 2


def _check_place(mu: Measure, target_points: Array, space: str, name: str) -> None:
    require(
        mu.space.label == space and mu.d == target_points.shape[-1],
        f"the target of {name} lives on a {space} of d={target_points.shape[-1]} coordinates, the "
        f"tokens on {mu.space}",
    )


def _check_target(target: Measure) -> None:
    require(
        isinstance(target, Measure) and target.batch_shape == (),
        "the target must be one measure, with points of shape (m, d) and no sample axes",
    )


# --- Exact W2 -------------------------------------------------------------------------------------


def _w2(
    snapshot: Snapshot,
    space: str,
    target_points: Float[Array, "m d"],
    target_weights: Float[Array, " m"],
) -> Float[Array, ""]:
    """W2(mu, nu) = min over plans of (sum_ij P_ij dist(x_i, y_j)^2)^{1/2}, solved on the host.

    On the circle by sorting, O(n log n) for any weights. Elsewhere, equal weights and n = m <= 512:
    assignment; otherwise n m <= 128^2: linear program (HiGHS). Larger problems are refused; use
    `sinkhorn_divergence`.
    """
    if snapshot.measure.space == Sphere(2):
        return _w2_on_circle(snapshot, space, target_points, target_weights)
    n, m = snapshot.measure.n, target_points.shape[0]
    require(n * m <= LARGEST_PROGRAM or (n == m and n <= LARGEST_ASSIGNMENT), _too_large(n, m))
    cost = _cost(snapshot, target_points, space, "w2")
    shape = jax.ShapeDtypeStruct((), cost.dtype)
    squared = jax.pure_callback(
        _exact, shape, cost, snapshot.measure.weights, target_weights, vmap_method="sequential"
    )
    return jnp.sqrt(jnp.maximum(squared, 0.0))


def _w2_on_circle(
    snapshot: Snapshot,
    space: str,
    target_points: Float[Array, "m d"],
    target_weights: Float[Array, " m"],
) -> Float[Array, ""]:
    mu = snapshot.measure
    _check_place(mu, target_points, space, "w2")
    arrays = mu.points, mu.weights, target_points, target_weights
    shape = jax.ShapeDtypeStruct((), mu.points.dtype)
    squared = jax.pure_callback(_sorted, shape, *arrays, vmap_method="sequential")
    return jnp.sqrt(jnp.maximum(squared, 0.0))


def _sorted(x: ArrayLike, a: ArrayLike, y: ArrayLike, b: ArrayLike) -> np.ndarray:
    """W2^2 of tokens on the circle, on host arrays."""
    points, weights, target, masses = (np.asarray(array) for array in (x, a, y, b))
    if not np.all(np.isfinite(points)):
        return np.asarray(np.nan, points.dtype)
    squared = between_atoms(atoms_of(points, weights), atoms_of(target, masses))
    return np.asarray(squared, points.dtype)


def _too_large(n: int, m: int) -> str:
    return (
        f"exact W2 between {n} and {m} tokens is too large: at most {LARGEST_ASSIGNMENT} of equal "
        f"weights and equal number, or {LARGEST_PROGRAM} pairs; use "
        "sinkhorn_divergence(target, epsilon)"
    )


def _exact(costs: ArrayLike, left: ArrayLike, right: ArrayLike) -> np.ndarray:
    """min <P, C> by the cheapest exact route, on host arrays."""
    cost, a, b = np.asarray(costs), np.asarray(left), np.asarray(right)
    n, m = cost.shape
    if not np.all(np.isfinite(cost)):
        return np.asarray(np.nan, cost.dtype)
    if n == m and max(np.ptp(a), np.ptp(b)) <= EQUAL_WEIGHTS:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(cost)
        return np.asarray(cost[rows, columns].mean(), cost.dtype)
    # Weights are known only here; the message reaches the user through JAX's callback error.
    require(n * m <= LARGEST_PROGRAM, _too_large(n, m))
    return np.asarray(_program(cost, a / a.sum(), b / b.sum()), cost.dtype)


def _program(cost: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """min <P, C> over P >= 0 with marginals a and b."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    n, m = cost.shape
    rows = kron(eye_array(n), np.ones((1, m)))
    columns = kron(np.ones((1, n)), eye_array(m))
    # One of the n + m constraints follows from the others; dropping it keeps rounding feasible.
    constraints = vstack([rows, columns]).tocsr()[:-1]
    found = linprog(
        cost.ravel(), A_eq=constraints, b_eq=np.concatenate([a, b])[:-1], method="highs"
    )
    if found.status != 0:
        raise InputError(f"exact W2 was not found ({found.message}); use sinkhorn_divergence")
    return float(found.fun)


@in_python_only
def w2(target: Measure) -> Observable:
    """Exact Wasserstein-2 distance to a target measure of the same space."""
    _check_target(target)
    return Observable(
        "w2",
        "rad on a sphere, length in R^d",
        _w2,
        parameters=(("space", target.space.label),),
        data={"target_points": target.points, "target_weights": target.weights},
        says="Wasserstein-2 distance from the tokens to the target measure",
    )


# --- Sinkhorn divergence --------------------------------------------------------------------------


def _regularised_cost(
    cost: Float[Array, "n m"],
    a: Float[Array, " n"],
    b: Float[Array, " m"],
    epsilon: float,
    symmetric: bool = False,
) -> Float[Array, ""]:
    """OT_eps = min <P, C> + eps KL(P | a b^T) by ott-jax; NaN when it did not converge.

    `symmetric` says that a measure is carried to itself: averaged updates then converge in some 30
    steps where alternating ones need thousands (Feydy et al. 2019, eq. 25).
    """
    require_extra("sinkhorn_divergence", "ott", "transport", "w2 needs nothing for small measures")
    from ott.geometry import geometry
    from ott.solvers import linear
    from ott.solvers.linear.acceleration import Momentum

    plan = geometry.Geometry(cost_matrix=cost, epsilon=epsilon)
    found = linear.solve(
        plan,
        a=a,
        b=b,
        lse_mode=True,
        parallel_dual_updates=symmetric,
        momentum=Momentum(value=0.5) if symmetric else Momentum(start=100, error_threshold=0.1),
        threshold=SINKHORN_THRESHOLD,
        max_iterations=SINKHORN_ITERATIONS,
    )
    value = jnp.asarray(found.reg_ot_cost)
    return jnp.where(jnp.asarray(found.converged), value, jnp.nan)


def _self_cost(
    space: Space, points: Float[Array, "n d"], weights: Float[Array, " n"], epsilon: float
) -> Float[Array, ""]:
    """OT_eps of a measure to itself: what the divergence takes off, so that S_eps(mu, mu) = 0."""
    cost = distances(space, points, points) ** 2
    return _regularised_cost(cost, weights, weights, epsilon, symmetric=True)


def _sinkhorn_divergence(
    snapshot: Snapshot,
    space: str,
    epsilon: float,
    target_points: Float[Array, "m d"],
    target_weights: Float[Array, " m"],
    target_cost: Float[Array, ""],
) -> Float[Array, ""]:
    """S_eps(mu, nu) = OT_eps(mu, nu) - OT_eps(mu, mu)/2 - OT_eps(nu, nu)/2 (Feydy et al. 2019).

    Tends to W2(mu, nu)^2 as eps -> 0. O(n (n + m)) memory and work per step; tens of steps for eps
    near the cost, thousands for eps far below it. NaN when 100 000 steps do not reach a marginal
    error of 1e-6: raise epsilon.
    """
    mu = snapshot.measure
    across = _cost(snapshot, target_points, space, "sinkhorn_divergence")
    own_cost = _self_cost(mu.space, mu.points, mu.weights, epsilon)
    carried = _regularised_cost(across, mu.weights, target_weights, epsilon)
    return carried - (own_cost + target_cost) / 2.0


@in_python_only
def sinkhorn_divergence(target: Measure, epsilon: float) -> Observable:
    """Debiased entropic transport cost to a target measure; epsilon has the units of the cost."""
    _check_target(target)
    require(epsilon > 0, f"epsilon must be positive, got {epsilon}")
    own = jax.jit(lambda y, b: _self_cost(target.space, y, b, float(epsilon)))
    return Observable(
        "sinkhorn_divergence",
        "rad^2 on a sphere, length^2 in R^d",
        _sinkhorn_divergence,
        parameters=(("space", target.space.label), ("epsilon", float(epsilon))),
        data={
            "target_points": target.points,
            "target_weights": target.weights,
            "target_cost": own(target.points, target.weights),
        },
        says="Sinkhorn divergence from the tokens to the target measure",
    )
