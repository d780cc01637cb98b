"""Runs of many betas and samples: access by name, the end of each member, stop times partly not known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.censoring import stop_quantiles
from tokenflock.outcomes import OUTCOMES, advise, count_outcomes, failure, succeeded
from tokenflock.trajectory import Trajectory

LOOSE = {"rtol": 1e-6, "atol": 1e-8}
BETAS = jnp.array([0.5, 4.0])
SAMPLES = flock.uniform(flock.Sphere(3), 5, seed=2, samples=3)


@pytest.fixture(scope="module")
def run():
    """Two betas and three samples; those of the larger beta are slower, and some reach t1 first."""
    save = flock.Save(every=1.5, observe=[flock.diameter], states=True)
    stop = flock.at_diameter(0.9)
    return flock.solve(flock.SA(BETAS), SAMPLES, t1=3.0, **LOOSE, save=save, stop=stop)


@pytest.fixture(scope="module")
def single():
    one = flock.from_array(flock.Sphere(3), SAMPLES.points[1])
    return flock.solve(flock.SA(0.5), one, t1=3.0, **LOOSE, stop=flock.at_diameter(0.9))


def test_a_batch_whose_members_all_stop_closes_with_the_last_of_them():
    """The last row is no row of the start: it is where the longest ended, and NaN for the others."""
    start = flock.uniform(flock.Sphere(2), 4, seed=0, samples=3)
    save = flock.Save(states=True, observe=[flock.energy, flock.clusters(angle=0.1)])
    ended = flock.solve(
        flock.SA(1.0), start, t1=50.0, **LOOSE, save=save, stop=flock.at_diameter(0.5)
    )
    assert ended.outcome == "stopped"
    longest = int(np.argmax(ended.reached.values))
    others = [index for index in range(3) if index != longest]
    np.testing.assert_array_equal(ended.time, [0.0, ended.reached.values[longest]])
    for name, end in (("states", "final_points"), ("energy", "final_energy")):
        last = ended[name].isel(time=-1)
        np.testing.assert_array_equal(last[longest], ended[end].values[longest])
        assert np.all(np.isnan(last.values[others]))


def test_the_states_of_a_batch_are_not_read_by_position(run, single):
    with pytest.raises(flock.errors.InputError) as refused:
        _ = run.states[-1]
    said = str(refused.value)
    assert "(beta: 2, sample: 3, time: 3, token: 5, coordinate: 3)" in said
    assert "would be the last beta" in said
    assert 'run.array("states", time=-1)' in said
    assert single.states.shape == (2, 5, 3)


def test_plain_arrays_are_picked_by_the_names_of_their_axes(run, single):
    whole = np.asarray(run.array("states"))
    np.testing.assert_array_equal(run.array("states", time=1), whole[:, :, 1])
    np.testing.assert_array_equal(run.array("states", sample=-1, beta=0), whole[0, 2])
    later = np.asarray(run.array("diameter"))[..., 1:]
    np.testing.assert_array_equal(run.array("diameter", time=slice(1, None)), later)
    np.testing.assert_array_equal(run.array("states", time=1), run["states"].isel(time=1))
    np.testing.assert_array_equal(single.array("states", time=-1), single.states[-1])


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ({"time": 3}, "time=3 lies outside"),
        ({"sample": -4}, "sample=-4 lies outside"),
        ({"layer": 0}, "and no 'layer'"),
        ({"beta": 0.5}, r"\.sel\(beta=\.\.\.\)"),
        ({"beta": True}, "position counted from 0"),
    ],
)
def test_positions_that_are_none_are_sentences(run, positions, said):
    with pytest.raises(flock.errors.InputError, match=said):
        run.array("diameter", **positions)


def test_names_work_inside_transformations(run):
    """As numbers of JAX that are not known yet: by name as ever, and no guess by position."""

    def last_of(states, times):
        arrays = {"states": states, "final_time": times}
        inside = Trajectory(arrays, run.axes, run.coords, {"label": "SA", "outcome": "traced"})
        with pytest.raises(flock.errors.InputError, match="is a batch"):
            _ = inside.states
        with pytest.raises(flock.errors.InputError, match="has no value inside"):
            inside.stop_summary()
        assert "t=?" in repr(inside)
        return jnp.sum(inside.array("states", time=-1, beta=1)) + jnp.sum(inside.reached)

    states, times = jnp.asarray(run.array("states")), jnp.asarray(run.array("final_time"))
    slope = jax.jit(jax.grad(last_of))(states, times)
    np.testing.assert_array_equal(slope[1, :, -1], 1.0)
    assert float(jnp.sum(slope)) == 3 * 5 * 3


@pytest.mark.slow
def test_a_batch_of_betas_is_differentiated_member_by_member():
    tokens = SAMPLES.at(SAMPLES.points[:2])

    def end(betas):
        run = flock.solve(flock.SA(betas), tokens, t1=0.5, **LOOSE)
        assert run.reached.shape == (2, 2)
        return jnp.sum(run.array("states", time=-1, sample=1, beta=1)[0] * jnp.arange(3.0))

    slope = jax.grad(end)(BETAS)
    assert slope[0] == 0.0
    assert abs(slope[1]) > 1e-4


def test_the_repr_has_the_axes_in_their_order(run, single):
    assert "(beta: 2, sample: 3, time: 3, token: 5, coordinate: 3)" in repr(run)
    assert run.outcome in repr(run)
    assert f"t={float(run.reached.min()):g} to 3 " in repr(run)
    assert "(time: 2, token: 5, coordinate: 3)" in repr(single)
    assert f"t={single.reached:g} " in repr(single)


def test_every_member_has_its_own_end(run, single):
    """Stopped members have the diameter of the stop and an end before t1; the others have t1."""
    assert run.outcomes.dims == run.reached.dims == ("beta", "sample")
    np.testing.assert_allclose(run.reached.coords["beta"], BETAS)
    stopped = run.outcomes.values == "stopped"
    assert 0 < stopped.sum() < stopped.size
    np.testing.assert_array_equal(run.reached.values < 3.0, stopped)
    ends = np.asarray(run.array("final_diameter"))
    np.testing.assert_allclose(ends[stopped], 0.9, atol=1e-7)
    assert np.all(ends[~stopped] > 0.9)
    assert run.outcomes.sel(beta=0.5).isel(sample=1) == single.outcome == "stopped"
    assert float(run.reached.sel(beta=0.5).isel(sample=1)) == pytest.approx(
        single.reached, abs=1e-4
    )
    assert isinstance(single.reached, float)
    assert single.outcomes.dims == ()


def test_the_outcome_of_a_batch_counts(run, tmp_path):
    """It says how many met the stop, says that the others are censored, and survives the disk."""
    count = int((run.outcomes == "stopped").sum())
    assert run.outcome == f"{count} stopped, {6 - count} finished"
    assert "censored" in run.advice
    back = flock.open(run.save(tmp_path / "run.zarr"))
    assert back.outcome == run.outcome
    assert back.outcomes.identical(run.outcomes)
    assert back.stop_summary().identical(run.stop_summary())


def test_counts_of_outcomes():
    names = np.array([["stopped", "finished"], ["step-limit", "stopped"]], dtype=object)
    assert count_outcomes(names) == "1 step-limit, 2 stopped, 1 finished"
    assert count_outcomes(names[:, :0].ravel().tolist() + ["finished"] * 9) == "finished"
    assert succeeded("324 stopped, 124 finished")
    assert not succeeded(count_outcomes(names))
    assert advise("finished") == "reached t1"
    assert "max_steps" in advise(count_outcomes(names))
    assert "censored" not in advise("3 step-limit, 4 stopped")


def test_a_batch_that_breaks_off_says_how_many(run):
    codes = np.where(np.arange(6).reshape(2, 3) < 2, OUTCOMES.index("step-limit"), 1)
    told = {**run.attributes, "outcome": "2 step-limit, 4 stopped", "advice": "raise max_steps"}
    broken = Trajectory({**run.arrays, "outcome_code": codes}, run.axes, run.coords, told)
    first = float(run.reached[0, :2].min())
    assert failure(broken, 3.0) == (
        f"2 of the 6 runs of this batch broke off, the first at t={first:g} of 3 (run.outcomes tells "
        "which, with throw=False): raise max_steps"
    )
    assert broken.stop_summary()["failed"].values.tolist() == [2, 0]


def test_stop_summary_counts_for_each_beta(run):
    """Brute force: members sorted by their ends; without early censoring quantiles are order statistics."""
    found = run.stop_summary(quantiles=[0.3, 0.5, 0.99])
    assert found["stop_time"].dims == ("beta", "quantile")
    for index, beta in enumerate(np.asarray(BETAS)):
        names, ends = run.outcomes[index].values, run.reached[index].values
        one = found.sel(beta=beta)
        counted = [int(one[name]) for name in ("stopped", "censored", "failed")]
        assert counted == [int((names == "stopped").sum()), int((names == "finished").sum()), 0]
        known = sorted(ends[names == "stopped"])
        for level, place in ((0.3, 0), (0.5, 1), (0.99, 2)):
            expected = known[place] if place < len(known) else np.inf
            assert float(one["stop_time"].sel(quantile=level)) == expected
    together = run.stop_summary(over=("beta", "sample"))
    assert int(together["stopped"] + together["censored"]) == 6
    assert together["stop_time"].dims == ("quantile",)
    by_sample = run.stop_summary(over="beta")
    assert by_sample["stopped"].dims == ("sample",)
    assert int(by_sample["stopped"].sum()) == int(together["stopped"])


def test_quantiles_are_those_of_kaplan_and_meier():
    """Weeks of remission under 6-MP (Freireich et al., Blood 21, 1963): the median is 23 weeks."""
    weeks = np.array(
        [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35.0]
    )
    relapsed = np.isin(np.arange(21), [0, 1, 2, 4, 6, 9, 10, 14, 15])
    found = stop_quantiles(weeks, relapsed, [0.25, 0.5, 0.75])
    assert found.tolist() == [13.0, 23.0, np.inf]
    assert stop_quantiles(weeks, np.zeros(21, bool), [0.5]).tolist() == [np.inf]
    assert stop_quantiles(np.array([3.0, 1.0]), np.array([True, True]), [0.5]).tolist() == [1.0]


def test_summaries_refuse_what_is_none(run, single):
    with pytest.raises(
        flock.errors.InputError, match=r"no batch axis 'time'; over takes some of \(beta, sample\)"
    ):
        run.stop_summary(over="time")
    with pytest.raises(flock.errors.InputError, match="between 0 and 1"):
        run.stop_summary(quantiles=[50])
    assert int(single.stop_summary()["stopped"]) == 1
    assert float(single.stop_summary()["stop_time"][1]) == single.reached


@pytest.mark.slow
def test_a_density_has_an_outcome_for_each_beta():
    """Weak attention moves all towards one cluster, which 8 modes soon no longer hold."""
    start = flock.Density.from_law(flock.meanfield.Fourier(8), lambda x: 1 + 0.3 * x[:, 0])
    run = flock.solve(flock.SA(jnp.array([0.1, 9.0])), start, t1=2.0, **LOOSE, throw=False)
    assert run.outcomes.values.tolist() == ["unresolved", "finished"]
    assert run.outcome == "1 unresolved, 1 finished"
    assert run.reached.values[0] < run.reached.values[1] == 2.0
    with pytest.raises(flock.errors.InputError, match="would be the last beta"):
        _ = run.states


def test_an_interrupted_batch_is_interrupted_where_it_had_not_ended(run):
    told = {**run.attributes, "outcome": "interrupted", "advice": ""}
    cut = Trajectory(run.arrays, run.axes, run.coords, told)
    both = {"stopped": "stopped", "finished": "interrupted"}
    expected = [[both[name] for name in row] for row in run.outcomes.values]
    assert cut.outcomes.values.tolist() == expected
