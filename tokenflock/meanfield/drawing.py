"""Tokens drawn from a law that is given at points: `laws.sample`.

On the circle by the inverse distribution function; on other spheres by rejection: a uniform x is kept with
probability law(x)/bound. The bound is the largest value found by climbing from the best of many points; a
larger one met later starts the draw again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from ..density import Law, check_draw
from ..errors import InputError, require
from ..measure import Measure
from ..space import Space, Sphere, normalise
from .cdf import distribution_of_law
from .sampling import on_circle

# Points looked at for the largest value, those climbed from, and the steps of a climb.
LOOKED, CLIMBED, CLIMBS = 1 << 14, 32, 40
# What a climb may have missed of the largest value.
HEADROOM = 1.01
PROPOSED = 1 << 16
# Rejection that keeps fewer proposals than this is refused.
FEWEST_KEPT = 1e-4


def sample(law: Law, space: Space, n: int, seed: int) -> Measure:
    """n independent tokens of a law on a sphere, such as `laws.von_mises(4.0)`.

    On the circle exact, to what `Quantiles` makes of a law that jumps. On other spheres exact by
    rejection; a law whose mean is below 1e-4 of its largest value is refused: hold it by a Density and use
    `Density.sample`.
    """
    check_draw(n, seed)
    require(
        callable(law), f"a law is a function of points, such as laws.von_mises(4.0), got {law!r}"
    )
    if not isinstance(space, Sphere):
        raise InputError(
            f"laws live on spheres, got {space}; on R^d use flock.gaussian, flock.starts.box or "
            "meanfield.gaussian_density(mean, covariance).sample(n, seed)"
        )
    if space.d == 2:
        levels = np.random.default_rng(seed).uniform(size=n)
        return Measure(space, on_circle(distribution_of_law(law).quantiles(levels)))
    return Measure(space, _kept(law, space, n, jr.key(seed)))


def _kept(law: Law, space: Sphere, n: int, key: Array) -> np.ndarray:
    looking, proposing = jr.split(key)
    bound = HEADROOM * _largest(law, space, looking)
    kept, count, proposed = [], 0, 0
    while count < n:
        where, whether = jr.split(jr.fold_in(proposing, proposed // PROPOSED))
        x = space.sample_uniform(where, (PROPOSED,))
        values = _values(law, x)
        if values.max() > bound:
            kept, count, bound = [], 0, HEADROOM * float(values.max())
        chosen = np.asarray(x)[np.asarray(jr.uniform(whether, (PROPOSED,))) * bound < values]
        kept.append(chosen)
        count, proposed = count + len(chosen), proposed + PROPOSED
        share = float(np.mean(values)) / bound
        require(
            share >= FEWEST_KEPT,
            f"this law is so sharp on {space} that only {share:.1g} of uniform points would be kept; hold "
            "it by a Density, on Zonal(d, degree) or Harmonics(degree), and use density.sample(n, seed)",
        )
    return np.concatenate(kept)[:n]


def _values(law: Law, x: Array) -> np.ndarray:
    values = np.asarray(law(x), dtype=float)
    require(
        values.shape == (x.shape[0],),
        f"a law gives one number per point: expected shape ({x.shape[0]},), got {values.shape}",
    )
    require(
        bool(np.all(np.isfinite(values)) and values.min() >= 0 and values.max() > 0),
        "a law must be finite and non-negative with a positive integral; got values from "
        f"{values.min():.3g} to {values.max():.3g}",
    )
    return values


def _largest(law: Law, space: Sphere, key: Array) -> float:
    """The largest value: climbs with halving steps from the best of many uniform points."""
    x = space.sample_uniform(key, (LOOKED,))
    values = _values(law, x)
    best = jnp.asarray(np.asarray(x)[np.argsort(values)[-CLIMBED:]])
    slope = jax.grad(lambda points: jnp.sum(law(points)))
    step = np.full((CLIMBED, 1), 0.5)
    for _ in range(CLIMBS):
        uphill = space.project(best, slope(best))
        moved = normalise(
            best + step * uphill / (1e-300 + jnp.linalg.norm(uphill, axis=-1)[:, None])
        )
        better = np.asarray(law(moved) > law(best))[:, None]
        best, step = jnp.where(better, moved, best), np.where(better, 1.2 * step, step / 2)
    return float(max(values.max(), np.max(_values(law, best))))
