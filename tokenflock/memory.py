"""Refuse a request that cannot fit in memory before it takes the machine down."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .dynamics import Dynamics
from .errors import InputError
from .measure import Measure
from .reduce import Dense, Reduction

if TYPE_CHECKING:
    from .integrate.save import Save

SHARE = 0.8
LIMIT_VARIABLE = "TOKENFLOCK_MEMORY_GIB"


def available_bytes() -> float:
    """Memory that may be used: $TOKENFLOCK_MEMORY_GIB, or 80 % of what the machine has."""
    given = os.environ.get(LIMIT_VARIABLE)
    if given:
        return float(given) * 2**30
    try:
        return SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return float("inf")


def check_memory(
    model: Dynamics, x0: Measure, reduction: Reduction, saves: int, save: Save
) -> None:
    """Estimate the largest temporary and the stored states; say what to change if they do not fit."""
    attentions = model.attentions()
    heads = max((part.weights.head_count() for part in attentions), default=1)
    betas = max((part.beta.size for part in attentions), default=1)
    samples = betas
    for size in x0.batch_shape:
        samples *= size
    limit = available_bytes()
    temporary = reduction.peak_bytes(x0.n, heads, samples) if attentions else 0
    if temporary > limit:
        advice = "use reduction=Tiled()" if isinstance(reduction, Dense) else "use fewer samples"
        raise InputError(
            f"the sums over n={x0.n} tokens ({samples} samples, {heads} heads) need about "
            f"{_gib(temporary)} with {type(reduction).__name__}, the limit is {_gib(limit)}; {advice}"
        )
    stored = 8 * samples * saves * x0.n * x0.d if save.states else 0
    if stored > limit:
        raise InputError(
            f"storing {saves} states needs about {_gib(stored)}, the limit is {_gib(limit)}; "
            "save less often or only observables (states=False)"
        )


def _gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"
