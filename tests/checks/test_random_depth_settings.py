"""Claims of 2604.01978 and 2601.21942 away from their own settings: refused or undecided, never refuted."""

import pytest

from tokenflock.errors import InputError
from tokenflock.ledger import find_claim
from tokenflock.ledger.examine import examine

HOMOGENIZED, STOCHASTIC = "2604.01978v1", "2601.21942"


def measured(name, **settings):
    claim = find_claim(name)
    values = claim.values("quick", settings)
    assert not claim.outside(values)
    assert not claim.unresolved(values)
    return claim.measure(claim.case(values, 0))


@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.03, 0.07])
@pytest.mark.parametrize("name", ["ballistic-rate", "modified-equation"])
def test_orders_hold_at_steps_that_do_not_divide_the_time(name, eta):
    report = examine(find_claim(f"{HOMOGENIZED}/{name}"), settings={"eta": eta})
    assert report.verdict == "holds", str(report)


@pytest.mark.parametrize(
    "settings", [{"eta": 0.15}, {"d": 500}, {"d": 3}], ids=["eta=.15", "d=500", "d=3"]
)
def test_the_weak_error_holds_at_other_settings(settings):
    for comparison in measured(f"{HOMOGENIZED}/weak-error", chains=1000, **settings):
        assert comparison.holds, comparison


def test_the_direction_lemma_holds_in_the_plane():
    """The quadrature is a number at d = 2, and the sampled mean agrees with it."""
    exact = measured(f"{HOMOGENIZED}/direction-lemma", d=2, overlap=0.3)[1]
    assert exact.holds
    assert exact.predicted == pytest.approx(2 * (0.2183351 - 0.3), abs=1e-6)


REFUSED = [
    (f"{HOMOGENIZED}/weak-error", {"d": 6, "start": 0.3}),
    (f"{HOMOGENIZED}/weak-error", {"eta": 0.0}),
    (f"{HOMOGENIZED}/weak-error", {"eta": 1e-6}),
    (f"{HOMOGENIZED}/weak-error", {"tau": -1.0}),
    (f"{HOMOGENIZED}/weak-error", {"start": 1.5}),
    (f"{HOMOGENIZED}/variance-proxy", {"draws": 2}),
    (f"{HOMOGENIZED}/high-temperature-moments", {"n": 1}),
    (f"{HOMOGENIZED}/overlap-drift", {"eta": -0.1}),
    (f"{STOCHASTIC}/hybrid-threshold", {"dt": 0.0}),
    (f"{STOCHASTIC}/hybrid-threshold", {"beta": 1000.0}),
    (f"{STOCHASTIC}/hybrid-switch", {"dt": -0.01}),
    (f"{STOCHASTIC}/equal-halves", {"side": 9}),
    (f"{STOCHASTIC}/antipodal-formations", {"n": 1}),
    (f"{STOCHASTIC}/phase-transition", {"offset": 0.0}),
    (f"{STOCHASTIC}/phase-transition", {"runs": 1}),
    (f"{STOCHASTIC}/absorption", {"layers": 10}),
    (f"{STOCHASTIC}/absorption", {"overlap": 1.0}),
]


@pytest.mark.parametrize(("name", "settings"), REFUSED)
def test_impossible_settings_are_refused(name, settings):
    with pytest.raises(InputError, match="cannot be measured"):
        examine(find_claim(name), settings=settings)


UNRESOLVED = [
    (f"{STOCHASTIC}/antipodal-formations", {"n": 3}),
    (f"{STOCHASTIC}/hybrid-threshold", {"runs": 100}),
    (f"{STOCHASTIC}/hybrid-switch", {"t": 1.0}),
    (f"{HOMOGENIZED}/hitting-law", {"t": 1.0}),
    (f"{HOMOGENIZED}/ballistic-rate", {"eta": 0.4}),
    (f"{HOMOGENIZED}/simplex-ode", {"beta": 200.0}),
    (f"{HOMOGENIZED}/depth-scale", {"d": 16}),
]


@pytest.mark.parametrize(("name", "settings"), UNRESOLVED)
def test_settings_beyond_a_measurement_are_named(name, settings):
    claim = find_claim(name)
    assert claim.unresolved(claim.values("quick", settings))
