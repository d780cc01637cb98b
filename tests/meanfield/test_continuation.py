"""Pseudo-arclength continuation on curves that are known in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.meanfield.continuation import follow, null_vector


def ellipse(x, parameter, axes):
    """x_0 = a cos s, parameter = b sin s; x_1 = x_0^2 rides along."""
    return jnp.array([(x[0] / axes[0]) ** 2 + (parameter / axes[1]) ** 2 - 1, x[1] - x[0] ** 2])


def pitchfork(x, parameter, args):
    """Branches x = 0 and x^2 = parameter - 1/3, with a linear passenger."""
    return jnp.array([(parameter - 1 / 3) * x[0] - x[0] ** 3, x[1] - 2 * x[0]])


@pytest.fixture(scope="module")
def around():
    return follow(ellipse, [2.9, 9.0], 0.0, args=jnp.array([3.0, 2.0]), points=200, largest=0.4)


def test_a_closed_curve_is_followed_around_its_folds(around):
    assert around.ended == "enough points"
    x, parameter = around.states[:, 0], around.parameters
    np.testing.assert_allclose((x / 3) ** 2 + (parameter / 2) ** 2, 1, atol=1e-13)
    assert max(point.residual for point in around.points) < 1e-13
    folds = [point.parameter for point in around.folds()]
    assert len(folds) >= 2
    # the folds alternate; dp/ds vanishes linearly there, so p is right to rounding
    np.testing.assert_allclose(folds, 2.0 * (-1.0) ** np.arange(len(folds)), atol=1e-14)


def test_points_with_a_given_parameter_are_found_on_every_sheet(around):
    first, second = around.at(1.0)[:2]
    np.testing.assert_allclose([first.state[0], second.state[0]],
                               3 * np.sqrt(0.75) * np.array([1, -1]), rtol=1e-13)  # fmt: skip


def test_crossings_of_any_number(around):
    places = around.crossings(lambda point: point.state[0] - 2 * point.parameter)
    # x = 2p: p^2 (4/9 + 1/4) = 1
    np.testing.assert_allclose(np.abs([p.parameter for p in places]), 6 / 5, rtol=1e-13)


def test_branch_point_and_its_other_branch():
    trivial = follow(pitchfork, [0.0, 0.0], -1.0, within=(-1.0, 1.0), step=0.07)
    assert trivial.ended == "left the range"
    assert trivial.parameters[-1] == pytest.approx(1.0, abs=1e-14)
    (point,) = trivial.branch_points()
    assert point.parameter == pytest.approx(1 / 3, abs=1e-14)
    assert trivial.folds() == []
    leaving = null_vector(point, trivial.problem)
    np.testing.assert_allclose(np.abs(leaving), np.array([1, 2, 0]) / np.sqrt(5), atol=1e-12)
    other = follow(pitchfork, point.state, point.parameter, tangent=leaving, within=(-1, 1))
    np.testing.assert_allclose(other.states[:, 0] ** 2, other.parameters - 1 / 3, atol=1e-13)


def test_unit_changes_the_steps_not_the_curve(around):
    coarse = follow(
        ellipse, [2.9, 9.0], 0.0, args=jnp.array([3.0, 2.0]), points=200, largest=0.4, unit=0.1
    )
    np.testing.assert_allclose(
        coarse.states[:, 0] ** 2 / 9 + coarse.parameters**2 / 4, 1, atol=1e-13
    )
    assert coarse.parameters[1] < around.parameters[1]
    assert coarse.folds()[0].parameter == pytest.approx(2.0, abs=1e-14)


def test_ends_are_told():
    def keep(point):
        return point.state[0] > 1

    stopped = follow(ellipse, [2.9, 9.0], 0.0, args=jnp.array([3.0, 2.0]), largest=0.4, keep=keep)
    assert stopped.ended == "stopped"
    assert stopped.states[-1, 0] > 1
    with pytest.raises(InputError, match="outside of within"):
        follow(ellipse, [2.9, 9.0], 3.0, args=jnp.array([3.0, 2.0]), within=(0, 1))
    with pytest.raises(InputError, match="start closer"):
        follow(ellipse, [2.9, 9.0], 3.0, args=jnp.array([3.0, 2.0]))
    with pytest.raises(InputError, match="smallest <= step <= largest"):
        follow(ellipse, [2.9, 9.0], 0.0, args=jnp.array([3.0, 2.0]), step=1.0)
