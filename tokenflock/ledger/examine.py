"""Examine a claim: measure, measure again with halved tolerances, run its control, give a verdict."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from ..errors import InputError, MissingExtraError, SolveError, TokenflockError
from .claim import Claim, Comparison, Scale, Settings, Value, Variant

Verdict = Literal["holds", "fails", "inconclusive"]
# Halving the tolerances may move a measurement by at most this part of its margin.
TRUSTED_PART = 0.1


@dataclass(frozen=True)
class Finding:
    """A comparison with the error of its measured value."""

    comparison: Comparison
    numerical_error: float

    @property
    def verdict(self) -> Verdict:
        """holds or fails, if the error lies well inside the margin."""
        margin = self.comparison.margin
        if self.numerical_error > TRUSTED_PART * abs(margin):
            return "inconclusive"
        return "holds" if self.comparison.holds else "fails"

    @property
    def closeness(self) -> float:
        """The margin in units of what was allowed: the smallest is the tightest comparison.

        A count that is exactly right has no margin to speak of, and comes last.
        """
        if self.comparison.tolerance == self.comparison.margin == 0:
            return float("inf")
        allowed = self.comparison.tolerance or abs(self.comparison.predicted) or 1.0
        margin = self.comparison.margin / allowed
        return margin if margin == margin else float("-inf")


@dataclass(frozen=True)
class Trial:
    """A variant (control or misprint) that was run, and whether it failed as it must."""

    why: str
    settings: dict[str, Value]
    failed: bool
    what: str
    measured: float
    predicted: float


@dataclass(frozen=True)
class Report:
    """Everything a check found out about one claim."""

    id: str
    paper: str
    where: str
    says: str
    verdict: Verdict
    reason: str
    what: str
    relation: str
    measured: float | None
    predicted: float | None
    tolerance: float | None
    numerical_error: float | None
    control_failed: bool | None  # None: it was not run
    outside: list[str]
    seconds: float
    settings: dict[str, Value]
    scale: str
    seed: int
    control: dict[str, Any] = field(default_factory=dict)
    errata: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    run_failed: bool = False

    def __str__(self) -> str:
        outside = f", outside its hypotheses ({'; '.join(self.outside)})" if self.outside else ""
        return f"{self.id}: {self.verdict}{outside}. {self.evidence}"

    @property
    def evidence(self) -> str:
        """The tightest comparison in one line, or why there is none."""
        if self.measured is None:
            return self.reason
        allowed = f" +- {self.tolerance:.3g}" if self.tolerance else ""
        return (
            f"{self.what}: {self.measured:.6g} {self.relation} {self.predicted:.6g}{allowed} "
            f"(error {self.numerical_error:.1e})" + (f"; {self.reason}" if self.reason else "")
        )


def examine(
    claim: Claim,
    scale: Scale = "quick",
    seed: int = 0,
    settings: Settings = MappingProxyType({}),
) -> Report:
    """Measure a claim and judge it. Inconclusive where a run breaks off or an extra is missing."""
    start = time.perf_counter()
    values = claim.values(scale, settings)
    found = _Found()
    try:
        found.outside = claim.outside(values, seed)
        found.unresolved = claim.unresolved(values, seed)
        found.findings = _findings(claim, values, seed)
        found.control = _trial(claim, values, claim.control, seed)
        case = claim.case(values, seed)
        found.errata = [_trial(claim, values, v, seed) for v in claim.errata if v.when(case)]
    except SolveError as error:
        found.broke_off = str(error)
    except MissingExtraError as error:
        found.uninstalled = str(error)
    except (ArithmeticError, LookupError, ValueError, TokenflockError) as error:
        if not settings:
            raise
        if not found.outside:
            raise InputError(_cannot(claim, settings, error)) from error
        found.impossible = str(error)
    return _report(claim, values, scale, seed, time.perf_counter() - start, found)


@dataclass
class _Found:
    """What an examination has found so far."""

    outside: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    control: Trial | None = None
    errata: list[Trial] = field(default_factory=list)
    broke_off: str = ""
    impossible: str = ""
    uninstalled: str = ""


def _cannot(claim: Claim, settings: Settings, error: Exception) -> str:
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{claim.id} cannot be measured with {given} ({error}); stay closer to its own settings"


def _findings(claim: Claim, values: dict[str, Value], seed: int) -> list[Finding]:
    first = claim.measure(claim.case(values, seed))
    again = claim.measure(claim.case(values, seed, refine=2))
    return [
        # The change of the margin is that of the measurement, whichever entry of an array decides.
        Finding(finer, abs(finer.margin - coarse.margin))
        for coarse, finer in zip(first, again, strict=True)
    ]


def _trial(claim: Claim, values: dict[str, Value], variant: Variant, seed: int) -> Trial:
    """Run a variant; it fails by its worst comparison."""
    changed = {**values, **variant.settings}
    comparisons = claim.measure(claim.case(changed, seed))
    worst = min(comparisons, key=lambda c: Finding(c, 0.0).closeness)
    failed = any(not comparison.holds for comparison in comparisons)
    return Trial(
        variant.why, dict(variant.settings), failed, worst.what, worst.measured, worst.predicted
    )


def _report(
    claim: Claim, values: dict[str, Value], scale: str, seed: int, seconds: float, found: _Found
) -> Report:
    verdict, reason = _judge(found)
    tightest = min(found.findings, key=lambda finding: finding.closeness, default=None)
    shown = None if tightest is None else tightest.comparison
    return Report(
        id=claim.id,
        paper=claim.paper.id,
        where=claim.where,
        says=claim.says,
        verdict=verdict,
        reason=reason,
        what="" if shown is None else shown.what,
        relation="" if shown is None else shown.relation,
        measured=None if shown is None else float(shown.measured),
        predicted=None if shown is None else float(shown.predicted),
        tolerance=None if shown is None else float(shown.tolerance),
        numerical_error=None if tightest is None else float(tightest.numerical_error),
        control_failed=None if found.control is None else found.control.failed,
        outside=found.outside,
        seconds=seconds,
        settings=values,
        scale=scale,
        seed=seed,
        control={} if found.control is None else asdict(found.control),
        errata=[asdict(trial) for trial in found.errata],
        comparisons=[_listed(finding) for finding in found.findings],
        note=claim.note,
        run_failed=bool(found.broke_off),
    )


def _judge(found: _Found) -> tuple[Verdict, str]:
    """The verdict, and the reason where it is not plain."""
    if found.broke_off:
        return "inconclusive", f"the run broke off: {found.broke_off}"
    if found.uninstalled:
        return "inconclusive", found.uninstalled
    if found.impossible:
        return "inconclusive", f"nothing to measure outside the hypotheses: {found.impossible}"
    if found.unresolved:
        return "inconclusive", f"this measurement needs {'; '.join(found.unresolved)}"
    verdicts = [finding.verdict for finding in found.findings]
    if "fails" in verdicts:
        return "fails", ""
    if "inconclusive" in verdicts:
        return "inconclusive", "the numerical error is too large against the margin"
    assert found.control is not None
    if not found.control.failed:
        return "inconclusive", f"the control did not fail: {found.control.why}"
    for trial in found.errata:
        if not trial.failed:
            return "inconclusive", f"the printed form did not fail: {trial.why}"
    return "holds", ""


def _listed(finding: Finding) -> dict[str, Any]:
    found = finding.comparison
    return {
        **asdict(found),
        "margin": found.margin,
        "numerical_error": finding.numerical_error,
        "verdict": finding.verdict,
    }
