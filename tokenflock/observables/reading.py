"""What observables read off a snapshot: the velocity, the terms, the attention, the tokens it compares."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..measure import Measure
from ..space import Sphere
from ..terms import Attention
from .base import Snapshot


def velocity(snapshot: Snapshot) -> Float[Array, "n d"]:
    """dx_i/dt of the drift, in the coordinates of the snapshot (directions where radii move)."""
    model, mu = snapshot.model, snapshot.measure
    return model.velocity(snapshot.t, model.particles(mu), mu, snapshot.reduction).points


def first_attention(model: Dynamics, purpose: str) -> Attention:
    """The model's first attention term, or the one inside its common noise (2601.21942)."""
    shared = [] if model.noise is None else model.noise.attentions()
    terms = [*model.attentions(), *shared]
    if terms:
        return terms[0]
    raise InputError(f"{purpose} needs a model with an attention term, {model.label} has none")


def compared(snapshot: Snapshot) -> Measure:
    """The tokens as attention compares them: x = e^{tV} z in the rescaled frame (2305.05465)."""
    model = snapshot.model
    return model.frame.original(model.terms, snapshot.t, snapshot.measure)


def require_sphere(snapshot: Snapshot, name: str, advice: str) -> Sphere:
    """The sphere the tokens live on; refuses R^d with advice."""
    space = snapshot.measure.space
    if not isinstance(space, Sphere):
        raise InputError(f"{name} needs tokens on a sphere, got {space}; {advice}")
    return space


def require_order(snapshot: Snapshot, name: str) -> None:
    """Refuse tokens that have no reading order."""
    require(
        snapshot.measure.ordered,
        f"{name} depends on the order of the tokens, but this measure has none (ordered=False)",
    )


def weighted_sum(mu: Measure, values: Float[Array, "n ..."]) -> Float[Array, ...]:
    """int f dmu = sum_i w_i f_i."""
    return jnp.tensordot(mu.weights, values, axes=1)
