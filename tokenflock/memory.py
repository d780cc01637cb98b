"""Refuse a request that cannot fit in memory before it takes the machine down."""

from __future__ import annotations

import os
from pathlib import Path

import jax

from .batches import batch_count
from .dynamics import Dynamics
from .errors import TooLargeError, require
from .measure import Measure
from .reduce import Dense, Reduction
from .terms import Attention
from .weights import head_count

SHARE = 0.8
LIMIT_VARIABLE = "TOKENFLOCK_MEMORY_GIB"
GIB = 2.0**30
# The limit of a container (cgroup v2), which the machine's own count of pages does not know.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def available_bytes() -> float:
    """Memory that may be used: $TOKENFLOCK_MEMORY_GIB, or 80 % of machine, container and device."""
    given = os.environ.get(LIMIT_VARIABLE)
    if given:
        return _stated(given)
    return SHARE * min(_machine_bytes(), _container_bytes(), _device_bytes())


def _stated(text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = float("nan")
    require(
        size > 0, f"{LIMIT_VARIABLE} must be a positive number of GiB, for example 16; got {text!r}"
    )
    return size * GIB


def _machine_bytes() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return float("inf")


def _container_bytes() -> float:
    try:
        return float(CONTAINER_LIMIT.read_text())
    except (OSError, ValueError):
        return float("inf")


def _device_bytes() -> float:
    """Memory of an accelerator; a CPU reports none."""
    return float((jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", float("inf")))


def require_bytes(size: float, what: str, advice: str) -> None:
    """Refuse `what` if it needs more than there is."""
    limit = available_bytes()
    if size > limit:
        raise TooLargeError(f"{what} need about {_gib(size)}, the limit is {_gib(limit)}; {advice}")


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
    samples = batch_count(model)
    for size in x0.batch_shape:
        samples *= size
    if attentions:
        dense = isinstance(reduction, Dense)
        require_bytes(
            reduction.peak_bytes(x0.n, heads, samples),
            f"the sums over n={x0.n} tokens ({samples} samples, {heads} heads) with "
            f"{type(reduction).__name__}",
            "use reduction=Auto() or Tiled() (in a spec: reduction = 'auto' or 'tiled')"
            if dense
            else "use fewer samples",
        )
    if implicit:
        require_bytes(
            16.0 * samples * (x0.n * x0.d) ** 2,
            f"the Jacobians of an implicit solver (n={x0.n}, d={x0.d}, {samples} samples)",
            "use the default method, with a merge radius if tight clusters make it slow",
        )
    if keep:
        require_bytes(
            8.0 * samples * saves * x0.n * x0.d,
            f"{saves} stored states",
            "save less often or only observables (states=False)",
        )


def all_attentions(model: Dynamics) -> list[Attention]:
    """Every attention that is evaluated, that of a common noise included."""
    hidden = getattr(model.noise, "attention", None)
    return model.attentions() + ([] if hidden is None else [hidden])


def _gib(size: float) -> str:
    return f"{size / GIB:.3g} GiB"
