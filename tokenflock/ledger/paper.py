"""What a paper is: its identity, stated once, and the claims and figures found in its folder.

    tokenflock/papers/<name>/
        __init__.py   PAPER = Paper(__name__, arxiv=..., version=..., title=..., authors=..., seen=...)
        claims        a module or a package: functions under @PAPER.claim(...)
        figures       a module or a package: functions under @PAPER.figure(...)

A folder is a paper because it is there: nothing else names it. Claims and figures are loaded when they are
asked for, so that one claim starts without the other papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import require

if TYPE_CHECKING:
    from .claim import Claim, Hypotheses, Measure, Settings, Variant
    from .figure import Compute, Figure

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Paper:
    """One paper: `version` is that of the statements, or empty where `seen` says what they were read in."""

    folder: str
    arxiv: str
    title: str
    authors: str
    seen: str
    version: str = ""
    _claims: list[Claim] = field(default_factory=list, repr=False)
    _figures: list[Figure] = field(default_factory=list, repr=False)

    @property
    def id(self) -> str:
        """The arXiv number with the version, as in 2312.10794v4."""
        return self.arxiv + self.version

    @property
    def claims(self) -> Sequence[Claim]:
        """The claims, in the order in which the folder's modules state them."""
        self._load("claims")
        return tuple(self._claims)

    @property
    def figures(self) -> Sequence[Figure]:
        """The figures."""
        self._load("figures")
        return tuple(self._figures)

    def claim(
        self,
        name: str,
        *,
        where: str,
        says: str,
        given: Settings,
        control: Variant,
        needs: Hypotheses,
        resolves: Hypotheses = NOTHING,
        at_paper_scale: Settings = NOTHING,
        options: Mapping[str, Sequence[str]] = NOTHING,
        errata: Sequence[Variant] = (),
        note: str = "",
        rtol: float = 1e-8,
        atol: float = 1e-10,
    ) -> Callable[[Measure], Claim]:
        """Register the decorated measurement as the claim `PAPER/name`."""
        from .claim import TAKEN, Claim

        taken = sorted(TAKEN & set(given))
        require(not taken, f"{self.id}/{name}: no parameter may be called {', '.join(taken)}")

        def register(measure: Measure) -> Claim:
            claim = Claim(
                id=f"{self.id}/{name}",
                paper=self,
                where=where,
                says=says,
                given=given,
                at_paper_scale=at_paper_scale,
                options=options,
                needs=needs,
                resolves=resolves,
                control=control,
                errata=tuple(errata),
                note=note,
                rtol=rtol,
                atol=atol,
                measure=measure,
            )
            self._claims.append(claim)
            return claim

        return register

    def figure(
        self,
        name: str,
        *,
        title: str,
        shows: str,
        quick: Mapping[str, Any],
        paper: Mapping[str, Any] = NOTHING,
    ) -> Callable[[Compute], Figure]:
        """Register the decorated data function as the figure `PAPER/name`."""
        from .figure import Figure

        def register(compute: Compute) -> Figure:
            figure = Figure(f"{self.id}/{name}", title, shows, quick, paper, compute)
            self._figures.append(figure)
            return figure

        return register

    def _load(self, part: str) -> None:
        if self.folder and find_spec(f"{self.folder}.{part}") is not None:
            import_module(f"{self.folder}.{part}")
