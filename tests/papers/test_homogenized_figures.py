"""What the figures of 2604.01978 must show."""

import functools

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.ledger.finding import find_figure
from tokenflock.papers.homogenized.figures.collapse_depth import collapse
from tokenflock.papers.homogenized.figures.overlaps import overlap_paths, slow_limit, weak_error

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def computed(name):
    return find_figure(f"2604.01978v1/{name}").compute()


def data(figure):
    return computed(figure.id.split("/")[1])


def test_chains_follow_the_simplex_equation_within_its_noise():
    """Mean of the chains against the equation: 4 standard errors, and the O(1/d) that spread adds."""
    found = data(overlap_paths)
    d = found.attrs["settings"]["d"]
    mean, error = (
        found.overlap.mean("chain"),
        found.overlap.std("chain") / np.sqrt(found.chain.size),
    )
    assert np.all(np.abs(mean - found.predicted) < 4 * error + 3 / d)
    assert float(np.abs(found.predicted.sel(beta=0.0) - found.logistic).max()) < 2 / d
    assert np.all(np.diff(mean, axis=-1)[:, :10] > 0)
    # Large beta delays the collapse, in the equation and in the chains.
    middle = found.tau.size // 3
    assert float(found.predicted[2, middle]) < float(found.predicted[0, middle])
    assert len(overlap_paths.draw(found).axes) == 3


def test_depth_is_proportional_to_heads_over_squared_step():
    found = data(collapse)
    inside = np.abs(found.tau - found.tau.median()) < 2 * found.tau_error + 0.5
    assert bool(inside.all())
    np.testing.assert_allclose(found.layers * found.step**2 / found.heads, found.tau)
    assert float(found.flat) == pytest.approx(float(theory.logistic_depth(0.9, 1 / 8)))
    flat = found.depth.sel(beta=0.5)
    assert np.all(np.diff(flat) > 0)
    # log n, not n: four times the tokens add about log 4 + log(15/12), less than twice that.
    assert float(flat[-1] - flat[0]) < 2 * np.log(5)
    assert "layers" in collapse.draw(found).axes[0].get_ylabel()


def test_the_corrected_law_explains_what_the_printed_one_leaves():
    """At small beta the chains lie on the law with eta and d, and above the one without."""
    found = data(collapse)
    unit = (found.step**2 / found.heads).transpose(*found.tau.dims)
    law = np.interp(unit, found.unit, found.law_tau)
    # Depths are whole layers: one unit more.
    assert np.all(np.abs(found.tau.values - law) < 1.5 * found.tau_error.values + unit.values)
    assert float(np.mean(found.tau / found.flat)) > 1.08
    grown, flat = np.interp(found.n, found["size"], found.law_depth), found.sel(beta=0.5)
    assert np.all(np.abs(flat.depth.values - grown) < 1.5 * flat.depth_error.values + 0.13)


def test_measured_k_lies_on_the_exact_curve_and_far_from_one():
    found = data(slow_limit)
    assert np.all(np.abs(found.k - found.k_exact) < 4.5 * found.k_error)
    assert np.all(found.k - 5 * found.k_error > 1.2)
    assert np.all(np.diff(found.k_exact, axis=1) > 0)
    # The chain is told apart from k = 1: fewer probes have come to the ends than that equation says.
    beyond = np.mean(np.abs(np.tanh(found.chain)) > 0.9)
    shares = np.mean(np.abs(np.tanh(found.path)) > 0.9, axis=-1)
    error = 4 * np.sqrt(0.25 / found.chains.size)
    assert beyond < float(shares.sel(coefficient=1.0)) - error / 2
    assert abs(float(beyond) - float(shares.sel(coefficient=2.0))) < error + 2 / 24
    assert len(slow_limit.draw(found).axes) == 2


def test_errors_fall_with_their_orders():
    found = data(weak_error)
    orders = np.log2(found.error.values[:, :-1] / found.error.values[:, 1:])
    np.testing.assert_allclose(orders[0], 1, atol=0.2)
    np.testing.assert_allclose(orders[1], 2, atol=0.2)
    np.testing.assert_allclose(orders[2], 1, atol=0.2)
    weak = np.log2(found.weak.values[:, :-1] / found.weak.values[:, 1:])
    np.testing.assert_allclose(weak[:, 1:], 2, atol=0.15)
    left, right = weak_error.draw(found).axes
    assert left.get_yscale() == right.get_yscale() == "log"
