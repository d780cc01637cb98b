"""What the infinite-token limit of a model needs, and sentences for what it cannot have."""

from __future__ import annotations

from ..density import Discretisation
from ..dynamics import Dynamics, Lab
from ..errors import require
from ..noise import Brownian
from ..normalisation import PostLN


def check_model(model: Dynamics, on: Discretisation) -> None:
    """Refuse models whose limit is not d_t mu + div(mu v[mu]) = T Laplacian mu on the space of `on`."""
    require(
        model.space is None or model.space == on.space,
        f"the model lives on {model.space}, the density on {on.space}",
    )
    require(
        isinstance(model.normalisation, PostLN | None),
        f"{type(model.normalisation).__name__} carries a radius beside the direction, which a density "
        "on the sphere does not hold; use post-LN, or tokens",
    )
    require(
        isinstance(model.frame, Lab), "a density lives in the lab frame; leave out the rescaled one"
    )
    require(
        isinstance(model.noise, Brownian | None),
        "noise shared by all tokens moves the limit at random; only Brownian(temperature) has a density "
        "equation, use tokens",
    )
    for term in model.attentions():
        require(
            not term.mask.needs_order,
            f"{type(term.mask).__name__} masks need an order of the tokens, which a density has not; "
            "use mask=Full()",
        )
