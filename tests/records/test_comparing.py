"""Comparisons: to the last bit, within a tolerance, on what is common; never interpolated."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from made_results import SWEEP, TIMES, made_run, made_sweep, made_trace, made_trajectory

from tokenflock import store
from tokenflock.errors import InputError, StoreError
from tokenflock.records import comparing
from tokenflock.records.comparing import compare, spec_difference
from tokenflock.records.facts import Facts
from tokenflock.records.opening import find_result


def compared(first, second, tol=None):
    return compare(find_result(first), find_result(second), tol)


def arrays(found):
    return {array.name: array for array in found.arrays}


def changed_run(folder, change, **options):
    """A run whose arrays were changed by a function."""
    run = made_trajectory(**options)
    change(run.arrays)
    store.write(run, folder / "trajectory.zarr")
    return folder


@pytest.fixture
def first(tmp_path):
    return made_run(tmp_path / "first")


class TestRuns:
    def test_equal_to_the_last_bit(self, first, tmp_path):
        found = compared(first, made_run(tmp_path / "second", seconds=9.0))
        assert found.equal
        assert found.spec == []
        assert all(not array.different and array.compared for array in found.arrays)

    def test_one_bit(self, first, tmp_path):
        def change(made):
            made["states"][2, 5, 1] = np.nextafter(made["states"][2, 5, 1], np.inf)

        second = changed_run(tmp_path / "second", change)
        found = compared(first, second)
        assert not found.equal
        states = arrays(found)["states"]
        assert (states.different, states.outside, states.compared) == (1, 1, 5 * 16)
        assert states.where == {"time": 2.0, "token": 5, "coordinate": 1}
        assert 0 < states.max_absolute < 1e-15
        assert compared(first, second, tol=1e-12).equal
        assert not compared(first, second, tol=0.0).equal

    def test_the_largest_difference_is_found(self, first, tmp_path):
        def change(made):
            made["energy"][1] += 1e-6
            made["energy"][3] -= 0.5

        energy = arrays(compared(first, changed_run(tmp_path / "second", change)))["energy"]
        before = made_trajectory().arrays["energy"][3]
        assert energy.max_absolute == pytest.approx(0.5, rel=1e-14)
        assert energy.where == {"time": 3.0}
        assert energy.different == 2
        assert energy.max_relative >= 0.5 / max(abs(before), abs(before - 0.5)) * (1 - 1e-12)

    def test_a_tolerance_is_absolute_or_relative(self, first, tmp_path):
        large = changed_run(tmp_path / "a", lambda made: made["energy"].fill(1e9))
        near = changed_run(tmp_path / "b", lambda made: made["energy"].fill(1e9 + 1))
        assert compared(large, near, tol=2e-9).equal
        assert not compared(large, near, tol=0.5e-9).equal

    def test_nan_and_signs_of_zero(self, first, tmp_path):
        def with_value(value):
            return lambda made: made["energy"].__setitem__(1, value)

        nan = changed_run(tmp_path / "nan", with_value(np.nan))
        zero = changed_run(tmp_path / "zero", with_value(0.0))
        minus = changed_run(tmp_path / "minus", with_value(-0.0))
        infinite = changed_run(tmp_path / "inf", with_value(np.inf))
        assert compared(nan, nan).equal
        assert compared(infinite, infinite, tol=1e-3).equal
        for other in (zero, infinite):
            assert not compared(nan, other, tol=1e9).equal
            assert arrays(compared(nan, other))["energy"].max_absolute == np.inf
        assert not compared(zero, minus).equal
        assert arrays(compared(zero, minus))["energy"].where == {"time": 1.0}
        assert compared(zero, minus, tol=0.0).equal

    def test_common_times_only(self, first, tmp_path):
        second = made_run(tmp_path / "second", times=np.array([0.5, 1.0, 3.0, 3.5, 4.0, 9.0]))
        found = compared(first, second)
        assert not found.equal
        assert found.partly == ["3 common values of time compared, of 5 and 6"]
        assert arrays(found)["energy"].compared == 3
        assert not arrays(found)["energy"].different
        assert not arrays(found)["states"].different

    def test_no_common_times(self, first, tmp_path):
        second = made_run(tmp_path / "second", times=TIMES + 0.25)
        found = compared(first, second)
        assert "no common time" in arrays(found)["energy"].note
        assert not found.equal

    def test_the_specs(self, first, tmp_path):
        second = made_run(tmp_path / "second", model__beta=9.0, save__observe=["energy", "speed"])
        assert compared(first, second).spec == [
            {"path": "model.beta", "a": 4.0, "b": 9.0},
            {"path": "save.observe", "a": ["energy"], "b": ["energy", "speed"]},
        ]
        # The numbers decide.
        assert compared(first, second).equal

    def test_arrays_in_one_only(self, first, tmp_path):
        second = changed_run(tmp_path / "second", lambda made: made.pop("steps"))
        found = compared(first, second)
        assert found.only_in == (["steps"], [])
        assert not found.equal

    def test_another_type(self, first, tmp_path):
        def change(made):
            made["steps"] = np.asarray(12.0)

        second = changed_run(tmp_path / "second", change)
        assert arrays(compared(first, second))["steps"].note == "stored as int64 and float64"
        assert not compared(first, second).equal
        assert compared(first, second, tol=0.0).equal

    def test_damage_is_refused(self, first, tmp_path):
        second = made_run(tmp_path / "second")
        chunk = next(path for path in (second / "trajectory.zarr" / "energy" / "c").iterdir())
        chunk.unlink()
        with pytest.raises(StoreError, match="energy"):
            compared(first, second)

    @pytest.mark.parametrize("tol", [-1.0, np.nan, np.inf])
    def test_tolerances_that_are_none(self, first, tol):
        with pytest.raises(InputError, match="--tol must be"):
            compared(first, first, tol)

    def test_traces(self, tmp_path):
        first, second = made_trace(tmp_path / "a"), made_trace(tmp_path / "b")
        assert compared(first, second).equal
        assert compared(first, second).kind == "trace"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return made_sweep(tmp_path_factory.mktemp("sweeps") / "first")


class TestSweeps:
    def test_equal_in_pieces(self, sweep, tmp_path, monkeypatch):
        monkeypatch.setattr(comparing, "MOST_ITEMS", 4 * 7)
        second = made_sweep(tmp_path / "second", SWEEP.replace("batch = 4", "batch = 8"))
        found = compared(sweep, second)
        assert found.equal
        assert found.spec == [{"path": "sweep.batch", "a": 4, "b": 8}]
        assert arrays(found)["energy"].compared == 30 * 5

    def test_common_cells_by_their_coordinates(self, sweep, tmp_path):
        text = SWEEP.replace("to = 5.0, count = 5", "to = 9.0, count = 3")
        text = text.replace("[8, 16]", "[16, 8]").replace(
            '["uniform", "hemisphere"]', '["hemisphere", "uniform"]'
        )
        second = made_sweep(tmp_path / "second", text.replace("seeds = 3", "seeds = 2"))
        found = compared(sweep, second)
        assert [row["path"] for row in found.spec] == [
            "sweep.axes.beta.to",
            "sweep.axes.beta.count",
            "sweep.axes.pair.zip.tokens.n",
            "sweep.axes.pair.zip.tokens.law",
            "sweep.axes.seed.seeds",
        ]
        # beta 1, 5, 9 against 1..5; both pairs in another order; two of three seeds.
        energy = arrays(found)["energy"]
        assert (energy.compared, energy.different) == (2 * 2 * 2 * 5, 0)
        assert found.partly == [
            "2 common values of beta compared, of 5 and 3",
            "2 common values of seed compared, of 3 and 2",
        ]
        assert arrays(found)["steps"].different > 0

    def test_what_is_swept_is_no_setting(self, sweep, tmp_path):
        """The spec beside a sweep is that of its first cell."""
        text = SWEEP.replace("from = 1.0", "from = 3.0").replace("[8, 16]", "[9, 16]")
        second = made_sweep(tmp_path / "second", text)
        assert compared(sweep, second).spec == [
            {"path": "sweep.axes.beta.from", "a": 1.0, "b": 3.0},
            {"path": "sweep.axes.pair.zip.tokens.n", "a": [8, 16], "b": [9, 16]},
        ]

    def test_swept_in_one_and_set_in_the_other(self, sweep):
        fixed = replace(find_result(sweep), labels=copy.deepcopy(find_result(sweep).labels))
        del fixed.labels["axes"]["beta"], fixed.labels["sweep"]["axes"]["beta"]
        rows = spec_difference(find_result(sweep), replace(fixed, facts=Facts({"kind": "sweep"})))
        assert {"path": "model.beta", "a": None, "b": 1.0} in rows
        assert {"path": "sweep.axes.beta.from", "a": 1.0, "b": None} in rows

    def test_axes_are_compared_by_their_values(self, sweep, tmp_path):
        text = SWEEP.replace(
            "beta = { from = 1.0, to = 5.0, count = 5 }",
            '"model.beta" = [1.0, 2.0, 3.0, 4.0, 5.0]',
        )
        second = made_sweep(tmp_path / "second", text)
        assert compared(sweep, second).spec == []

    def test_other_seeds_are_other_cells(self, sweep, tmp_path):
        second = made_sweep(tmp_path / "second", SWEEP.replace("batch = 4", "batch = 4\nseed = 5"))
        with pytest.raises(InputError, match="they have no common seed"):
            compared(sweep, second)

    def test_unfinished_cells_differ(self, sweep, tmp_path):
        second = made_sweep(tmp_path / "second", blocks=range(9), summary=False)
        found = compared(sweep, second, tol=1.0)
        energy = arrays(found)["energy"]
        assert (energy.different, energy.outside, energy.max_absolute) == (15, 15, np.inf)
        assert energy.where == {"beta": 5.0, "pair": 1, "seed": 0, "time": 0.0}
        assert not found.equal

    def test_where_it_differs(self, sweep, tmp_path):
        second = made_sweep(tmp_path / "second", shift=0.25)
        energy = arrays(compared(sweep, second))["energy"]
        assert (energy.max_absolute, energy.different) == (0.25, 150)
        assert compared(sweep, second, tol=0.25).equal

    def test_a_run_is_no_sweep(self, sweep, tmp_path):
        with pytest.raises(InputError, match="compare like with like"):
            compared(sweep, made_run(tmp_path / "run"))
