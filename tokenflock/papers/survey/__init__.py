"""2512.01868: The mean-field dynamics of transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2512.01868",
    title="The mean-field dynamics of transformers",
    authors="P. Rigollet",
    seen="the paper's source",
)
