"""What closed forms ask of a kind of attention: whether it averages, and its clock.

They are those of weights e^{beta <x, y>}, with the partition function (`kinds.Softmax`: SA) or without
(`kinds.Unnormalised`: USA, in the clock of its convention).
"""

import jax.numpy as jnp
import numpy as np

from ..kinds import Kind, Softmax, Unnormalised
from ._checks import Array

SA = Softmax()
USA = Unnormalised()


def averages(kind: Kind) -> bool:
    """Whether a token's weights sum to one; refused of kinds whose weights are not e^{beta <x, y>}."""
    if not getattr(kind, "exponential", False):
        raise ValueError(
            f"this closed form is that of weights e^(beta <x, y>), got {getattr(kind, 'name', repr(kind))}; "
            "pass kinds.Softmax() for SA or kinds.Unnormalised(convention) for USA"
        )
    return kind.averages


def log_speed(kind: Kind, beta: Array) -> Array:
    """log of the field of an unaveraged kind over the one with weights e^{beta(<x,y>-1)}/n."""
    averages(kind)
    return np.asarray(kind.log_speed(jnp.asarray(beta)), dtype=np.float64)
