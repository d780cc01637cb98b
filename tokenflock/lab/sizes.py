"""How large a run is by its spec alone, so that what cannot fit is refused before anything is drawn."""

from __future__ import annotations

from ..memory import Sizes, check_sizes
from ..reduce import Dense
from .spec import RunSpec
from .tokens import check_size, size_of


def refuse_too_large(spec: RunSpec) -> None:
    """Refuse the tokens, the sums over them and the saved states of a run that do not fit in memory."""
    if spec.tokens is None:
        return
    check_size(spec.tokens)
    n, d = tokens_of(spec)
    beta = getattr(spec.model, "beta", None)
    sizes = Sizes(
        n=n,
        d=d,
        samples=(getattr(spec.tokens, "samples", None) or 1)
        * (len(beta) if isinstance(beta, list) else 1),
        heads=heads_of(spec),
        saves=len(spec.save.build().times(spec.solve.t1)),
        attends=hasattr(spec.model, "beta"),
        keep=spec.save.states,
        implicit=spec.solve.method == "stiff",
    )
    check_sizes(sizes, spec.solve.build_reduction() or Dense())


def tokens_of(spec: RunSpec) -> tuple[int, int]:
    """Number of tokens, and of their coordinates."""
    return size_of(spec.tokens)


def heads_of(spec: RunSpec) -> int:
    """Number of heads of its attention."""
    weights = getattr(spec.model, "weights", None)
    return getattr(weights, "heads", None) or 1
