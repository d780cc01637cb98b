"""Branches of critical points against closed forms: a pitchfork, a fold, and rotations along the way.

Two atoms of mass 1/2 at angles +-phi around -e_1 in the potential s f(x), f even in phi with f = -g(phi):
E = (1/(4 b))(1 + e^{b (cos 2 phi - 1)}) - s g(phi) in form B, so that off phi = 0
s = -sin phi cos phi e^{-2 b sin^2 phi}/g'(phi). For g = cos phi the pair splits at s = 1, in a pitchfork.
"""

import functools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.meanfield.landscape import (
    branch_point,
    certify,
    continue_branch,
    critical_near,
    switch_branch,
)
from tokenflock.terms import Potential
from tokenflock.terms.perceptron import Activation, Perceptron

HALF = Activation("half", lambda s: 0.5 + 0.0 * s, lambda s: s)
PAIR = ([[-1.0, 0.0], [-1.0, 0.0]], [0.5, 0.5])


def linear(size):
    """v = size x_1 as a perceptron of one neuron, so that f = v/2 = (size/2) x_1."""
    return Perceptron.gradient([size], [[1.0, 0.0]], HALF)


@functools.cache
def split_in_scale(beta=1.5):
    point = critical_near(flock.USA(beta, "metastability", plus=linear(4.0)), *PAIR)
    return point, continue_branch(point, "scale", 0.2, largest=0.05)


@pytest.mark.slow
def test_two_atoms_in_one_place_split_at_their_pitchfork():
    _, branch = split_in_scale()
    assert branch.event_kind.values.tolist() == ["bifurcation"]
    assert branch.event_multiplicity.values.tolist() == [1]
    # f = 2 s x_1: the pair splits at 2 s = 1. Eigenvalues 2 s (both atoms) and 2 s - 1 (against each other).
    assert float(branch.event_parameter[0]) == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_allclose(branch.eigenvalues[:, 0], 2 * branch.scale - 1, atol=1e-12)
    np.testing.assert_allclose(branch.eigenvalues[:, 1], 2 * branch.scale, atol=1e-12)
    np.testing.assert_array_equal(branch.negative, (branch.scale < 0.5).astype(int))


def test_the_other_branch_of_the_pitchfork_is_the_closed_form():
    point, branch = split_in_scale()
    for side in (1.0, -1.0):
        other = switch_branch(point, branch, 0, side, largest=0.05)
        phi = other.angle.values - np.pi
        phi = np.mod(phi + np.pi, 2 * np.pi) - np.pi
        np.testing.assert_allclose(phi[:, 0], -phi[:, 1], atol=1e-10)
        expected = np.cos(phi[:, 0]) * np.exp(-3 * np.sin(phi[:, 0]) ** 2) / 2
        np.testing.assert_allclose(other.scale, expected, atol=1e-10)
        assert np.abs(phi).max() > 0.4
        # The first point is the pitchfork itself.
        np.testing.assert_allclose(phi[0], 0.0, atol=1e-9)
        assert bool((other.kappa[1:] > 0).all())
        assert other.attrs["ended"] == "left the range"


def test_a_turn_at_the_pitchfork_is_met_from_the_split_pair():
    """Equal atoms rise to s = 1/2, change places there and fall: the eigenvalue only touches zero."""
    phi = 0.3
    size = np.cos(phi) * np.exp(-3 * np.sin(phi) ** 2) / 2
    x = [[-np.cos(phi), np.sin(phi)], [-np.cos(phi), -np.sin(phi)]]
    point = critical_near(flock.USA(1.5, "metastability", plus=linear(4.0 * size)), x, [0.5, 0.5])
    branch = continue_branch(point, "scale", 2.0, largest=0.05)
    assert bool((branch.kappa > 0).all())
    assert branch.event_kind.values.tolist() == ["bifurcation"]
    assert branch.event_multiplicity.values.tolist() == [1]
    assert float(branch.event_parameter[0]) * size == pytest.approx(0.5, abs=1e-6)


@pytest.mark.slow
def test_a_branch_in_beta_meets_its_pitchfork():
    """In form A the pair in f = 2 x_1 splits where e^beta = 2."""
    point = critical_near(flock.USA(0.3, plus=linear(4.0)), *PAIR)
    branch = continue_branch(point, "beta", 1.5, largest=0.05)
    assert float(branch.event_parameter[0]) == pytest.approx(np.log(2.0), abs=1e-6)
    np.testing.assert_allclose(branch.kappa, 2 - np.exp(branch.beta), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_a_fold_lies_where_the_closed_form_turns():
    """g = cos phi + 0.3 cos 3 phi at b = 0.1: s(phi) rises from the pitchfork and falls after the fold."""
    beta, start = 0.1, 0.6

    def size(phi):
        slope = -np.sin(phi) - 0.9 * np.sin(3 * phi)
        return -np.sin(phi) * np.cos(phi) * np.exp(-2 * beta * np.sin(phi) ** 2) / slope

    def potential(x):
        """size(start) f, f = -g = x_1 + 0.3 (4 x_1^3 - 3 x_1) at x_1 = -cos phi."""
        return size(start) * (x[0] + 0.3 * (4 * x[0] ** 3 - 3 * x[0]))

    model = flock.USA(beta, "metastability", plus=Potential(potential))
    x = [[-np.cos(start), np.sin(start)], [-np.cos(start), -np.sin(start)]]
    point = critical_near(model, x, [0.5, 0.5])
    np.testing.assert_allclose(np.abs(point.angles), np.pi - start, atol=1e-12)
    branch = continue_branch(point, "scale", 10.0, within=(0.5, 10.0), largest=0.05)
    turning = minimize_scalar(lambda phi: -size(phi), bounds=(0.05, 1.5), method="bounded")
    folds = branch.event_parameter.values[branch.event_kind.values == "fold"]
    assert folds * size(start) == pytest.approx([-turning.fun], rel=1e-8)
    assert float(branch.scale[-1]) < folds[0]


@pytest.mark.slow
def test_rotations_do_not_stop_a_branch():
    """Three unequal atoms without a perceptron: every beta, one rotation, no drift of the residual."""
    points = [[1.0, 0.1], [-0.5, 0.8], [-0.5, -0.9]]
    point = critical_near(flock.USA(2.0, "metastability"), points, [0.4, 0.3, 0.3])
    branch = continue_branch(point, "beta", 6.0)
    assert branch.attrs["ended"] == "left the range"
    assert float(branch.beta[-1]) == pytest.approx(6.0, abs=1e-12)
    assert float(branch.residual.max()) < 1e-12
    assert float(branch.kappa.min()) > 0
    later = branch_point(point, branch, -1)
    found = certify(later)
    assert later.converged
    assert (found.verdict, found.rotations) == ("SOPD", 1)
    assert found.transverse_kappa == pytest.approx(float(branch.kappa[-1]), rel=1e-9)


def test_what_cannot_be_continued_is_refused():
    point, branch = split_in_scale()
    with pytest.raises(InputError, match="no perceptron"):
        continue_branch(critical_near(flock.USA(1.0), *PAIR), "scale", 2.0)
    with pytest.raises(InputError, match="above 0"):
        continue_branch(point, "beta", -1.0)
    with pytest.raises(InputError, match="already"):
        continue_branch(point, "scale", 1.0)
    with pytest.raises(InputError, match="'beta' or 'scale'"):
        continue_branch(point, "mass", 2.0)
    with pytest.raises(InputError, match="1 events"):
        switch_branch(point, branch, 3)
