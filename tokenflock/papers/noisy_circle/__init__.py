"""2604.16288: Phase transitions for the noisy transformer model on the circle."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2604.16288",
    title="Phase transitions for the noisy transformer model on the circle",
    authors="Mun, Rosenzweig",
    seen="the abstract, with its formulas",
)
