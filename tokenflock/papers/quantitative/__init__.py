"""2504.14697: Quantitative clustering in mean-field transformer models."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2504.14697",
    title="Quantitative clustering in mean-field transformer models",
    authors="Chen, Lin, Polyanskiy, Rigollet",
    seen="the main theorem as 2512.01868 states it",
)
