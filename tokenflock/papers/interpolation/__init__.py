"""2502.02270v3: Exact Sequence Interpolation with Transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2502.02270",
    version="v3",
    title="Exact Sequence Interpolation with Transformers",
    authors="Alcalde, Fantuzzi, Zuazua",
    seen="a secondary summary, the code of the experiments",
)
