"""2601.21366v2: Perceptrons and localization of attention's mean-field landscape."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2601.21366",
    version="v2",
    title="Perceptrons and localization of attention's mean-field landscape",
    authors="Alvarez-Lopez, Geshkovski, Ruiz-Balet",
    seen="the main statements in a public transcription, the code",
)
