"""2606.05140: Phase transitions for the noisy transformer model in arbitrary dimension."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2606.05140",
    title="Phase transitions for the noisy transformer model in arbitrary dimension",
    authors="Mun, Rosenzweig",
    seen="the abstract, with its formulas",
)
