"""What the figure of 2509.25040 must show, and the one of tokens against their limit."""

import functools

import numpy as np
import pytest

from tokenflock.gallery.moderate import merge_times, three_phases
from tokenflock.gallery.perspective.limit import mean_field_limit

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def phases():
    return three_phases.compute()


@functools.cache
def limits():
    return mean_field_limit.compute()


def test_collapse_then_clusters_then_merging():
    data = phases()
    fallen = int(np.argmax(data.height.values < 1e-4))
    assert data.time.values[fallen] < 30
    # On the way down the slope falls exponentially, at the gap less what neighbours at beta = 5 average.
    early = (data.slope.values < 0.1) & (data.slope.values > 1e-5)
    rate = -np.polyfit(data.time.values[early], np.log(data.slope.values[early]), 1)[0]
    assert 0.4 * float(data.gap) < rate < 1.1 * float(data.gap)
    assert int(data.clusters[fallen]) == 3
    assert int(data.clusters[-1]) == 1
    assert np.all(np.diff(data.clusters.values[fallen:]) <= 0)


def test_merges_come_one_by_one_at_times_of_the_right_order():
    moments, foretold = merge_times(phases())
    assert len(moments) == 2
    np.testing.assert_allclose(np.log(moments / foretold), 0.0, atol=np.log(4))
    assert moments[1] > 10 * moments[0]


def test_rates_towards_the_limit():
    """Six draws know every size to a quarter, so the slope over a factor 16 to about 0.1."""
    data = limits()
    np.testing.assert_allclose(data.rate[:3], -0.5, atol=0.2)
    assert float(data.rate[3]) == pytest.approx(-1.0, abs=0.01)


def test_drawings():
    assert len(three_phases.draw(phases()).axes) == 3
    axes = mean_field_limit.draw(limits()).axes[0]
    assert "W_2" in axes.get_ylabel()
    assert len(axes.get_legend().get_texts()) == 4
