"""What the figure of 2501.18322 must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.gaussian import closed_forms
from tokenflock.papers.gaussian.figures import COVARIANCE, FLATTENING, GROWING, covariances, ellipse

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def data():
    return covariances.compute(saves=13)


def test_softmax_lies_on_its_closed_form():
    for case in ("softmax-negative", "softmax-positive"):
        one = data().sel(case=case)
        np.testing.assert_allclose(one.variances, one.exact, rtol=1e-6)


def test_rank_is_lost_onto_the_kernel_at_the_rate_one_over_t():
    one = data().sel(case="softmax-negative")
    np.testing.assert_allclose(FLATTENING @ data().kernel.values, 0.0, atol=1e-15)
    top = np.linalg.eigh(one.covariance.values[-1])[1][:, -1]
    assert abs(top @ data().kernel.values) == pytest.approx(1.0, abs=1e-3)
    late = one.time.values[-3:] * one.variances.values[-3:, 0]
    np.testing.assert_allclose(late, late[-1], rtol=0.02)
    limit = np.linalg.eigvalsh(closed_forms.softmax_limit(COVARIANCE, FLATTENING))[-1]
    assert one.variances.values[-1, 1] == pytest.approx(limit, rel=0.02)


def test_only_softmax_blows_up():
    star = float(data().blow_up_time)
    assert star == closed_forms.softmax_blow_up_time(COVARIANCE, GROWING)
    softmax = data().sel(case="softmax-positive")
    assert softmax.time.values[-1] < star
    # What is left of 1 - t/t* is 0.02, hence fifty times the start of the direction that blows up.
    assert softmax.variances.values[-1, 1] > 40
    bounds = {"sinkhorn": 2.0, "l2": 2.0 * np.linalg.norm(GROWING, 2) / 0.5}
    for case, fastest in bounds.items():
        one = data().sel(case=case)
        assert one.time.values[-1] > 2.9 * star
        rates = np.diff(np.log(one.variances.values[:, 1])) / np.diff(one.time.values)
        assert rates.max() < fastest


def test_an_ellipse_has_its_covariance():
    """The points Sigma^{1/2} u of a circle have half the covariance as their second moment."""
    curve = ellipse(COVARIANCE, 401)[:-1]
    np.testing.assert_allclose(curve.T @ curve / len(curve), COVARIANCE / 2, atol=1e-12)


def test_drawing():
    figure = covariances.draw(data())
    titles = [axes.get_title() for axes in figure.axes if "eigenvalues" not in axes.get_title()]
    assert len(titles) == 4
    assert "blow-up" in titles[1]
