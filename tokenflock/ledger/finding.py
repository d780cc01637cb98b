"""Which papers there are, found by listing their folder, and how a user names a claim or a figure."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import import_module

from ..errors import InputError
from ..names import find_named, without_version
from .claim import Claim
from .figure import Figure
from .paper import Paper

FOLDER = "tokenflock.papers"


@functools.cache
def papers() -> tuple[Paper, ...]:
    """Every paper, in the order of the arXiv numbers; their claims and figures are not loaded yet."""
    folder = import_module(FOLDER)
    found = [getattr(folder, name).PAPER for name in dir(folder)]
    return tuple(sorted(found, key=lambda paper: paper.arxiv))


def all_claims() -> list[Claim]:
    """Every claim that can be checked as it stands, paper by paper."""
    return [claim for paper in papers() for claim in paper.claims if not claim.asks]


def asking_claims() -> list[Claim]:
    """Claims about something only the user has: a trained checkpoint."""
    return [claim for paper in papers() for claim in paper.claims if claim.asks]


def all_figures() -> list[Figure]:
    """Every figure, paper by paper."""
    return [figure for paper in papers() for figure in paper.figures]


def find_claim(name: str) -> Claim:
    """The claim with this id, or with the unique end of one."""
    return find_named(name, [claim for paper in _meant(name) for claim in paper.claims], "claim")


def find_figure(name: str) -> Figure:
    """The figure with this id, or with the unique end of one."""
    return find_named(
        name, [figure for paper in _meant(name) for figure in paper.figures], "figure"
    )


def find_paper(name: str) -> Paper:
    """The paper with this arXiv number, with or without its version."""
    for paper in papers():
        if name in (paper.id, paper.arxiv):
            return paper
    known = ", ".join(paper.id for paper in papers())
    raise InputError(f"the ledger has no paper {name!r}; it has {known}")


def _meant(name: str) -> Iterable[Paper]:
    """The one paper whose number a name begins with, so that no other is loaded; all, if there is none."""
    number = without_version(name.partition("/")[0])
    return [paper for paper in papers() if paper.arxiv == number] or papers()
