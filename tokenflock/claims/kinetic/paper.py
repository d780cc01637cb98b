"""The paper itself, and hypotheses that several claims share."""

from __future__ import annotations

from ..core import Paper

PAPER = Paper(
    "2605.09213v1",
    "Kinetic theory for Transformers and the lost-in-the-middle phenomenon",
    "Duerinckx, Geshkovski, Rossi",
)
BIASED = {"lambda > 0": lambda c: c.slope > 0}
ATTENTIVE = {"beta > 0": lambda c: c.beta > 0}
