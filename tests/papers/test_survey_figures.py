"""What the figures of 2512.01868 must show."""

import functools

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.papers.survey import closed_forms
from tokenflock.papers.survey.figures import long_context, noisy_pitchfork

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def context():
    return long_context.compute(engine_sizes=(100,))


@functools.cache
def pitchfork():
    return noisy_pitchfork.compute(n=150, dimensions=(2,), ratios=(0.5, 2.0), dt=0.05)


def test_K6_9_attention_follows_the_finite_formula():
    data = context()
    expected = closed_forms.long_context_correlation(0.5, 2.0 * data.mark.values, 100)
    np.testing.assert_allclose(data.measured.sel(engine_n=100), expected, atol=1e-10)
    printed = np.interp([0.5, 0.9, 1.0, 1.1, 1.5], data.ratio, data.correlation.sel(n=1e2))
    np.testing.assert_allclose(
        printed, [0.993295, 0.872974, 0.802797, 0.728985, 0.547986], atol=1e-5
    )


def test_curves_meet_the_limit_at_the_stated_rates():
    data = context()
    assert data.attrs["at_critical"] == 0.8
    far = data["count"].values > 1e7
    slopes = {0.8: -0.4, 1.2: -0.2, 1.5: -0.5}
    for index, ratio in enumerate(data.curve.values):
        if ratio in slopes:
            line = np.polyfit(np.log(data["count"][far]), np.log(data.error[index, far]), 1)[0]
            assert abs(line - slopes[ratio]) < 0.03


def test_K6_11_noise_against_order():
    """kappa = 1: fluctuations only; kappa = 4: the theory's .8315."""
    data = pitchfork().sel(d=2)
    disordered, ordered = data.order.values
    assert disordered < 3 * (150 * 0.5) ** -0.5
    np.testing.assert_allclose(ordered, float(theory.order_parameter(4.0)), atol=0.06)


def test_drawings():
    left, right = long_context.draw(context()).axes
    assert left.get_xlabel() == r"$\gamma/\gamma_c$"
    assert right.get_xscale() == right.get_yscale() == "log"
    (axes,) = noisy_pitchfork.draw(pitchfork()).axes
    assert axes.get_xlabel() == r"$\kappa$"
