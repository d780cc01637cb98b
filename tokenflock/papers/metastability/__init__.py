"""2410.06833v1: Dynamic metastability in the self-attention model."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2410.06833",
    version="v1",
    title="Dynamic metastability in the self-attention model",
    authors="Geshkovski, Koubbi, Polyanskiy, Rigollet",
    seen="all theorems in a public transcription with its misprints, the code of the figures",
)
