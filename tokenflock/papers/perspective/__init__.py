"""2312.10794v4: A mathematical perspective on Transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2312.10794",
    version="v4",
    title="A mathematical perspective on Transformers",
    authors="Geshkovski, Letrouit, Polyanskiy, Rigollet",
    seen="the paper's text",
)
