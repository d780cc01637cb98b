"""Hypotheses that several claims share."""

from __future__ import annotations

BIASED = {"lambda > 0": lambda c: c.slope > 0}
ATTENTIVE = {"beta > 0": lambda c: c.beta > 0}
