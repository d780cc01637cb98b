"""All papers of the ledger, and how a user names a claim."""

from __future__ import annotations

import functools
from importlib import import_module

from ..errors import InputError
from ..names import find_named, without_version
from .core import Claim, Paper

# One module per paper, in the order of the ledger.
MODULES = (
    "perspective",
    "emergence",
    "metastability",
    "causal",
    "kinetic",
    "mean_field",
    "moderate",
    "quantitative",
    "normalisation",
    "kernels",
    "survey",
    "hardmax",
    "interpolation",
    "perceptron",
    "gaussian",
    "sinkformers",
    "homogenized",
    "noisy.arbitrary_dimension",
    "noisy.circle",
    "noisy.manifolds",
    "noisy.stationary",
    "stochastic",
)


@functools.cache
def papers() -> tuple[Paper, ...]:
    """The papers with their claims."""
    return tuple(import_module(f".{name}", __package__).PAPER for name in MODULES)


def all_claims() -> list[Claim]:
    """Every claim that can be checked as it stands, paper by paper."""
    return [claim for paper in papers() for claim in paper.claims if not claim.asks]


def asking_claims() -> list[Claim]:
    """Claims about something only the user has: a trained checkpoint."""
    return [claim for paper in papers() for claim in paper.claims if claim.asks]


def find_claim(name: str) -> Claim:
    """The claim with this id, or with the unique end of one."""
    return find_named(name, [*all_claims(), *asking_claims()], "claim")


def find_paper(name: str) -> Paper:
    """The paper with this arXiv number, with or without its version."""
    for paper in papers():
        if name in (paper.id, without_version(paper.id)):
            return paper
    known = ", ".join(paper.id for paper in papers())
    raise InputError(f"the ledger has no paper {name!r}; it has {known}")
