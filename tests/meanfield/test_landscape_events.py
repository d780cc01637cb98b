"""What happens on branches of critical points, against examples solved by hand.

Atoms at the corners of a regular polygon rest there at every beta in a potential of the same symmetry,
f = -(c/p^2) cos(p theta) with f'' = c at the corners. In form B, k = e^{b (cos - 1)} (b sin^2 - cos), the
motion xi_l = e^{2 pi i j l/p} has the eigenvalue mu_j + c with
mu_j = (1/p) sum_l k(2 pi l/p)(1 - cos(2 pi j l/p)).
For the square: c (all turn), (b e^{-b} + e^{-2b})/2 + c (twice), and b e^{-b} + c (neighbours against each
other), whose largest value c + 1/e is taken at b = 1.
"""

import numpy as np
import pytest
from numpy.polynomial import chebyshev, polynomial
from scipy.optimize import brentq
from scipy.special import lambertw

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.meanfield.landscape import continue_branch, critical_near, switch_branch
from tokenflock.terms import Potential, Sum
from tokenflock.terms.perceptron import Activation, Perceptron


def wave(number):
    """phi(s) = T_number(s): the neuron a = e_1 has v = omega cos(number theta)."""
    series = chebyshev.cheb2poly(np.eye(number + 1)[number])
    slope = polynomial.polyder(series) / 2
    return Activation(
        f"wave {number}",
        lambda s: sum(float(c) * s**k for k, c in enumerate(slope)),
        lambda s: sum(float(c) * s**k for k, c in enumerate(series)),
    )


WAVES = {number: wave(number) for number in (1, 3, 4, 5, 8)}


def waves(**sizes):
    """f = v/2 = sum size cos(number theta), the numbers given as w4=... ."""
    terms = [
        Perceptron.gradient([2 * size], [[1.0, 0.0]], WAVES[int(name[1:])])
        for name, size in sizes.items()
    ]
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def polygon(corners, curvature, beta, twice=None):
    """One atom per corner, where f'' = curvature; `twice` is the size of cos(2 p theta) in f."""
    first = -curvature / corners**2 - 4 * (twice or 0.0)
    sizes = {f"w{corners}": first} | ({} if twice is None else {f"w{2 * corners}": twice})
    angles = 2 * np.pi * np.arange(corners) / corners
    atoms = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    model = flock.USA(beta, "metastability", plus=waves(**sizes))
    return critical_near(model, atoms, np.full(corners, 1 / corners))


def stiffness(corners, j, beta):
    """mu_j."""
    angles = 2 * np.pi * np.arange(1, corners) / corners
    k = np.exp(beta * (np.cos(angles) - 1)) * (beta * np.sin(angles) ** 2 - np.cos(angles))
    return float(k @ (1 - np.cos(j * angles))) / corners


