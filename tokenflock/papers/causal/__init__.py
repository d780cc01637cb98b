"""2411.04990v2: Clustering in causal attention masking."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2411.04990",
    version="v2",
    title="Clustering in causal attention masking",
    authors="Karagodin, Polyanskiy, Rigollet",
    seen="a public transcription and a reading note",
)
