"""Every claim of the ledger: well formed, and holding with a control that fails."""

import re

import pytest

from tokenflock.claims import all_claims, check_many
from tokenflock.claims.core import SCALES
from tokenflock.claims.examine import examine
from tokenflock.claims.registry import papers

CLAIMS = {claim.id: claim for claim in all_claims()}
every_claim = pytest.mark.parametrize("name", CLAIMS)
# The default suite runs one claim of every paper; make test-all and make ledger run them all.
# Of the noisy papers, which share their code, one speaks for all.
SHARED = ("2604.16288", "2412.14813", "2510.20094")
IN_BRIEF = {c.id for paper in papers() if paper.id not in SHARED for c in paper.claims[:1]}


def marks(claim):
    """Claims of one file share compiled programs: one test process takes them all."""
    group = pytest.mark.xdist_group(claim.measure.__module__)
    return [group] if claim.id in IN_BRIEF else [group, pytest.mark.slow]


every_claim_by_file = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks(claim)) for name, claim in CLAIMS.items()]
)


def test_the_ledger_covers_its_papers():
    assert len(CLAIMS) == len(all_claims()) >= 70
    numbers = {paper.id.split("v")[0] for paper in papers()}
    assert numbers == {
        "2312.10794", "2305.05465", "2410.06833", "2411.04990", "2410.23228", "2509.25040",
        "2504.14697", "2510.22026", "2405.18273", "2512.01868", "2407.01602", "2502.02270",
        "2604.01978", "2501.18322", "2601.21366", "2606.05140", "2604.16288", "2412.14813", "2510.20094",
        "2601.21942", "2110.11773", "2605.09213",
    }  # fmt: skip


@every_claim
def test_is_well_formed(name):
    claim = CLAIMS[name]
    assert re.fullmatch(r"\d{4}\.\d{5}(v\d+)?/[A-Za-z0-9.-]+", name)
    assert claim.says.endswith(".")
    assert claim.where
    assert claim.at_paper_scale.keys() <= claim.given.keys()
    texts = {key for key, value in claim.given.items() if isinstance(value, str)}
    assert texts == claim.options.keys()
    for scale in SCALES:
        values = claim.values(scale)
        assert claim.outside(values) == [], "the claim leaves its own hypotheses"
        assert claim.unresolved(values) == [], "the measurement leaves its own limits"
        assert claim.outside({**values, **claim.control.settings}), "the control breaks none"
        for variant in claim.errata:
            assert variant.settings.keys() <= claim.given.keys()
            assert variant.when(claim.case(values, 0)), "a misprint that is never shown"


@every_claim_by_file
def test_holds_with_a_control_that_fails(name):
    report = examine(CLAIMS[name])
    assert report.verdict == "holds", str(report)
    assert report.control_failed, report.control


@pytest.mark.slow
@every_claim_by_file
def test_holds_from_another_seed(name):
    report = examine(CLAIMS[name], seed=11)
    assert report.verdict == "holds", str(report)


@pytest.mark.slow
def test_processes_change_no_number():
    names = [claim.id for claim in papers()[0].claims][:4]
    alone = {report.id: report.comparisons for report in check_many(names, jobs=1)}
    shared = {report.id: report.comparisons for report in check_many(names, jobs=2)}
    assert alone == shared
