"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2411.04990v2",
    "Clustering in causal attention masking",
    "Karagodin, Polyanskiy, Rigollet",
)
