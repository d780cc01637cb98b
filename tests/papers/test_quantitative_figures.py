"""What the figure of 2504.14697 must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.quantitative.figures import PROMISED, exponential_rate

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def rates():
    return exponential_rate.compute()


def test_distances_fall_faster_than_promised_and_at_the_sharp_rate_in_the_end():
    """What is left of a rate is of the relative order of W2^2, here with a factor of 3."""
    data = rates()
    np.testing.assert_allclose(data.sharp, [np.exp(-0.2) / 2, np.exp(-0.2), np.exp(0.2)])
    for d in data.dimension.values:
        one = data.sel(dimension=d).dropna("time")
        bound = float(one.distance[0]) * np.exp(-PROMISED * one.time)
        assert np.all(one.distance.values <= bound.values)
        left = 3 * float(one.distance[-1]) ** 2
        assert float(one.rate) == pytest.approx(float(one.sharp), rel=left)


def test_distance_of_the_start_is_that_of_a_von_mises_law():
    """|mean| = I_1/I_0 on the circle, coth k - 1/k on S^2, I_4/I_3 on S^7; quantiles to (pi/n)^2."""
    from scipy.special import iv

    mean = [iv(1, 1) / iv(0, 1), 1 / np.tanh(1) - 1, iv(4, 4) / iv(3, 4)]
    expected = np.sqrt(2 - 2 * np.array(mean))
    np.testing.assert_allclose(rates().distance[:, 0], expected, rtol=1e-5)


def test_small_beta_makes_one_cluster_and_large_beta_keeps_two():
    data = rates()
    small, large = data.order[:, -1].values
    assert small > 0.99
    # 2 p - 1 for the masses p = 0.7 and 0.3, which are whole numbers of the 160 quantiles.
    assert large == pytest.approx(0.4, abs=1e-3)
    final = data.angle.sel(beta=4.0)[-1].values
    assert np.max(np.abs(np.sin(final))) < 2 * np.pi / 160
    assert np.sum(np.cos(final) < 0) == round(0.3 * final.size)


def test_drawing():
    left, *fans = exponential_rate.draw(rates()).axes
    assert "W_2" in left.get_ylabel()
    assert len(left.get_legend().get_texts()) == 3
    assert [axes.get_title().split(":")[0] for axes in fans] == [r"$\beta=0.1$", r"$\beta=4$"]
