"""2510.22026v2: Normalization in attention dynamics."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2510.22026",
    version="v2",
    title="Normalization in attention dynamics",
    authors="N. Karagodin, S. Ge, Y. Polyanskiy, P. Rigollet",
    seen="a public transcription, a summary in 2512.01868, the first author's simulator",
)
