"""2601.21942: Clustering in deep stochastic Transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2601.21942",
    title="Clustering in deep stochastic Transformers",
    authors="Fedorov, Sander, Elie, Marion, Laurière",
    seen="the abstract, and a reading note with model and thresholds",
)
