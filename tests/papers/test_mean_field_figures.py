"""What the figures of 2410.23228 must show."""

import functools

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.papers.mean_field.figures import (
    cluster_states,
    limit_equation,
    mode_growth,
    predicted_centres,
    seen_mode,
)

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def growth():
    return mode_growth.compute(betas=(5.0, 7.0), modes=5, n=400)


@functools.cache
def states():
    return cluster_states.compute(n=500, betas=(5.0,), moments=(0.3,), ends=(0.32,), draws=(0,))


def test_K5_1_measured_growth_is_the_theory():
    data = growth()
    np.testing.assert_allclose(data.measured, data.theory, rtol=1e-6)
    printed = [22.2913, 70.86361, 109.51134, 116.58, 96.01959]
    np.testing.assert_allclose(data.measured.sel(model="USA", beta=7.0), printed, atol=1e-3)
    best = data.mode.values[data.measured.values.argmax(axis=-1)]
    np.testing.assert_array_equal(best, [[3, 4], [3, 4]])


def test_dominant_mode_changes_where_it_should():
    data = growth()
    jumps = data.fine_beta.values[1:][np.diff(data.dominant) > 0]
    np.testing.assert_allclose(jumps, data.switch, atol=0.06)
    np.testing.assert_allclose(data.switch[:3], [1.044457, 3.165434, 6.211298], atol=1e-6)


def test_predicted_centres_of_a_pure_mode():
    """A density 1 + eta cos 3(theta - 0.2) has its maxima at 0.2 + 2 pi j/3."""
    grid = 2 * np.pi * np.arange(600) / 600
    theta = grid - 0.1 * np.sin(3 * (grid - 0.2)) / 3
    found = predicted_centres(np.stack([np.cos(theta), np.sin(theta)], axis=-1), 3)
    np.testing.assert_allclose(found, 0.2 + 2 * np.pi * np.array([-1, 0, 1]) / 3, atol=1e-3)


def test_early_growth_of_a_moment():
    """Between |muhat| = noise and saturation the winner grows at about its linear rate."""
    one = states().sel(beta=5.0)
    k = seen_mode(one)
    line = one.moments.sel(mode=k).values
    early = (line < 0.3) & (one.time.values > 0.02)
    slope = np.polyfit(one.time.values[early], np.log(line[early]), 1)[0]
    assert slope == pytest.approx(float(theory.growth_rate(k, 2, 5.0)), rel=0.35)
    assert float(one.density.sum()) * 2 * np.pi / one.sizes["bin"] == pytest.approx(1.0)


def test_default_draws_show_the_fastest_mode_at_its_predicted_places():
    """Peaks of the histogram lie within 0.2 rad of the centres predicted from the phase at t = 0."""
    data = cluster_states.compute()
    for beta, clusters in ((5.0, 3), (7.0, 4)):
        one = data.sel(beta=beta)
        assert seen_mode(one) == int(one.fastest) == clusters
        peaks = one.angle.values[np.argsort(one.density.values)[-clusters:]]
        centres = one.centre.dropna("cluster").values
        np.testing.assert_allclose(np.sort(peaks), centres, atol=0.25)


@functools.cache
def limits():
    return limit_equation.compute()


def test_series_and_quantiles_agree_until_the_cut_off():
    """Two schemes of the same law: quantiles start off by 0.02 (k/n)^2, amplified a thousandfold."""
    data = limits()
    assert np.all(data.resolved.values < [0.5, 0.08])
    assert float(data.apart.max()) < 1e3 * 0.02 * (5 / 300) ** 2
    # Cells hold the whole mass, before the change of schemes and after it.
    np.testing.assert_allclose(data.density.mean("angle"), 1.0, atol=5e-3)


def test_the_limit_equation_makes_the_clusters_of_the_fastest_mode_where_predicted():
    """The fastest mode wins; the mass lies within a tenth of the distance between two places."""
    data = limits()
    for beta, clusters in ((5.0, 3), (7.0, 4)):
        one = data.sel(beta=beta)
        assert int(one.fastest) == clusters
        assert int(one.mode[int(one.moments[-1].values.argmax())]) == clusters
        centres = one.centre.dropna("cluster").values
        away = np.abs(np.angle(np.exp(1j * (one.angle.values[:, None] - centres)))).min(axis=-1)
        near = float(one.density[-1].values[away < 0.1 * 2 * np.pi / clusters].mean())
        share = near * np.mean(away < 0.1 * 2 * np.pi / clusters)
        assert share > 0.95


def test_the_winner_grows_at_its_rate_before_it_saturates():
    """Up to 0.05 the wave meets others only at second order: 0.05 times a quotient of rates."""
    for beta in (5.0, 7.0):
        one = limits().sel(beta=beta)
        line = one.moments.sel(mode=int(one.fastest)).values
        last = int(np.argmax(line > 0.05))
        growth = np.log(line[last] / line[0]) / float(one.time[last])
        assert growth == pytest.approx(float(one.rate.sel(mode=int(one.fastest))), rel=0.05)


def test_drawings():
    assert "fastest mode 3" in limit_equation.draw(limits()).axes[0].get_title()
    panels = mode_growth.draw(growth()).axes
    assert [axes.get_title() for axes in panels] == ["USA", "SA", "fastest mode"]
    assert r"\lambda_k" in panels[0].get_ylabel()
    left, right = cluster_states.draw(states()).axes
    assert "fastest mode 3" in left.get_title()
    assert right.get_ylabel() == r"$|\hat\mu_k|$"
