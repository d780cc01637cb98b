"""What the infinite-token limit of a model needs, and sentences for what it cannot have."""

from __future__ import annotations

from ..density import Discretisation
from ..dynamics import Dynamics
from ..errors import require
from ..schedule import is_fixed


def require_fixed_numbers(model: Dynamics, what: str) -> None:
    """Refuse a model some of whose numbers change with time: `what` is that of one equation."""
    require(
        is_fixed(model),
        f"{what} are those of one equation, and numbers of {model.label} change with time; give a model with "
        "the numbers of one moment",
    )


def check_model(model: Dynamics, on: Discretisation) -> None:
    """Refuse models whose limit is not d_t mu + div(mu v[mu]) = T Laplacian mu on the space of `on`."""
    require(
        model.space is None or model.space == on.space,
        f"the model lives on {model.space}, the density on {on.space}",
    )
    require(
        model.scheme().is_plain,
        f"{type(model.normalisation).__name__} carries a radius beside the direction, which a density "
        "on the sphere does not hold; use post-LN, or tokens",
    )
    require(
        model.frame.is_original,
        "a density lives in the coordinates of its tokens; leave out the rescaled frame",
    )
    require(
        model.noise is None or model.temperature() is not None,
        "noise shared by all tokens moves the limit at random; only Brownian(temperature) has a density "
        "equation, use tokens",
    )
    for term in model.attentions():
        require(
            not term.mask.needs_order,
            f"{type(term.mask).__name__} masks need an order of the tokens, which a density has not; "
            "use mask=Full()",
        )
