"""Shape and motion of the token cloud: diameter, order, rank, radii, speed, alignment, hull."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, Float

from ..errors import InputError, require
from ..runtime import ArrayLike, as_array, known
from ..space import Euclidean
from .base import Observable, Snapshot
from .reading import velocity, weighted_sum
from .registry import register

# Qhull's cost grows like n^(d/2): beyond this a hull volume is not a practical observable.
LARGEST_HULL_DIMENSION = 8


def _diameter(snapshot: Snapshot) -> Float[Array, ""]:
    """max_ij of the geodesic distance, accurate near 0 and near pi. O(n^2 d), memory O(n d)."""
    mu = snapshot.measure
    farthest = jax.lax.map(lambda x: jnp.max(mu.space.distance(x, mu.points)), mu.points)
    return jnp.max(farthest)


def _order_parameter(snapshot: Snapshot) -> Float[Array, ""]:
    """|sum_i w_i x_i|: 1 for one cluster on the sphere, 0 for a balanced cloud (Kuramoto's R)."""
    mu = snapshot.measure
    return jnp.linalg.norm(weighted_sum(mu, mu.points))


def spectrum_rank(spectrum: Float[Array, "*batch k"]) -> Float[Array, "*batch"]:
    """exp of the entropy of a non-negative spectrum normalised to sum one; 0 if all zero."""
    positive = jnp.maximum(spectrum, 0.0)
    total = jnp.sum(positive, axis=-1, keepdims=True)
    shares = positive / jnp.where(total > 0, total, 1.0)
    return jnp.where(total[..., 0] > 0, jnp.exp(jnp.sum(entr(shares), axis=-1)), 0.0)


def _effective_rank(snapshot: Snapshot) -> Float[Array, ""]:
    """exp(-sum_k p_k log p_k), p the eigenvalues of M = sum_i w_i x_i x_i^T divided by tr M.

    Between 1 (all tokens on one line through 0) and min(n, d). Not centred. O(n d min(n, d)).
    """
    mu = snapshot.measure
    scaled = jnp.sqrt(mu.weights)[:, None] * mu.points
    # The two products have the same non-zero eigenvalues; take the smaller.
    moment = scaled.T @ scaled if mu.d <= mu.n else scaled @ scaled.T
    return spectrum_rank(jnp.linalg.eigvalsh(moment))


def _mean_radius(snapshot: Snapshot) -> Float[Array, ""]:
    """sum_i w_i r_i: the radii of the measure, |x_i| in R^d, 1 on a sphere without radii."""
    mu = snapshot.measure
    radii = jnp.linalg.norm(mu.points, axis=-1) if mu.radii is None else mu.radii
    return weighted_sum(mu, radii)


def _speed(snapshot: Snapshot) -> Float[Array, ""]:
    """max_i |dx_i/dt| of the drift. Small is not converged: metastable speeds are ~e^{-c beta}."""
    return jnp.max(jnp.linalg.norm(velocity(snapshot), axis=-1))


def _min_alignment(snapshot: Snapshot, direction: Float[Array, " d"]) -> Float[Array, ""]:
    """min_i <x_i, w>: positive when all tokens lie in the half-space of w (2312.10794, 6.4)."""
    mu = snapshot.measure
    require(
        direction.shape == (mu.d,),
        f"the direction has {direction.size} coordinates, the tokens have d={mu.d}",
    )
    return jnp.min(mu.points @ direction)


@register
@known()
def min_alignment(direction: ArrayLike | Sequence[float]) -> Observable:
    """min_i <x_i, w> for the unit vector w along `direction`; non-decreasing in cone collapse."""
    vector = as_array(direction)
    require(vector.ndim == 1, f"the direction must be one vector, got shape {vector.shape}")
    length = float(jnp.linalg.norm(vector))
    require(0 < length < np.inf, f"the direction must be finite and not zero, got {direction}")
    return Observable(
        "min_alignment",
        "1",
        _min_alignment,
        data={"direction": vector / length},
        says="Smallest inner product of a token with the given unit direction",
    )


def _convex_hull_volume(snapshot: Snapshot) -> Float[Array, ""]:
    """Volume of conv{x_i} in R^d by Qhull on the host (length for d = 1, area for d = 2).

    Non-increasing in the rescaled frame with V = I (2305.05465). A hull with no interior, as for
    n <= d, gives 0; NaN tokens give NaN. Cost O(n log n) for d <= 3, then n^{d/2}; refuses d > 8.
    """
    mu = snapshot.measure
    if not isinstance(mu.space, Euclidean):
        raise InputError(
            f"convex_hull_volume needs tokens in R^d, got {mu.space}; use diameter on a sphere"
        )
    require(
        mu.d <= LARGEST_HULL_DIMENSION,
        f"convex_hull_volume is out of reach for d={mu.d} > {LARGEST_HULL_DIMENSION}; use diameter "
        "or effective_rank",
    )
    if mu.d == 1:
        return jnp.max(mu.points) - jnp.min(mu.points)
    shape = jax.ShapeDtypeStruct((), mu.points.dtype)
    return jax.pure_callback(_hull_volume, shape, mu.points, vmap_method="sequential")


def _hull_volume(points: ArrayLike) -> np.ndarray:
    from scipy.spatial import ConvexHull, QhullError

    cloud = np.asarray(points)
    if not np.all(np.isfinite(cloud)):
        return np.asarray(np.nan, cloud.dtype)
    try:
        return np.asarray(ConvexHull(cloud).volume, cloud.dtype)
    except QhullError:  # flat to working precision, or fewer than d + 1 points
        return np.asarray(0.0, cloud.dtype)


diameter = register(
    Observable(
        "diameter",
        "rad on a sphere, length in R^d",
        _diameter,
        says="Largest geodesic distance between two tokens",
    )
)
order_parameter = register(
    Observable("order_parameter", "1", _order_parameter, says="Length of the mean of the tokens")
)
effective_rank = register(
    Observable(
        "effective_rank",
        "1",
        _effective_rank,
        says="Exponential of the entropy of the normalised spectrum of the tokens' second moment",
    )
)
mean_radius = register(Observable("mean_radius", "1", _mean_radius, says="Mean norm of the tokens"))
speed = register(
    Observable("speed", "1/time", _speed, says="Largest speed of a token under the drift")
)
convex_hull_volume = register(
    Observable(
        "convex_hull_volume",
        "length^d",
        _convex_hull_volume,
        says="Volume of the tokens' convex hull",
    )
)
