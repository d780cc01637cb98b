"""2305.05465v6: The emergence of clusters in self-attention dynamics."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2305.05465",
    version="v6",
    title="The emergence of clusters in self-attention dynamics",
    authors="Geshkovski, Letrouit, Polyanskiy, Rigollet",
    seen="all theorems in a public transcription, the code of the figures",
)
