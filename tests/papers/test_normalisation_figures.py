"""What the figures of 2510.22026 must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.normalisation.figures import (
    ALGEBRAIC,
    EXPONENTIAL,
    late_law,
    quantile,
    random_network,
    schemes,
)

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow

ALL = EXPONENTIAL + ALGEBRAIC


@functools.cache
def paths():
    return schemes.compute(schemes=("pre",), dots=6, times=60)


def run_network(*names):
    return random_network.compute(schemes=names, n=12, d=24, layers=24, samples=4, bins=200)


@functools.cache
def network():
    return run_network("peri")


def check_dots(data):
    for name in data.scheme.values:
        one = data.sel(scheme=name)
        line = np.interp(np.log(one.dot_time), np.log(one.time[1:]), np.log(one.gap[1:]))
        np.testing.assert_allclose(np.log(one.dot_gap), line, atol=0.05)


def test_K6_3_printed_values():
    """1 - rho at n = 16, beta = 2 under Pre-LN, and the slope of its tail."""
    data = paths()
    check_dots(data)
    gap, time = data.gap.sel(scheme="pre").values, data.time.values
    assert gap[-1] == pytest.approx(9.44997e-5, rel=1e-4)
    slope = np.diff(np.log(gap[-6:])) / np.diff(np.log(time[-6:]))
    np.testing.assert_allclose(slope, -2.03, atol=0.02)


def test_simulated_tokens_lie_on_the_scalar_systems():
    data = schemes.compute()
    check_dots(data)
    for name in ALL:
        gap = data.gap.sel(scheme=name).values
        law = late_law(name, data.time.values[1:], data.attrs["alpha"], data.attrs["tau"])
        late = (gap[1:] < 1e-4) & (gap[1:] > 1e-12)
        ratio = np.log(gap[1:][late] / law[late])
        assert np.ptp(ratio) < 0.35
    assert [len(axes.lines) for axes in schemes.draw(data).axes] == [9, 9]  # line, marks, law


def test_tokens_of_a_random_network_align():
    band = network().cosine.sel(scheme="peri")
    mean = band.sel(statistic="mean").values
    assert abs(mean[0]) < 0.1
    assert mean[2] > 0.3
    assert 0.7 < mean[-1] < 0.99
    assert np.all(band.sel(statistic="low") <= band.sel(statistic="high"))


def test_the_first_layers_and_the_last():
    """Peri-LN and nGPT start faster, Post-LN and nGPT end closer to 1, sqrt-scaling lags behind."""
    mean = run_network(*ALL).cosine.sel(statistic="mean")
    early, late = mean.sel(layer=2), mean.sel(layer=24)
    for normed in ("peri", "ngpt"):
        assert float(early.sel(scheme=normed)) > 2 * float(early.sel(scheme="post"))
    for fast in ("post", "ngpt"):
        for slow in ("pre", "peri", "mix"):
            assert 1 - late.sel(scheme=fast) < 0.3 * (1 - late.sel(scheme=slow))
    assert str(late.scheme[int(late.values.argmin())].values) == "sqrt"


def test_quantiles_of_a_histogram():
    uniform = np.full((1, 40), 1 / 40)
    assert quantile(uniform, 0.05)[0] == pytest.approx(-0.9)
    assert quantile(uniform, 0.95)[0] == pytest.approx(0.9)


def test_drawings():
    left, right = schemes.draw(paths()).axes
    assert left.get_ylabel() == r"$1-\rho(t)$"
    assert left.get_xscale() == "linear"
    assert right.get_xscale() == "log"
    panels = random_network.draw(network()).axes
    assert [axes.get_title() for axes in panels] == ["Peri-LN", "", ""]
    assert panels[0].get_xlabel() == "layer"
