"""Pictures of sweeps: every combination of axes draws, and what is drawn are the stored numbers."""

import numpy as np
import pytest
import xarray as xr
from made_pictures import (
    BETAS,
    NOISES,
    SIZES,
    TIMES,
    drawn,
    mesh_of,
    random_search,
    seed_mean,
    sweep,
)

from tokenflock.errors import InputError
from tokenflock.plot import draw_sweep
from tokenflock.plot.sweep_numbers import statistics
from tokenflock.plot.sweep_scales import Scale, influence, is_log


def test_one_axis_is_drawn_over_time():
    made = sweep({"beta": BETAS})
    figure = drawn(made)
    axes, bar = figure.axes
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time t", "beta")
    assert axes.get_xscale() == axes.get_yscale() == "linear"
    assert bar.get_ylabel() == "order parameter"
    assert "mean of 8 seeds" in figure.get_suptitle()


def test_two_axes_are_drawn_at_the_last_time():
    made = sweep({"beta": BETAS, "n": SIZES})
    axes, _ = drawn(made).axes
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made)[..., -1])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "beta")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_values_out_of_order_are_sorted():
    order = [2, 0, 3, 1]
    made = sweep({"beta": BETAS, "n": SIZES})
    axes, _ = drawn(made.isel(n=order)).axes
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made)[..., -1])


def test_one_axis_without_time_is_a_line_with_its_standard_error():
    made = sweep({"beta": BETAS}, times=())
    (axes,) = drawn(made).axes
    values = made["order_parameter"].values
    np.testing.assert_allclose(axes.lines[0].get_ydata(), values.mean(axis=1))
    band = axes.collections[0].get_paths()[0].vertices
    error = values.std(axis=1, ddof=1) / np.sqrt(8)
    assert band[:, 1].max() == pytest.approx((values.mean(axis=1) + error).max())


def test_three_axes_are_small_multiples_and_more_are_held_at_their_middle():
    made = sweep({"beta": BETAS, "noise": NOISES, "n": SIZES, "d": np.arange(2, 7)}, seeds=2)
    figure = drawn(made)
    titles = [axes.get_title() for axes in figure.axes[:3]]
    assert titles == ["noise = 0", "noise = 0.1", "noise = 0.2"]
    assert "n = 64" in figure.get_suptitle()
    shown = seed_mean(made).isel(noise=1, n=2, time=-1)
    np.testing.assert_allclose(mesh_of(figure.axes[1]).get_array(), shown)
    scales = {(mesh_of(axes).norm.vmin, mesh_of(axes).norm.vmax) for axes in figure.axes[:3]}
    assert len(scales) == 1


def test_at_most_six_panels():
    made = sweep({"beta": BETAS, "n": np.arange(2, 13), "d": np.arange(2, 12)}, seeds=0)
    figure = drawn(made)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [f"d = {d}" for d in (2, 4, 6, 7, 9, 11)]
    assert "6 of 10 d shown" in figure.get_suptitle()


def test_words_get_a_line_each():
    kinds = np.array(["SA", "USA", "hardmax"])
    over_time = sweep({"kind": kinds})
    (axes,) = drawn(over_time).axes
    np.testing.assert_allclose(axes.lines[1].get_ydata(), seed_mean(over_time)[1])
    assert axes.get_legend_handles_labels()[1] == list(kinds)
    beside = sweep({"beta": BETAS, "kind": kinds})
    figure = drawn(beside)
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata())]
    np.testing.assert_allclose(lines[1].get_ydata(), seed_mean(beside)[:, 1, -1])
    assert [text.get_text() for text in figure.legends[0].texts] == list(kinds)
    alone = sweep({"kind": kinds}, times=())
    (axes,) = drawn(alone).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list(kinds)


def test_many_words_are_a_heatmap():
    kinds = np.array([f"kind {k}" for k in range(9)])
    axes, _ = drawn(sweep({"kind": kinds})).axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(kinds)


def test_zipped_settings_lie_along_the_first_of_them():
    beside = {"model.beta": ("pair", np.array([1.0, 4.0, 9.0])), "solve.t1": ("pair", np.ones(3))}
    axes, _ = drawn(sweep({"pair": np.arange(3)}, beside=beside)).axes
    assert axes.get_ylabel() == "beta (with t1)"
    assert axes.get_ylim() == pytest.approx((-0.5, 11.5))


def test_a_random_search_shows_the_settings_that_matter():
    made = random_search()
    axes, _ = drawn(made).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("beta", "n")
    assert axes.get_xscale() == "log"
    assert axes.get_yticks().tolist() == [16, 32, 64]
    points = axes.collections[0]
    np.testing.assert_allclose(points.get_offsets()[:, 0], made["model.beta"])
    np.testing.assert_allclose(points.get_array(), seed_mean(made)[:, -1])


def test_failed_runs_are_marked_and_counted():
    made = sweep({"beta": BETAS, "n": SIZES})
    made["outcome"][3, 1, :] = -1
    made["outcome"][5, 2, 0] = 5
    made["outcome"][8:, 3, :] = -2
    made["order_parameter"][5, 2, 0] = 1e6
    made["order_parameter"][8:, 3] = np.nan
    figure = drawn(made)
    values = np.ma.filled(mesh_of(figure.axes[0]).get_array(), np.nan)
    assert np.isnan(values[3, 1])
    assert np.all(np.isnan(values[8:, 3]))
    assert values[5, 2] == pytest.approx(float(made["order_parameter"][5, 2, 1:, -1].mean()))
    (crosses,) = figure.axes[0].lines
    assert (crosses.get_xdata(), crosses.get_ydata()) == (SIZES[2], BETAS[5])
    words = [text.get_text() for text in figure.legends[0].texts]
    assert words == ["no run succeeded", "runs failed", "not computed"]
    assert "of 384 runs 9 failed and 32 not computed" in figure.get_suptitle()


