"""Starts: the named laws tokens are drawn from, each from a seed.

The [tokens] table of a spec names one of `STARTS`. Tokens that are given rather than drawn are made by
`from_array` and `from_angles`.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from .errors import require
from .measure import Measure, from_angles
from .runtime import ArrayLike, Number, as_array, is_traced, known
from .space import Euclidean, Space, Sphere, normalise


def _shape(n: int, samples: int | Sequence[int] | None) -> tuple[int, ...]:
    require(isinstance(n, int) and n >= 2, f"need an integer n >= 2 tokens, got n={n!r}")
    if samples is None:
        return (n,)
    batch = (samples,) if isinstance(samples, int) else tuple(samples)
    require(all(size >= 1 for size in batch), f"samples must be positive, got {samples!r}")
    return (*batch, n)


@known()
def uniform(space: Space, n: int, seed: int, samples: int | Sequence[int] | None = None) -> Measure:
    """n independent uniform tokens: normalised Gaussians on the sphere."""
    return Measure(space, space.sample_uniform(jr.key(seed), _shape(n, samples)))


@known()
def gaussian(
    space: Space, n: int, seed: int, scale: float = 1.0, samples: int | Sequence[int] | None = None
) -> Measure:
    """n independent N(0, scale^2 I) tokens; on a sphere, directions with the Gaussian norms as radii."""
    x = scale * jr.normal(jr.key(seed), (*_shape(n, samples), space.d), dtype=jnp.float64)
    if isinstance(space, Euclidean):
        return Measure(space, x)
    return Measure(space, normalise(x), radii=jnp.linalg.norm(x, axis=-1))


@known()
def box(
    space: Euclidean,
    n: int,
    seed: int,
    half_width: Number,
    samples: int | Sequence[int] | None = None,
) -> Measure:
    """n independent tokens uniform in [-half_width, half_width]^d (2305.05465's experiments)."""
    require(
        is_traced(half_width) or bool(half_width > 0),
        f"half_width must be positive, got {half_width}",
    )
    shape = (*_shape(n, samples), space.d)
    x = jr.uniform(jr.key(seed), shape, minval=-half_width, maxval=half_width, dtype=jnp.float64)
    return Measure(space, x)


@known()
def hemisphere(
    space: Sphere, n: int, seed: int, samples: int | Sequence[int] | None = None
) -> Measure:
    """Uniform tokens flipped into the open hemisphere <x, e_1> > 0 (cone collapse, 2312.10794 6.4)."""
    x = space.sample_uniform(jr.key(seed), _shape(n, samples))
    return Measure(space, jnp.where(x[..., :1] < 0, -x, x))


@known()
def cap(
    space: Sphere,
    n: int,
    seed: int,
    radius: Number,
    centre: ArrayLike | None = None,
    samples: int | Sequence[int] | None = None,
) -> Measure:
    """Tokens at geodesic distance at most `radius` from `centre` (default e_1).

    The angle is uniform in [0, radius] and the direction is isotropic: a start inside a cap, not the
    uniform law restricted to it.
    """
    require(
        is_traced(radius) or bool(0 < radius <= np.pi), f"radius must lie in (0, pi], got {radius}"
    )
    default = jnp.zeros(space.d).at[0].set(1.0)
    given = default if centre is None else as_array(centre)
    require(
        given.shape == (space.d,),
        f"centre must have shape ({space.d},) on {space}, got {given.shape}",
    )
    axis = normalise(given)
    return Measure(space, _around(jr.key(seed), space, axis, radius, _shape(n, samples)))


@known()
def mixture(
    space: Sphere,
    centres: ArrayLike,
    per_cluster: int,
    seed: int,
    radius: Number,
    samples: int | Sequence[int] | None = None,
) -> Measure:
    """`per_cluster` tokens in a cap of the given radius around each centre (k, d)."""
    given = as_array(centres)
    require(
        given.ndim == 2 and given.shape[-1] == space.d and given.shape[0] > 0,
        f"centres must have shape (k, {space.d}), one row each, got {given.shape}",
    )
    directions = normalise(given)
    keys = jr.split(jr.key(seed), directions.shape[0])
    shape = (*_shape(max(per_cluster, 2), samples)[:-1], per_cluster)
    groups = [
        _around(key, space, centre, radius, shape)
        for key, centre in zip(keys, directions, strict=True)
    ]
    return Measure(space, jnp.concatenate(groups, axis=-2))


def _around(
    key: Array, space: Sphere, axis: Array, radius: Number, shape: tuple[int, ...]
) -> Array:
    turn, direction = jr.split(key)
    tangent = normalise(space.project(axis, space.sample_uniform(direction, shape)))
    theta = radius * jr.uniform(turn, (*shape, 1), dtype=jnp.float64)
    return jnp.cos(theta) * axis + jnp.sin(theta) * tangent


@known()
def equiangular(space: Sphere, n: int, correlation: Number = 0.0) -> Measure:
    """n tokens with <x_i, x_j> = correlation for all i != j (needs d >= n).

    Rows of the Cholesky factor of (1-rho) I + rho 11^T, rho in (-1/(n-1), 1). rho = 0 is the
    orthogonal start of 2312.10794, theorem 6.8.
    """
    _shape(n, None)
    require(
        is_traced(correlation) or bool(-1.0 / (n - 1) < correlation < 1.0),
        f"correlation must lie in (-1/(n-1), 1) = ({-1 / (n - 1):.4g}, 1), got {correlation}",
    )
    require(space.d >= n, f"an equiangular start needs d >= n, got d={space.d} < n={n}")
    gram = (1.0 - correlation) * jnp.eye(n) + correlation * jnp.ones((n, n))
    points = jnp.zeros((n, space.d)).at[:, :n].set(jnp.linalg.cholesky(gram))
    return Measure(space, normalise(points))


@known()
def arcs(
    space: Sphere,
    centres: ArrayLike,
    per_cluster: int,
    width: float,
    seed: int,
) -> Measure:
    """Circle tokens in arcs: angles centre + N(0, width^2) around each centre (2605.09213, Fig. 3)."""
    require(
        space.d == 2, f"arcs need the circle Sphere(2), got d={space.d}; use flock.starts.mixture"
    )
    angles = as_array(centres)
    require(angles.ndim <= 1, f"centres must be angles, one per arc, got the shape {angles.shape}")
    middle = jnp.repeat(angles, per_cluster)
    noise = width * jr.normal(jr.key(seed), middle.shape, dtype=jnp.float64)
    return from_angles(middle + noise)


@known()
def perturbed(measure: Measure, scale: float, seed: int) -> Measure:
    """Add N(0, scale^2) and retract: leave a saddle explicitly, from a seed, not by rounding.

    Take another seed than that of a uniform start: the same numbers would only stretch its tokens.
    """
    noise = scale * jr.normal(jr.key(seed), measure.points.shape, dtype=measure.points.dtype)
    return measure.at(measure.space.retract(measure.points + noise), measure.radii)


@known()
def with_positions(embeddings: ArrayLike, period: float = 1e4) -> Measure:
    """Normalise w_i + p_i with the sinusoidal position code of 2312.10794, section 2.

    (p_i)_{2k} = sin(i / M^{2k/d}), (p_i)_{2k+1} = cos(i / M^{2k/d}), M = period.
    """
    words = as_array(embeddings)
    n, d = words.shape[-2:]
    frequency = period ** (-(2.0 * (jnp.arange(d) // 2)) / d)
    phase = jnp.arange(n)[:, None] * frequency
    code = jnp.where(jnp.arange(d) % 2 == 0, jnp.sin(phase), jnp.cos(phase))
    return Measure(Sphere(d), normalise(words + code))


STARTS = {
    start.__name__: start
    for start in (uniform, gaussian, box, hemisphere, cap, mixture, equiangular, arcs)
}
