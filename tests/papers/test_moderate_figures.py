"""What the figure of 2509.25040 must show, and the one of tokens against their limit."""

import functools

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from tokenflock.papers.moderate.figures import (
    before_merges,
    collapse_rate,
    fallen_at,
    merge_times,
    steepest,
    three_phases,
)
from tokenflock.papers.perspective.figures.limit import mean_field_limit

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def phases():
    return three_phases.compute()


@functools.cache
def limits():
    return mean_field_limit.compute()


def test_collapse_then_clusters_then_merging():
    """In one run: the plane is reached, and clusters rest on it, before any two tokens are joined."""
    data = phases()
    fallen = int(np.searchsorted(data.time.values, fallen_at(data)))
    assert fallen_at(data) < float(before_merges(data).time[-1])
    assert int(data.clusters[fallen]) == 3
    assert int(data.clusters[-1]) == 1
    assert np.all(np.diff(data.clusters.values[fallen:]) <= 0)


def test_clusters_are_connected_components():
    """At every saved time by scipy, also while tokens are spread over the sphere."""
    data = phases()
    z, angle = data.height.values, data.angle.values
    level = np.sqrt((1 - z) * (1 + z))
    x = np.stack([level * np.cos(angle), level * np.sin(angle), z], axis=-1)
    cosines = np.einsum("tid,tjd->tij", x, x)
    # No pair of the saved times is so close to the threshold that rounding of the angles decides.
    assert np.min(np.abs(cosines - np.cos(float(data.beta) ** -0.5))) > 1e-12
    linked = cosines >= np.cos(float(data.beta) ** -0.5)
    counts = [connected_components(one, directed=False)[0] for one in linked]
    np.testing.assert_array_equal(data.clusters, counts)
    assert counts[0] == 9


def test_within_clusters_heights_fall_at_rate_one_and_not_at_the_gap():
    """Three clusters see each other with weights e^{-beta(1-c)} < 0.01, which is what the rate may miss.

    Nothing jumps on the way, as merged tokens would: no rate between saved times exceeds the gap.
    """
    data = before_merges(phases())
    t, height = data.time.values, np.abs(data.height.values).max(axis=-1)
    late = height < 1e-4
    assert t[late][-1] - t[late][0] > 5
    rate = -np.polyfit(t[late], np.log(height[late]), 1)[0]
    assert collapse_rate(float(data.gap)) == 1.0
    assert rate == pytest.approx(1.0, abs=0.02)
    steps = -np.diff(np.log(steepest(data))) / np.diff(t)
    assert np.max(steps) < float(data.gap) * 1.01


def test_tokens_fall_like_their_limit():
    """Mean squares of 64 heights, within 4 of their standard errors until the limit has fallen to 0.15.

    The limit starts at 1/3; so do tokens, up to the error sqrt(4/45/64) of independent uniform ones.
    """
    data = phases()
    limit = data.limit_height.values
    squares = data.height.values[: len(limit)] ** 2
    error = squares.std(axis=-1, ddof=1) / 8
    assert limit[0] == pytest.approx(3**-0.5, abs=1e-14)
    assert limit[-1] < 0.15
    assert np.all(np.abs(squares.mean(axis=-1) - limit**2) < 4 * error)
    # A limit that stands still, or falls at half the speed, would be seen.
    assert np.any(np.abs(squares.mean(axis=-1) - limit[0] ** 2) > 4 * error)
    slower = np.interp(data.limit_time / 2, data.limit_time, limit)
    assert np.any(np.abs(squares.mean(axis=-1) - slower**2) > 4 * error)


def test_rate_of_collapse_is_the_spectrum_of_the_linearised_heights():
    """Two clusters of three tokens on the plane, by eigenvalues of (1 - gap) A - diag(A <x, x>)."""
    for gap in (0.5, 2.0, 3.0):
        x = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 3, axis=0)
        weights = np.exp(9.0 * x @ x.T)
        weights /= weights.sum(axis=1, keepdims=True)
        pull = (1 - gap) * weights - np.diag(np.sum(weights * (x @ x.T), axis=1))
        slowest = -np.max(np.linalg.eigvals(pull).real)
        # the far cluster has the share e^{-18} = 1.5e-8, times 1 + |1 - gap| <= 3
        assert slowest == pytest.approx(collapse_rate(gap), abs=1e-7)


def test_merges_come_one_by_one_at_times_of_the_right_order():
    moments, foretold = merge_times(phases())
    assert len(moments) == 2
    np.testing.assert_allclose(np.log(moments / foretold), 0.0, atol=np.log(4))
    assert moments[1] > 10 * moments[0]


def test_rates_towards_the_limit():
    """Within 4 standard errors of -1/2, which are what the law of W2 makes them.

    n W2^2 of independent uniform tokens is (2 pi)^2 times Watson's statistic, of mean 1/12 and variance
    1/360: 16 draws know its root to 0.32/4, so slopes over a factor 16 to 0.32/4 sqrt(2)/log(16) = 0.04.
    """
    data = limits()
    errors = data.rate_error.values
    assert np.all(np.abs(data.rate[:3] + 0.5) < 4 * errors[:3])
    foretold = np.sqrt(1 / 360) * 12 / 2 / 4 * np.sqrt(2) / np.log(16)
    # Spreads of 16 draws are themselves known to about a fifth, and here the law is not flat.
    np.testing.assert_allclose(errors[:3], foretold, rtol=0.6)
    assert np.all(np.isnan(errors[3:]))
    assert float(data.rate[3]) == pytest.approx(-1.0, abs=0.01)


def test_drawings():
    assert len(three_phases.draw(phases()).axes) == 3
    axes = mean_field_limit.draw(limits()).axes[0]
    assert "W_2" in axes.get_ylabel()
    assert len(axes.get_legend().get_texts()) == 4
