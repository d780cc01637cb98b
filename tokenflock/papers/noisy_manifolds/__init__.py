"""2412.14813: stationary McKean-Vlasov equations on high-dimensional spheres."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2412.14813",
    title="Solutions of stationary McKean-Vlasov equation on a high-dimensional sphere and other "
    "Riemannian manifolds",
    authors="Shalova, Schlichting",
    seen="the abstract, with its formulas",
)
