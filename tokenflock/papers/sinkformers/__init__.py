"""2110.11773: Sinkformers: Transformers with doubly stochastic attention."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2110.11773",
    title="Sinkformers: Transformers with doubly stochastic attention",
    authors="Sander, Ablin, Blondel, Peyré",
    seen="the authors' code; the statements from memory, derived again",
)
