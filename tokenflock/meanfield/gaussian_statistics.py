"""The shape of a measure on R^d: mean, covariance, and what its eigenvalues say.

Each observable reads tokens and Gaussian densities alike, so that the two can be laid side by side.
Anisotropy as in 2501.18322: tokens cluster on subspaces as their covariance loses rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..density import Functional
from ..dynamics import Dynamics
from ..errors import require
from ..kinds.gaussian import Gaussian
from ..observables.base import Observable, Snapshot
from ..observables.geometry import spectrum_rank
from ..observables.reading import weighted_sum
from ..runtime import Scalar

Which = Literal["A", "V"]
# A value at a Gaussian: of tokens, at the Gaussian with their mean and covariance.
Reading = Callable[..., Array]


def _mean(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, " d"]:
    """int x dmu."""
    return mu.mean


def _covariance(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, "d d"]:
    """int (x - alpha)(x - alpha)^T dmu."""
    return mu.covariance


def _variances(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, " d"]:
    """Eigenvalues of the covariance, increasing."""
    return jnp.linalg.eigvalsh(mu.covariance)


def _variance_ratio(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, ""]:
    """lambda_min/lambda_max of the covariance: 1 when round, 0 when a direction is lost."""
    values = jnp.linalg.eigvalsh(mu.covariance)
    return jnp.where(values[-1] > 0, values[0] / jnp.where(values[-1] > 0, values[-1], 1.0), 1.0)


def _covariance_rank(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, ""]:
    """exp(-sum_k p_k log p_k), p the eigenvalues of the covariance over its trace."""
    return spectrum_rank(jnp.linalg.eigvalsh(mu.covariance))


def _top_angle(model: Dynamics, t: Scalar, mu: Gaussian, of: Which) -> Float[Array, ""]:
    """Angle in [0, pi/2] between the top eigenvectors of the covariance and of A or V."""
    attention = model.attentions()
    require(bool(attention), "top_angle compares with A or V of attention, and this model has none")
    head = attention[0].gaussian_heads(t, mu.mean.size)[0]
    matrix = head.score if of == "A" else head.V
    first = jnp.linalg.eigh(mu.covariance)[1][:, -1]
    second = jnp.linalg.eigh((matrix + matrix.T) / 2.0)[1][:, -1]
    across = second - (first @ second) * first
    return jnp.arctan2(jnp.linalg.norm(across), jnp.abs(first @ second))


READINGS: dict[str, Reading] = {
    "mean": _mean,
    "covariance": _covariance,
    "variances": _variances,
    "variance_ratio": _variance_ratio,
    "covariance_rank": _covariance_rank,
    "top_angle": _top_angle,
}


def functionals(gaussian: Callable[[Array], Gaussian]) -> dict[str, Functional]:
    """The readings as functionals of a state from which `gaussian` makes the Gaussian."""

    def of_state(reading: Reading) -> Functional:
        return lambda model, t, state, **parameters: reading(
            model, t, gaussian(state), **parameters
        )

    return {name: of_state(reading) for name, reading in READINGS.items()}


def gaussian_of(snapshot: Snapshot) -> Gaussian:
    """The Gaussian with the mean and covariance of the tokens."""
    mu = snapshot.measure
    mean = weighted_sum(mu, mu.points)
    away = mu.points - mean
    return Gaussian(mean, (mu.weights[:, None] * away).T @ away)


def _observable(
    name: str,
    says: str,
    units: str = "1",
    axes: tuple[str, ...] = (),
    parameters: tuple[tuple[str, str], ...] = (),
) -> Observable:
    reading = READINGS[name]

    def of_tokens(snapshot: Snapshot, **given: str) -> Array:
        return reading(snapshot.model, snapshot.t, gaussian_of(snapshot), **given)

    return Observable(name, units, of_tokens, axes, parameters, says=says)


mean = _observable("mean", "Mean of the measure", "length", ("coordinate",))
covariance = _observable(
    "covariance", "Covariance of the measure", "length^2", ("coordinate", "other_coordinate")
)
variances = _observable(
    "variances", "Eigenvalues of the covariance, increasing", "length^2", ("rank",)
)
variance_ratio = _observable("variance_ratio", "Smallest over largest eigenvalue of the covariance")
covariance_rank = _observable(
    "covariance_rank", "Exponential of the entropy of the normalised spectrum of the covariance"
)


def top_angle(of: Which = "A") -> Observable:
    """Angle between the top eigenvector of the covariance and that of A = beta K^T Q, or of V.

    Of the first head of the first attention term; of a matrix that is not symmetric, its symmetric part.
    Where the largest eigenvalue is not simple its eigenvector, and this angle, are arbitrary.
    """
    require(of in ("A", "V"), f"top_angle is of A or V, got {of!r}")
    return _observable(
        "top_angle",
        "Angle of the top eigenvectors of covariance and weights",
        "rad",
        (),
        (("of", of),),
    )
