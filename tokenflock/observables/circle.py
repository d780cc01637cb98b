"""Observables of the circle: Fourier moments."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import InputError, require
from ..space import Sphere
from .base import Observable, Snapshot
from .reading import weighted_sum
from .registry import register


def _fourier_moments(snapshot: Snapshot, modes: int) -> Float[Array, " modes"]:
    """|muhat_k|, muhat_k = sum_j w_j e^{-i k theta_j}, k = 1..modes. O(n modes).

    All 1 for one cluster; 1 at the multiples of m and 0 between for the regular m-gon. The uniform
    law has none; USA then makes moment k grow at a rate proportional to k^2 I_k(beta) (2410.23228).
    """
    mu = snapshot.measure
    if not isinstance(mu.space, Sphere) or mu.d != 2:
        raise InputError(
            f"fourier_moments live on the circle Sphere(2), got {mu.space}; use gram_histogram or "
            "order_parameter elsewhere"
        )
    theta = jnp.arctan2(mu.points[:, 1], mu.points[:, 0])
    phase = theta[:, None] * jnp.arange(1, modes + 1)
    return jnp.hypot(weighted_sum(mu, jnp.cos(phase)), weighted_sum(mu, jnp.sin(phase)))


@register
def fourier_moments(modes: int = 8) -> Observable:
    """|muhat_k| for k = 1..modes of tokens on the circle."""
    require(isinstance(modes, int) and modes >= 1, f"modes must be >= 1, got {modes!r}")
    return Observable(
        "fourier_moments",
        "1",
        _fourier_moments,
        axes=("moment",),
        parameters=(("modes", modes),),
        labels=(("moment", tuple(float(k) for k in range(1, modes + 1))),),
        says="Modulus of the Fourier coefficients of the token measure on the circle",
    )
