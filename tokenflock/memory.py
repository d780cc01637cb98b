"""Refuse a request that cannot fit in memory before it takes the machine down."""

from __future__ import annotations

import dataclasses
import math

import jax

from .batches import batch_count
from .dynamics import Dynamics
from .errors import TooLargeError
from .host_memory import SHARE, host_bytes, in_gib, stated_bytes
from .measure import Measure
from .reduce import Dense, Reduction
from .terms import Attention
from .weights import head_count

# Below so many tokens tiles save nothing: there are too many samples.
FEW_TOKENS = 1024


def available_bytes() -> float:
    """Memory that may be used: $TOKENFLOCK_MEMORY_GIB, or 80 % of machine, container and device."""
    return (
        host_bytes() if stated_bytes() is not None else min(host_bytes(), SHARE * _device_bytes())
    )


def _device_bytes() -> float:
    """Memory of an accelerator; a CPU reports none."""
    return float((jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", float("inf")))


def require_bytes(size: float, what: str, advice: str) -> None:
    """Refuse `what` if it needs more than there is."""
    limit = available_bytes()
    if size > limit:
        raise TooLargeError(
            f"{what} need about {in_gib(size)}, the limit is {in_gib(limit)}; {advice}"
        )


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What decides how much memory a run of tokens takes.

    attends -- whether sums over pairs of tokens are evaluated; keep -- whether every saved state is stored;
    implicit -- whether the solver needs Jacobians.
    """

    n: int
    d: int
    samples: int
    heads: int
    saves: int
    attends: bool
    keep: bool
    implicit: bool = False


def check_memory(
    model: Dynamics,
    x0: Measure,
    reduction: Reduction,
    saves: int,
    keep: bool,
    implicit: bool = False,
) -> None:
    """Estimate the largest temporary and the stored states; say what to change if they do not fit."""
    attentions = all_attentions(model)
    heads = max((head_count(part.weights) for part in attentions), default=1)
    samples = batch_count(model) * math.prod(x0.batch_shape)
    sizes = Sizes(x0.n, x0.d, samples, heads, saves, bool(attentions), keep, implicit)
    check_sizes(sizes, reduction)


def check_sizes(sizes: Sizes, reduction: Reduction) -> None:
    """As `check_memory`, from the numbers alone: nothing need be drawn yet."""
    n, d, samples = sizes.n, sizes.d, sizes.samples
    if sizes.attends:
        dense = isinstance(reduction, Dense)
        require_bytes(
            reduction.peak_bytes(n, sizes.heads, samples),
            f"the sums over n={n} tokens ({samples} samples, {sizes.heads} heads) with "
            f"{type(reduction).__name__}",
            "use reduction=Auto() or Tiled() (in a spec: reduction = 'auto' or 'tiled')"
            if dense and n > FEW_TOKENS
            else "use fewer samples"
            if samples > 1
            else "use fewer tokens",
        )
    if sizes.implicit:
        require_bytes(
            16.0 * samples * (n * d) ** 2,
            f"the Jacobians of an implicit solver (n={n}, d={d}, {samples} samples)",
            "use the default method, with a merge radius if tight clusters make it slow",
        )
    if sizes.keep:
        require_bytes(
            8.0 * samples * sizes.saves * n * d,
            f"{sizes.saves} stored states",
            "save less often or only observables (states=False)",
        )


def all_attentions(model: Dynamics) -> list[Attention]:
    """Every attention that is evaluated, that of a common noise included."""
    hidden = getattr(model.noise, "attention", None)
    return model.attentions() + ([] if hidden is None else [hidden])
