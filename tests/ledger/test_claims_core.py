"""The machinery of the ledger, on claims invented here: verdicts, controls, errata, settings."""

import numpy as np
import pytest

from tokenflock.errors import InputError, SolveError
from tokenflock.ledger.claim import Comparison, at_least, at_most, broken, equals, misprint
from tokenflock.ledger.examine import examine
from tokenflock.ledger.paper import Paper


def invented(measure=None, **changes):
    """A claim 'x = 2' whose measurement is x itself plus an error proportional to the tolerance."""

    def plain(case):
        assert case.model in ("good", "bad")
        value = 2.0 if case.form == "corrected" else 3.0
        return [equals("x", case.x + case.noise * case.rtol / 1e-8, value, 0.1)]

    paper = Paper("", "0000.00000", "Invented", "Nobody", seen="never", version="v1")
    details = {
        "where": "Lemma 1",
        "says": "x is two.",
        "given": {"x": 2.0, "n": 4, "noise": 0.0, "model": "good", "form": "corrected"},
        "at_paper_scale": {"n": 64},
        "options": {"model": ("good", "bad"), "form": ("corrected", "printed")},
        "needs": {
            "x is two": lambda c: c.x == 2.0,
            "corrected form": lambda c: c.form != "printed",
        },
        "control": broken("three is not two", x=3.0),
        "errata": [misprint("printed as three", form="printed")],
    }
    return paper.claim("lemma-1", **{**details, **changes})(measure or plain)


@pytest.mark.parametrize(
    ("comparison", "margin"),
    [
        (Comparison("", 1.2, "=", 1.0, 0.5), 0.3),
        (Comparison("", 0.8, "=", 1.0, 0.1), -0.1),
        (Comparison("", 0.8, "<=", 1.0, 0.0), 0.2),
        (Comparison("", 1.3, "<=", 1.0, 0.1), -0.2),
        (Comparison("", 1.3, ">=", 1.0, 0.0), 0.3),
        (Comparison("", 0.8, ">=", 1.0, 0.1), -0.1),
    ],
)
def test_margin(comparison, margin):
    assert comparison.margin == pytest.approx(margin)
    assert comparison.holds == (margin >= 0)


def test_of_an_array_the_worst_entry_speaks():
    assert equals("", [1.0, 1.3, 0.9], 1.0, 0.5).measured == 1.3
    assert at_most("", [1.0, 5.0, 3.0], [2.0, 9.0, 3.5]).measured == 3.0
    assert at_least("", [1.0, 5.0, 3.0], [0.0, 4.5, 1.0]).measured == 5.0


@pytest.mark.parametrize(
    "compare", [lambda v: equals("", v, 1.0, 9.0), lambda v: at_most("", v, 9)]
)
def test_what_is_not_a_number_never_holds(compare):
    found = compare([1.0, np.nan, 2.0])
    assert np.isnan(found.measured)
    assert not found.holds


def test_a_true_claim_holds():
    report = examine(invented())
    assert report.verdict == "holds"
    assert (report.measured, report.predicted, report.tolerance) == (2.0, 2.0, 0.1)
    assert report.control_failed
    assert report.control["measured"] == 3.0
    assert [trial["failed"] for trial in report.errata] == [True]
    assert report.outside == []


def test_a_false_claim_fails_and_says_what_was_broken():
    report = examine(invented(), settings={"x": 2.5})
    assert report.verdict == "fails"
    assert report.outside == ["x is two"]
    assert "outside its hypotheses (x is two)" in str(report)


def test_numerical_error_against_the_margin():
    # Halving the tolerance moves x by noise / 2; the margin is 0.1 - noise / 2.
    assert examine(invented(), settings={"noise": 0.015}).verdict == "holds"
    moved = examine(invented(), settings={"noise": 0.03})
    assert moved.verdict == "inconclusive"
    assert moved.numerical_error == pytest.approx(0.015)
    assert "numerical error" in moved.reason


def test_a_control_that_does_not_fail_leaves_nothing_proved():
    report = examine(invented(control=broken("n does not matter", n=5)))
    assert report.verdict == "inconclusive"
    assert not report.control_failed
    assert "control did not fail" in report.reason


def test_a_misprint_that_is_no_misprint_is_reported():
    report = examine(invented(errata=[misprint("not one", n=5)]))
    assert report.verdict == "inconclusive"
    assert "printed form did not fail" in report.reason


def test_a_failure_outweighs_an_inconclusive_comparison():
    def measure(case):
        unsure = equals("unsure", 2.0 + 0.1 * case.rtol / 1e-8, 2.0, 0.1)
        return [unsure, at_most("wrong", 3.0, 2.0)]

    report = examine(invented(measure))
    assert report.verdict == "fails"
    assert report.what == "wrong"


def test_a_run_that_breaks_off_is_told_apart_from_a_refutation():
    def measure(case):
        raise SolveError("too many steps; do this")

    report = examine(invented(measure))
    assert (report.verdict, report.run_failed) == ("inconclusive", True)
    assert "too many steps; do this" in report.reason


def test_what_the_measurement_cannot_resolve_is_inconclusive():
    claim = invented(resolves={"n at least 4": lambda c: c.n >= 4})
    assert examine(claim).verdict == "holds"
    report = examine(claim, settings={"n": 3, "x": 2.5})
    assert report.verdict == "inconclusive"
    assert "this measurement needs n at least 4" in report.reason


def test_a_misprint_is_only_shown_where_it_is_wrong():
    wrong = misprint("never here", when=lambda c: c.n > 4, n=5)
    report = examine(invented(errata=[wrong]))
    assert (report.verdict, report.errata) == ("holds", [])


def test_a_start_that_a_broken_hypothesis_makes_impossible():
    def measure(case):
        if case.x > 5:
            raise InputError("no such tokens")
        return [equals("x", case.x, 2.0, 0.1)]

    claim = invented(measure, errata=[])
    report = examine(claim, settings={"x": 6.0})
    assert (report.verdict, report.outside) == ("inconclusive", ["x is two"])
    assert "no such tokens" in report.reason
    assert report.control_failed is None


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("zero"), IndexError("none"), ValueError("bad")]
)
def test_settings_that_cannot_be_measured_are_bad_input(error):
    def measure(case):
        if case.n == 7:
            raise error
        return [equals("x", case.x, 2.0, 0.1)]

    with pytest.raises(InputError, match="cannot be measured with n=7"):
        examine(invented(measure, errata=[]), settings={"n": 7})


def test_an_exact_count_does_not_hide_the_measurement():
    def measure(case):
        return [equals("count", 4, 4, 0.0), equals("x", case.x + 0.05, 2.0, 0.1)]

    assert examine(invented(measure, errata=[])).what == "x"


def test_scales():
    claim = invented()
    assert claim.values("quick")["n"] == 4
    assert claim.values("paper")["n"] == 64
    assert claim.values("paper", {"n": "7"})["n"] == 7


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"y": "3"}, "has no parameter 'y'; it has x, n"),
        ({"x": "two"}, "x must be a number, got 'two'"),
        ({"n": "2.5"}, "n must be a whole number"),
        ({"n": "0"}, "n must be at least 1"),
        ({"x": "inf"}, "x must be finite"),
        ({"model": "ugly"}, "model must be one of good, bad"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(InputError, match=words):
        invented().values("quick", settings)


@pytest.mark.parametrize("name", ["seed", "scale", "rtol"])
def test_no_parameter_hides_an_argument_of_check(name):
    with pytest.raises(InputError, match=f"lemma-1: no parameter may be called {name}"):
        invented(given={"x": 2.0, name: 1.0})
