"""2407.01602: Clustering in pure-attention hardmax transformers and its role in sentiment analysis."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2407.01602",
    title="Clustering in pure-attention hardmax transformers and its role in sentiment analysis",
    authors="Alcalde, Fantuzzi, Zuazua",
    seen="the abstract, the authors' notebooks and a blog post",
)
