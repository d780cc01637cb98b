"""The paper itself, and how far it was seen."""

from __future__ import annotations

from ..core import Paper

PAPER = Paper(
    "2601.21942",
    "Clustering in deep stochastic Transformers",
    "Fedorov, Sander, Elie, Marion, Laurière",
)
# What every claim of this paper has to admit.
SEEN = (
    "Only the abstract and a reading note (model, thresholds) were seen, not the theorems; every formula "
    "is derived here from the layer itself."
)
NUMBER = "the statement's number was not seen"