def test_nothing_computed_yet_is_a_picture():
    made = sweep({"beta": BETAS})
    made["outcome"][:] = -2
    made["order_parameter"][:] = np.nan
    figure = drawn(made)
    assert figure.legends[0].texts[0].get_text() == "not computed"
    assert "of 96 runs 96 not computed" in figure.get_suptitle()


def test_runs_that_stop_early_keep_their_last_value():
    """Without it the mean at late times would be over those that have not stopped alone."""
    made = sweep({"beta": BETAS}, seeds=2)
    whole = made["order_parameter"].copy(deep=True)
    made["outcome"][4, 1] = 1
    made["final_time"][4, 1] = TIMES[10]
    made["order_parameter"][4, 1, 11:] = -7.0
    figure = drawn(made)
    expected = (whole[4, 0] + np.where(np.arange(21) > 10, whole[4, 1, 10], whole[4, 1])) / 2
    np.testing.assert_allclose(mesh_of(figure.axes[0]).get_array()[4], expected)
    assert "stopped runs keep their last value" in figure.get_suptitle()


def test_seeds_alone():
    (axes,) = drawn(sweep({})).axes
    assert axes.get_xlabel() == "time t"
    (axes,) = drawn(sweep({}, times=(), seeds=40)).axes
    assert sum(bar.get_height() for bar in axes.patches) == 40


def test_times_on_a_log_scale():
    made = sweep(
        {"beta": np.geomspace(0.1, 10, 9)}, times=np.append(0.0, np.geomspace(0.01, 10, 20))
    )
    axes, _ = drawn(made).axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made)[:, 1:])


def test_the_first_observable_of_the_spec_is_drawn_and_others_on_demand():
    made = sweep({"beta": BETAS}, names=("zeta", "alpha"))
    made["profile"] = (("beta", "time", "bin"), np.zeros((12, 21, 4)))
    made["model_seed"] = made["outcome"]  # the seeds of single cells are no result
    assert "model_seed" not in statistics(made)
    made["zeta"].attrs.update(units="radian", angle=0.1)
    assert statistics(made)[:2] == ["zeta", "alpha"]
    assert drawn(made).axes[1].get_ylabel() == "zeta [radian] (angle 0.1)"
    assert drawn(made, "alpha").axes[1].get_ylabel() == "alpha"
    for wrong in ("profile", "gamma"):
        with pytest.raises(InputError, match=f"zeta, alpha.*got '{wrong}'"):
            draw_sweep(made, wrong)


def test_what_is_no_sweep_is_refused():
    with pytest.raises(InputError, match="no number per run"):
        draw_sweep(xr.Dataset({"x": ("row", np.zeros(3))}))


def test_slabs_give_the_numbers_of_the_whole(monkeypatch):
    from tokenflock.plot import sweep_numbers

    made = sweep({"beta": BETAS, "n": SIZES})
    monkeypatch.setattr(sweep_numbers, "SLAB", 3 * 4 * 8 * 21 * 8)
    axes, _ = drawn(made).axes
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made)[..., -1])


def test_log_spacing_is_told_from_even_spacing():
    assert is_log(np.geomspace(0.1, 10, 20))
    assert is_log(np.array([16.0, 32, 64]))
    assert is_log(np.round(np.geomspace(8, 512, 12)))
    assert not is_log(np.linspace(0.1, 9.0, 90))
    assert not is_log(np.array([0.0, 1, 10, 100]))
    assert not is_log(np.array([1.0, 10.0]))


def test_cells_meet_half_way():
    places = np.array([1.0, 10.0, 100.0])
    log = Scale("n", places, np.arange(3), log=True).edges
    np.testing.assert_allclose(log, 10 ** np.array([-0.5, 0.5, 1.5, 2.5]))
    np.testing.assert_allclose(Scale("n", places, np.arange(3)).edges, [-3.5, 5.5, 55, 145])


def test_influence_sees_what_is_not_monotone():
    x = np.linspace(-1, 1, 200)
    noise = np.random.default_rng(0).normal(size=200)
    assert influence(x, x**2) > 0.9
    assert influence(noise, x**2) < 0.2
    assert influence(x, np.ones(200)) == 0.0


def own_times(stopped=False):
    """Runs of different lengths, each looked at five times; one of them stops after three."""
    ends = np.array([2.0, 4.0, 8.0])
    times = ends[:, None, None] * np.linspace(0, 1, 5) * np.ones((1, 2, 1))
    values = np.log1p(times) + np.array([0.0, 0.1])[:, None]
    made = sweep({"length": ends}, seeds=2, times=()).drop_vars("order_parameter")
    made["final_time"][:] = ends[:, None]
    made["time"] = (("length", "seed", "save"), times)
    made["order_parameter"] = (("length", "seed", "save"), values)
    if stopped:
        made["outcome"][2, 0], made["final_time"][2, 0] = 1, times[2, 0, 2]
        made["order_parameter"][2, 0, 3:] = -9.0
        values[2, 0, 3:] = values[2, 0, 2]
    return made, values[..., -1].mean(axis=1)


@pytest.mark.parametrize("stopped", [False, True])
def test_runs_with_their_own_times_are_drawn_at_their_ends(stopped):
    made, expected = own_times(stopped)
    assert "time" not in statistics(made)
    figure = drawn(made)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), expected)
    assert "at the end of each run" in figure.get_suptitle()
