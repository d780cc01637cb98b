"""2501.18322v2: A unified perspective on the dynamics of deep Transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2501.18322",
    version="v2",
    title="A unified perspective on the dynamics of deep Transformers",
    authors="Castin, Ablin, Carrillo, Peyré",
    seen="the abstract and a reading note",
)
