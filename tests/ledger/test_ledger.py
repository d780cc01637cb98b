"""Every claim of the ledger: well formed, and holding with a control that fails."""

import re
from pathlib import Path

import pytest

import tokenflock.papers
from tokenflock.ledger import all_claims, check_many
from tokenflock.ledger.claim import SCALES
from tokenflock.ledger.examine import examine
from tokenflock.ledger.finding import papers

FOLDER = Path(tokenflock.papers.__file__).parent
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
    """A folder of papers/ is a paper; no number is taken twice, and none goes without a statement."""
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert {paper.folder.rpartition(".")[2] for paper in papers()} == folders
    assert len({paper.arxiv for paper in papers()}) == len(folders) >= 22
    assert len(CLAIMS) == len(all_claims()) >= 276
    for paper in papers():
        assert re.fullmatch(r"\d{4}\.\d{5}", paper.arxiv)
        assert re.fullmatch(r"(v\d+)?", paper.version)
        assert paper.claims, f"{paper.id} states nothing"
        assert paper.seen, f"{paper.id} does not say what its statements were read in"


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
