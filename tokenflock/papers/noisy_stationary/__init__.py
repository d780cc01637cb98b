"""2510.20094: stationary solutions of McKean-Vlasov equations, for noisy transformers."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2510.20094",
    title="On the structure of stationary solutions to McKean-Vlasov equations with applications to "
    "noisy transformers",
    authors="Balasubramanian, Banerjee, Rigollet",
    seen="the abstract, with its formulas",
)
