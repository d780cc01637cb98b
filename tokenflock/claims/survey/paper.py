"""The survey; what it restates from papers of the ledger is checked there."""

from ..core import Paper

PAPER = Paper("2512.01868", "The mean-field dynamics of transformers", "P. Rigollet")
