"""2605.09213v1: Kinetic theory for Transformers and the lost-in-the-middle phenomenon."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2605.09213",
    version="v1",
    title="Kinetic theory for Transformers and the lost-in-the-middle phenomenon",
    authors="Duerinckx, Geshkovski, Rossi",
    seen="the main statements in a public transcription, the code",
)
