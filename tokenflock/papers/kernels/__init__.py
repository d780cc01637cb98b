"""2405.18273: Synchronization on circles and spheres with nonlinear interactions."""

from ...ledger.paper import Paper

PAPER = Paper(
    __name__,
    arxiv="2405.18273",
    title="Synchronization on circles and spheres with nonlinear interactions",
    authors="Criscitiello, McRae, Rebjock, Boumal",
    seen="the abstract, and its use in 2312.10794v4 and 2512.01868",
)
