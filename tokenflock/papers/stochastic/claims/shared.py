"""How far the paper was seen."""

from __future__ import annotations

from ....errors import require
from ....ledger.claim import Case

# What every claim of this paper has to admit.
SEEN = (
    "Only the abstract and a reading note (model, thresholds) were seen, not the theorems; every formula "
    "is derived here from the layer itself."
)
NUMBER = "the statement's number was not seen"


def check_runs(case: Case, least: int = 30) -> None:
    """Refuse so few runs that their spread is not known."""
    require(case.runs >= least, f"an error needs at least {least} runs, got runs={case.runs}")
