"""What the figures of the noisy papers must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.noisy_any_dimension.figures import branches_figure, phase_diagram
from tokenflock.papers.noisy_stationary.figures import cluster_branches

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def transitions():
    return branches_figure.compute(dimensions=(2,))


def test_the_loop_is_there_above_beta_star_only():
    data = transitions().sel(d=2)
    loop = (data.up - data.down).max("step")
    # 300/T_1 leaves e^{-300 * 0.012} = 3 % of the order at the temperature next to the threshold
    assert float(loop.sel(ratio=0.75)) < 0.03
    assert float(loop.sel(ratio=1.6)) > 0.5
    assert np.isnan(float(data.fold.sel(ratio=0.75)))
    assert 1 < float(data.jump.sel(ratio=1.6)) < float(data.fold.sel(ratio=1.6))


def test_the_sweep_lies_on_the_branch():
    for ratio in (0.75, 1.6):
        one = transitions().sel(d=2, ratio=ratio)
        stable = (one.unstable == 0) & np.isfinite(one.temperature)
        order = np.argsort(one.temperature.values[stable])
        branch = np.interp(
            one.swept, one.temperature.values[stable][order], one.order.values[stable][order]
        )
        cold = one.swept.values < 0.98
        # a polygon through the points of the branch: sagging of some steps^2/8
        np.testing.assert_allclose(one.up.values[cold], branch[cold], atol=0.01)


def test_tokens_lie_on_the_branch():
    data = transitions()
    n = data.attrs["settings"]["n"]
    cold = data.sel(ratio=1.6)
    assert float(np.abs(cold.tokens - cold.expected).max()) < 3 / np.sqrt(n)


def test_free_energies_cross_where_the_jump_is_drawn():
    one = transitions().sel(d=2, ratio=1.6)
    calm = (one.unstable == 0) & np.isfinite(one.temperature)
    preferred = one.temperature.values[calm & (one.advantage > 0)]
    assert preferred.max() < float(one.jump)
    assert np.all(one.advantage.values[calm & (one.temperature > one.jump)] < 0)


def test_phase_diagram_starts_at_beta_star():
    data = phase_diagram.compute(betas=(2.0, 2.6, 4.0), curved=(1.0,), dimensions=(2, 3))
    np.testing.assert_allclose(data.star, [2.446918, 1.816155], atol=1e-6)
    assert np.isnan(data.jump.sel(d=2, beta=2.0))
    assert np.all(data.jump.sel(d=3) > 1)
    known = data.jump < data.fold
    assert bool(known.where(np.isfinite(data.jump), True).all())
    assert np.all(np.diff(data.fold.sel(d=3)) > 0)
    near = [float(data.curvature.sel(model=m, d=3).interp(fine_beta=1.0)) for m in ("USA", "SA")]
    np.testing.assert_allclose(data.measured.sel(d=3, curved=1.0), near, atol=2e-3)


def test_clusters_are_saddles_that_slow_down():
    data = cluster_branches.compute(clusters=2)
    two = data.sel(degree=2)
    inside = np.isfinite(two.temperature)
    assert np.all(two.unstable.values[inside][4:] == 2)
    last = int(np.flatnonzero(inside)[-1])
    assert two.growth[last] < 0.02 * two.forming[last]
    peaks = two.density.values
    assert np.sum((peaks > np.roll(peaks, 1)) & (peaks >= np.roll(peaks, -1)) & (peaks > 1)) == 2
    np.testing.assert_allclose(data.density.mean("angle"), 1, atol=1e-12)
