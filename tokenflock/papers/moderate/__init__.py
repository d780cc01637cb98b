"""2509.25040: A multiscale analysis of mean-field transformers in the moderate interaction regime."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2509.25040",
    title="A multiscale analysis of mean-field transformers in the moderate interaction regime",
    authors="Bruno, Pasqualotto, Agazzi",
    seen="the abstract, and the theorem that 2512.01868 quotes",
)
