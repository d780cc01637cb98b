"""The stopwatch itself, with a clock that is told how long everything takes."""

import pytest

from tokenflock.applications.benchmarks.core import Row
from tokenflock.applications.benchmarks.solve import seconds_at
from tokenflock.applications.benchmarks.timing import Samples, again, calls_within, race


class Clock:
    """Time passes only when a contestant runs."""

    def __init__(self):
        self.now, self.ran = 0.0, []

    def __call__(self):
        return self.now

    def contestant(self, name, *durations):
        left = list(durations)

        def run():
            self.ran.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


def test_contestants_run_in_turn_and_another_one_is_first_in_each_round():
    clock = Clock()
    names = "abc"
    samples = race({name: clock.contestant(name, 1.0) for name in names}, 3, 1e9, clock)
    assert "".join(clock.ran) == "abcbcacab"
    assert all(len(samples[name].seconds) == 3 for name in names)


def test_the_median_and_the_half_range_of_the_repeats():
    clock = Clock()
    samples = race({"ours": clock.contestant("ours", 2.0, 9.0, 1.0)}, 3, 1e9, clock)["ours"]
    assert samples.seconds == (2.0, 9.0, 1.0)
    assert samples.median == 2.0
    assert samples.spread == pytest.approx((9.0 - 1.0) / 2 / 2.0)
    assert Samples((3.0,)).spread == 0.0


def test_who_has_used_up_its_share_sits_out_but_everyone_runs_once():
    clock = Clock()
    fast, slow = clock.contestant("fast", 0.1), clock.contestant("slow", 50.0)
    pulses = []
    before = lambda: pulses.append(clock.now)  # noqa: E731
    samples = race({"fast": fast, "slow": slow}, 5, 10.0, clock, before)
    assert len(samples["slow"].seconds) == 1
    assert len(samples["fast"].seconds) == 5
    assert len(pulses) == 6


@pytest.mark.parametrize(("unit", "ratio"), [("pairs/s", 6 / 8), ("s", 2 / 6), ("GB", 2 / 6)])
def test_the_ratio_is_above_one_where_ours_is_better_and_against_the_best_peer(unit, ratio):
    row = Row("case", 6.0, unit, peers={"first": 2.0, "second": 8.0})
    assert row.ratio == pytest.approx(ratio)
    better = Row("case", 12.0 if unit == "pairs/s" else 1.0, unit, peers={"first": 2.0})
    assert better.ratio is not None
    assert better.ratio > 1
    assert Row("case", 6.0, unit).ratio is None


def test_bars_are_met_or_not_or_have_nobody_to_be_held_against():
    row = Row("case", 6.0, "s", error=1e-3, peers={"slow": 12.0})
    row.bar_against("slow", 2.0).bar_against("slow", 2.1).bar_against("absent", 1.0)
    row.bar_below(6.0).bar_below(5.9).bar_above(6.1).bar_error(1e-3, "small").bar_error(
        1e-4, "tiny"
    )
    assert [bar.met for bar in row.bars] == [True, False, None, True, False, False, True, False]
    assert row.bars[0].says == "at least 2 x slow"
    written = Row("case", 1.23456789, "s", error=float("nan")).as_json()
    assert written["ours"] == 1.235
    assert written["error"] is None


def test_the_time_at_an_error_lies_on_the_line_in_logarithms():
    # time = error^(-1/5): a method of order five.
    curve = [(10.0**-k, 10.0 ** (k / 5)) for k in (2, 4, 6)]
    assert seconds_at(1e-5, curve) == pytest.approx(10.0, rel=1e-12)
    assert seconds_at(1e-6, curve) == pytest.approx(10.0**1.2)
    assert seconds_at(1e-7, curve) is None
    # At its least effort it is better than asked: that effort is enough.
    assert seconds_at(1.0, curve) == pytest.approx(10.0**0.4)
    # A point that took longer and reached less changes nothing.
    assert seconds_at(1e-5, [*curve, (1e-3, 1e3)]) == pytest.approx(10.0)


def test_a_sample_of_several_calls():
    seen = []
    again(lambda: seen.append(1), 3)()
    assert len(seen) == 3


def test_calls_that_fill_a_time():
    clock = Clock()

    def call():
        clock.now += 0.1

    assert calls_within(call, 0.32, clock) == 3
    assert calls_within(call, 0.01, clock) == 1
