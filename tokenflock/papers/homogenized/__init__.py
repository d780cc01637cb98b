"""2604.01978v1: Homogenized Transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2604.01978",
    version="v1",
    title="Homogenized Transformers",
    authors="Koubbi, Geshkovski, Rigollet",
    seen="the main statements in a public transcription",
)