def events(branch):
    return list(
        zip(
            branch.event_kind.values.tolist(),
            branch.event_multiplicity.values.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("twice", [None, -1 / (300 * np.e)], ids=["cross", "alone"])
@pytest.mark.slow
def test_an_eigenvalue_touches_zero(twice):
    """c = -1/e: b e^{-b} + c <= 0, with zero at b = 1 only. Whether branches cross is not said by that.

    Neighbours moved by +-epsilon, q = sin^2 2 epsilon, f = A cos 4 theta + D cos 8 theta: dE/dq = 0 is
    0 = -(b - 1)^2/(16 e) + q (1/(48 e) + 16 D) + ...: two branches cross for D = 0, none for D < -1/(768 e).
    """
    point = polygon(4, -np.exp(-1), 0.5, twice)
    branch = continue_branch(point, "beta", 1.6, largest=0.05)
    alternating = branch.beta * np.exp(-branch.beta) - np.exp(-1)
    found = np.abs(branch.eigenvalues - alternating).min("mode")
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
    assert events(branch) == [("touch", 1)]
    # (b - 1)^2/(2 e) is smallest to its rounding 1e-16: b to 2e-8.
    assert float(branch.event_parameter[0]) == pytest.approx(1.0, abs=1e-7)
    with pytest.raises(InputError, match="a touch of multiplicity 1"):
        switch_branch(point, branch)


@pytest.mark.slow
def test_an_eigenvalue_beyond_zero_between_two_steps_crosses_twice():
    """c = -0.9995/e: b e^{-b} = 0.9995/e at two beta around 1, both within one step."""
    level = 0.9995 / np.e
    branch = continue_branch(polygon(4, -level, 0.5), "beta", 1.6, step=0.1, largest=0.11)
    expected = [-lambertw(-level, which).real for which in (0, -1)]
    steps = np.searchsorted(branch.beta.values, expected)
    assert steps[0] == steps[1], "the step must jump over both"
    assert events(branch) == [("bifurcation", 1)] * 2
    np.testing.assert_allclose(branch.event_parameter, expected, atol=1e-9)


def test_eigenvalues_that_cross_oppositely_in_one_place_all_count():
    """b e^b = 1 at b = 0.5671 = W(1): all three of the square's mu are W^2, one rises and two fall.

    Newton is singular there, so the place is interpolated between points some 8e-4 to either side (half of
    1/32 of a step), where a residual of 1e-12 moves a point by 1e-12/8e-4, about 1e-9.
    """
    omega = lambertw(1.0).real
    branch = continue_branch(polygon(4, -(omega**2), 0.3), "beta", 0.9, largest=0.05)
    assert events(branch) == [("bifurcation", 3)]
    assert float(branch.event_parameter[0]) == pytest.approx(omega, abs=5e-9)
    np.testing.assert_array_equal(branch.negative, np.where(branch.beta < omega, 2, 3))


@pytest.mark.slow
def test_as_many_up_as_down_is_a_touch():
    """The pentagon: mu_1 (twice) falls and mu_2 (twice) rises, equal at one beta: no sign changes."""
    place = brentq(lambda b: stiffness(5, 1, b) - stiffness(5, 2, b), 0.1, 3.0, xtol=1e-14)
    slopes = [stiffness(5, j, place + 0.01) - stiffness(5, j, place - 0.01) for j in (1, 2)]
    assert slopes[0] < 0 < slopes[1]
    point = polygon(5, -stiffness(5, 1, place), place - 0.3)
    branch = continue_branch(point, "beta", place + 0.3, largest=0.05)
    np.testing.assert_array_equal(branch.negative, 3)
    assert events(branch) == [("touch", 4)]
    assert float(branch.event_parameter[0]) == pytest.approx(place, abs=1e-7)


def unequal_pair(skew, masses, size=1.2):
    """Two atoms at theta = 0 in f = size (-cos + skew (sin - sin 2/2)): f''(0) = size, f''' = 3 skew size."""
    own = Potential(lambda x: size * (-x[0] + skew * (x[1] - x[0] * x[1])))
    model = flock.USA(1.0, "metastability", plus=own)
    return critical_near(model, [[1.0, 0.0], [1.0, 0.0]], masses)


@pytest.mark.slow
def test_unequal_atoms_in_a_skew_potential_meet_a_transcritical_branch():
    """With delta = theta_1 - theta_2 and size s, f' = theta + g theta^2/2: the centre of mass moves by
    -(g/2) m_1 m_2 delta^2 and s = 1 - (g/2)(m_2 - m_1) delta + O(delta^2): the branch goes on across s = 1.
    """
    skew, masses, size = 0.4, (0.7, 0.3), 1.2
    point = unequal_pair(skew, masses, size)
    branch = continue_branch(point, "scale", 0.6, largest=0.05)
    assert events(branch) == [("bifurcation", 1)]
    assert float(branch.event_parameter[0]) * size == pytest.approx(1.0, abs=1e-8)
    both = [
        switch_branch(point, branch, 0, side, 1e-3, within=(0.6, 1.0), largest=0.02)
        for side in (1.0, -1.0)
    ]
    slope = -(3 * skew / 2) * (masses[1] - masses[0])
    for other in both:
        delta = (other.angle[:, 0] - other.angle[:, 1]).values
        assert delta[0] == pytest.approx(0.0, abs=1e-9)
        assert float(other.scale[0]) == pytest.approx(float(branch.event_parameter[0]), abs=1e-12)
        assert float(other.residual[0]) < 1e-10
        # Two differences leave O(delta^2) of a curve whose third derivative is of order 10.
        rise = (other.scale.values[1:3] * size - 1) / delta[1:3]
        ahead = (rise[0] * delta[2] - rise[1] * delta[1]) / (delta[2] - delta[1])
        assert ahead == pytest.approx(slope, abs=20 * delta[2] ** 2)
    # One side turns at a fold, the other does not: the branch is not symmetric.
    kinds = sorted(tuple(other.event_kind.values) for other in both)
    assert kinds == [(), ("fold",)]


@pytest.mark.slow
def test_a_fold_and_a_bifurcation_within_one_step_are_told_apart():
    """The branch of the test above, met from afar in steps that jump over its fold and its crossing."""
    size, masses = 1.2, (0.7, 0.3)
    start = unequal_pair(0.05, masses, size)
    trivial = continue_branch(start, "scale", 0.6, largest=0.05)
    side = -1.0 if _folds(start, trivial, -1.0) else 1.0
    away = switch_branch(start, trivial, 0, side, 1e-3, within=(0.6, 1.0), largest=0.05)
    far = critical_near(
        flock.USA(1.0, "metastability", plus=_scaled(0.05, size * float(away.scale[-1]))),
        away.points[-1].values,
        masses,
    )
    back = continue_branch(far, "scale", 2.0, within=(0.9, 2.0), step=0.09, largest=0.1)
    assert sorted(events(back)) == [("bifurcation", 1), ("fold", 1)]
    scales = dict(zip(back.event_kind.values.tolist(), back.event_parameter.values, strict=True))
    assert scales["bifurcation"] * float(away.scale[-1]) * size == pytest.approx(1.0, abs=1e-6)
    assert scales["fold"] > scales["bifurcation"]


def _scaled(skew, size):
    return Potential(lambda x: size * (-x[0] + skew * (x[1] - x[0] * x[1])))


def _folds(start, trivial, side):
    other = switch_branch(start, trivial, 0, side, 1e-4, within=(0.8, 1.0), largest=0.02)
    return "fold" in other.event_kind.values


@pytest.mark.slow
def test_a_pitchfork_without_its_square_is_met_from_the_side():
    """f = -(cos + r cos 3)/(1 + 9 r): s = cos e^{-2 b u}/(1 - rho u), u = sin^2 phi, rho = 12 r/(1 + 9 r).

    rho = 2 b + 1/2 leaves s = 1 + (rho^2/2 - 1/4) phi^4: the pair at +-phi falls to s = 1 and rises again,
    its eigenvalue goes to zero like phi^4 and back, and no sign changes where the branch turns.
    """
    beta, phi = 0.5, 0.4
    rho = 2 * beta + 0.5
    r = rho / (12 - 9 * rho)
    u = np.sin(phi) ** 2
    size = np.cos(phi) * np.exp(-2 * beta * u) / (1 - rho * u)
    own = waves(w1=size / (1 + 9 * r), w3=size * r / (1 + 9 * r))
    atoms = [[-np.cos(phi), np.sin(phi)], [-np.cos(phi), -np.sin(phi)]]
    point = critical_near(flock.USA(beta, "metastability", plus=own), atoms, [0.5, 0.5])
    np.testing.assert_allclose(np.abs(point.angles), np.pi - phi, atol=1e-10)
    branch = continue_branch(point, "scale", 0.5, within=(0.5, 1.01), largest=0.05)
    assert events(branch) == [("bifurcation", 1)]
    assert float(branch.event_parameter[0]) * size == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(branch.event_points[0], [[-1.0, 0.0]] * 2, atol=1e-2)
