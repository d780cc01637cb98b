"""2410.23228: Emergence of meta-stable clustering in mean-field transformer models."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2410.23228",
    title="Emergence of meta-stable clustering in mean-field transformer models",
    authors="Bruno, Pasqualotto, Agazzi",
    seen="the abstract, the authors' notebook",
)
