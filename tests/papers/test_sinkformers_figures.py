"""What the figures of 2110.11773 must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.sinkformers.figures import (
    dissipation_so_far,
    heat_flow,
    histogram,
    mixture,
    normalisations,
    quantiles,
    same_start,
)


@functools.cache
def flows():
    return same_start.compute(n=16, saves=33, t=2.0)


@functools.cache
def heated():
    return heat_flow.compute()


def test_normalisations_fix_rows_then_both():
    data = normalisations.compute()
    n = data.sizes["token"]
    none, softmax, sinkhorn = (data.weights.sel(kernel=k).values for k in ("K0", "K1", "Kinf"))
    assert none.max() > 0.9
    np.testing.assert_allclose(softmax.sum(axis=1), 1 / n)
    assert softmax.sum(axis=0).max() > 3 / n
    # 100 sweeps of scores between -600 and 600 come near, and end with the rows.
    np.testing.assert_allclose(sinkhorn.sum(axis=1), 1 / n)
    np.testing.assert_allclose(sinkhorn.sum(axis=0), 1 / n, rtol=0.05)
    figure = normalisations.draw(data)
    assert [axes.get_title() for axes in figure.axes][1].endswith("softmax")


@pytest.mark.slow
def test_sinkhorn_follows_both_laws_and_softmax_neither():
    data = flows()
    sinkhorn, softmax = (data.sel(kind=kind) for kind in ("sinkhorn", "softmax"))
    np.testing.assert_allclose(sinkhorn["mean"], data.mean_predicted, atol=1e-6)
    assert np.abs(softmax["mean"] - data.mean_predicted).max() > 0.01
    fallen = float(sinkhorn.energy[0]) - sinkhorn.energy.values
    # Simpson's rule with 33 times on a rate of order one.
    np.testing.assert_allclose(fallen, dissipation_so_far(data), atol=1e-4)
    assert np.all(np.diff(sinkhorn.energy) < 0)
    # A hundred times the tolerance to which Sinkhorn keeps its law.
    assert np.abs(softmax.energy - sinkhorn.energy).max() > 0.01
    np.testing.assert_array_equal(sinkhorn.states[0], softmax.states[0])
    assert len(same_start.draw(data).axes) == 4


@pytest.mark.slow
def test_tokens_follow_heat_until_they_are_too_few():
    """The factors of the text, read off the drawn points; the closed forms are of first order throughout."""
    data = heated()
    left, right = heat_flow.draw(data).axes
    drawn = np.array([line.get_ydata() for line in right.lines if line.get_marker() == "o"])
    factors = drawn[:, :-1] / drawn[:, 1:]
    printed = {
        "sinkhorn": [2.1, 2.4],
        "its middle": [2.4, 2.2],
        "gauss": [1.8, 1.5],
        "middle": [2.1, 2.0],
    }
    np.testing.assert_allclose(factors, list(printed.values()), atol=0.07)
    assert np.all(data.w2.sel(kind="gauss") > 2 * data.w2.sel(kind="sinkhorn"))
    closed = data.gaussian_w2.values
    assert np.all(closed[1] > 3 * closed[0])
    np.testing.assert_allclose(closed[:, :-1] / closed[:, 1:], 2.0, atol=0.2)
    # Steps reach the outermost tokens.
    shown = max(patch.get_data().edges[-1] for patch in left.patches)
    assert shown > data.points.sel(kind="sinkhorn").values.max()


@pytest.mark.parametrize("n", [100, 103, 7])
def test_histograms_hold_every_token(n):
    points = np.random.default_rng(n).normal(size=n)
    heights, edges = histogram(points)
    counts = heights * np.diff(edges) * n
    np.testing.assert_allclose(counts[:-1], 5.0)
    assert counts.sum() == pytest.approx(n)
    assert edges[0] < points.min()
    assert edges[-1] > points.max()


def test_the_heat_solution_is_a_probability_law_with_growing_variance():
    x = np.linspace(-9, 9, 4001)
    for t in (0.0, 0.25):
        density = mixture(x, t)
        mass, mean = np.trapezoid(density, x), np.trapezoid(x * density, x)
        assert mass == pytest.approx(1.0, abs=1e-10)
        variance = np.trapezoid((x - mean) ** 2 * density, x)
        start = 0.6 * (0.45**2 + 1) + 0.4 * (0.35**2 + 1) - 0.2**2
        assert variance == pytest.approx(start + 2 * t, abs=1e-8)
    levels = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(mixture(quantiles(levels, 0.25), 0.25, "cdf"), levels, atol=1e-6)
