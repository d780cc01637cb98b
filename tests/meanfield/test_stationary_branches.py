"""Branches of stationary states: thresholds, pitchforks, folds, first-order points, thermodynamics."""

import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind

import tokenflock as flock
from tokenflock import theory
from tokenflock.errors import InputError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.continuation import Curve, follow
from tokenflock.meanfield.sphere import Harmonics
from tokenflock.meanfield.stationary import (
    Branch,
    bifurcation_temperatures,
    branch,
    branches,
    stability,
    stationary_state,
)
from tokenflock.meanfield.stationary.branches import axial_residual
from tokenflock.meanfield.stationary.equation import at_temperature, stationary_equation
from tokenflock.meanfield.zonal import Zonal

MODELS = {"USA": flock.USA, "SA": flock.SA}
CIRCLE = Zonal(2, 40)


def ordered(beta, on=CIRCLE, low=0.8, high=1.5, name="USA", **options):
    """The first branch, between multiples of its threshold, and the threshold."""
    threshold = float(theory.critical_temperature(1, on.space.d, beta, named_kind(name)))
    return branch(
        MODELS[name](beta), on, (low * threshold, high * threshold), **options
    ), threshold  # fmt: skip


@pytest.fixture(scope="module")
def jump():
    return ordered(4.0)


@pytest.mark.parametrize("d", [2, 3, 8])
def test_thresholds_are_critical_temperatures(d):
    for name in MODELS:
        found = bifurcation_temperatures(MODELS[name](3.0), Zonal(d, 12))
        exact = theory.critical_temperature(np.arange(1, 13), d, 3.0, named_kind(name))
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-15)


def test_continuation_of_the_uniform_state_meets_every_threshold():
    """det of the Jacobian changes sign at c_1, c_2, c_3: found to 1e-8 without knowing them."""
    on = Zonal(3, 12)
    exact = theory.critical_temperature(np.array([1, 2, 3]), 3, 3.0)
    span = np.log([0.8 * exact[2], 1.2 * exact[0]])
    equation = stationary_equation(flock.USA(3.0), on)
    uniform = follow(
        axial_residual, np.zeros(12), span[1], args=equation, direction=-1,
        within=tuple(span), step=0.1,
    )  # fmt: skip
    assert uniform.ended == "left the range"
    assert np.max(np.abs(uniform.states)) < 1e-12
    found = np.exp([point.parameter for point in uniform.branch_points()])
    np.testing.assert_allclose(found, exact, rtol=1e-8)


MORE = [
    (2, 0.0, "USA"),
    (2, 3.0, "USA"),
    (2, 3.0, "SA"),
    (3, 1.5, "USA"),
    (8, 1.5, "USA"),
    (8, 6.0, "SA"),
]


@pytest.mark.parametrize(
    ("d", "beta", "name"),
    [
        (2, 2.0, "USA"),
        (3, 2.5, "USA"),
        (3, 1.5, "SA"),
        *[pytest.param(*case, marks=pytest.mark.slow) for case in MORE],
    ],
)
def test_pitchfork_curvature(d, beta, name):
    """(T/T_1 - 1)/r^2 at two small r, extrapolated: what is left is of order r^4 = 1e-7 or less."""
    found, threshold = ordered(beta, Zonal(d, 16), name=name, step=0.02, largest=0.03, points=2)
    slope = (found.temperatures / threshold - 1) / found.orders**2
    r = found.orders**2
    limit = (slope[0] * r[1] - slope[1] * r[0]) / (r[1] - r[0])
    assert limit == pytest.approx(theory.pitchfork_curvature(d, beta, named_kind(name)), abs=1e-5)


def test_sign_of_the_curvature_changes_at_beta_star():
    for d in (2, 3, 8, 64):
        star = float(theory.continuity_beta(d))
        assert abs(theory.pitchfork_curvature(d, star)) < 1e-12
        assert (
            theory.pitchfork_curvature(d, 0.99 * star)
            < 0
            < theory.pitchfork_curvature(d, 1.01 * star)
        )
        # SA's pitchfork is continuous at every beta we know
        assert np.all(
            theory.pitchfork_curvature(d, np.geomspace(1e-3, 300, 60), named_kind("SA")) < 0
        )
    # beta = 0: the known sqrt((d+2)(kappa-d))/d of order_parameter
    for d in (2, 5):
        r = theory.order_parameter(d * (1 + 1e-8), d)
        assert -1e-8 / r**2 == pytest.approx(theory.pitchfork_curvature(d, 0.0), rel=1e-6)


def test_below_beta_star_the_transition_is_continuous():
    found, threshold = ordered(2.0)
    assert found.folds() == []
    assert found.first_order_points() == []
    assert np.all(found.temperatures < threshold)
    assert np.all(np.diff(found.orders) > 0)
    assert np.all(found.advantages > 0)
    assert np.all(found.unstable == 0)


def test_above_beta_star_it_folds_and_jumps(jump):
    found, threshold = jump
    (fold,), (first,) = found.folds(), found.first_order_points()
    assert threshold < first < fold
    # K_c < K_# in the convention K = 1/(2 T)
    assert 1 / (2 * first) < theory.critical_coupling(2, 4.0)
    turn = int(np.argmax(found.temperatures))
    assert np.all(found.unstable[: turn - 1] == 1)
    assert np.all(found.unstable[turn + 1 :] == 0)
    assert np.all(found.advantages[found.temperatures < threshold] > 0)
    middle = found.at((threshold + first) / 2)
    assert len(middle) == 2
    # the state of lower order is the barrier between two minima
    model = at_temperature(flock.USA(4.0), (threshold + first) / 2)
    assert [stability(model, state).unstable for state in middle] == [1, 0]


def test_free_energy_changes_by_minus_the_entropy(jump):
    """Along stationary states dA/dT = -int rho log rho, since A is stationary in rho."""
    found, _ = jump
    for index in (3, 7, len(found.curve.points) - 2):
        point, step = found.curve.points[index], 1e-4
        sides = [found.curve.problem.along(point, sign * step) for sign in (-1, 1)]
        near = Branch(
            found.equation, found.on, 1, Curve(found.curve.problem, tuple(sides), "stopped")
        )
        slope = np.diff(near.advantages) / np.diff(near.temperatures)
        entropy = CIRCLE.scheme().entropy(jnp.asarray(found.states[index]))
        # central differences: step^2 = 1e-8 times derivatives of order 10, rounding 1e-15/1e-5
        assert slope[0] == pytest.approx(-float(entropy), rel=1e-5)


@pytest.mark.slow
def test_fourier_and_zonal_agree_and_resolution_does_not_matter(jump):
    found, _ = jump
    for on in (Fourier(40), Zonal(2, 48)):
        other, _ = ordered(4.0, on, low=0.98)
        assert other.folds() == pytest.approx(found.folds(), rel=1e-9)
        assert other.first_order_points() == pytest.approx(found.first_order_points(), rel=1e-9)


def test_states_of_a_branch_are_newton_states(jump):
    found, threshold = jump
    temperature = 0.9 * threshold
    (state,) = found.at(temperature)
    again = stationary_state(at_temperature(flock.USA(4.0), temperature), state)
    np.testing.assert_allclose(again.state, state.state, atol=1e-11)


@pytest.mark.slow
def test_in_three_dimensions_even_degrees_leave_both_ways():
    """Degree 2 on S^2: int p_2^3 > 0, so one direction goes up in temperature and the other down."""
    on = Zonal(3, 24)
    threshold = float(theory.critical_temperature(2, 3, 1.0))
    up, down = branches(flock.USA(1.0), on, (0.7 * threshold, 1.3 * threshold), degrees=[2])
    first = [found.temperatures[0] / threshold - 1 for found in (up, down)]
    assert first[0] > 0 > first[1]
    # transcritical: T/T_2 - 1 = t c/2 + .., t = int p_2^3 = 2 sqrt(5)/7, c = 0.02 the coefficient
    np.testing.assert_allclose(first, 0.02 * np.sqrt(5) / 7 * np.array([1, -1]), rtol=0.05)


@pytest.mark.slow
def test_several_clusters_become_metastable_in_the_cold():
    """Two opposite clusters at beta = 9: unstable at every temperature, ever more slowly."""
    found = branch(flock.USA(9.0), Fourier(64), (50.0, 200.0), degree=2)
    cold = np.argsort(found.temperatures)
    assert np.all(found.unstable == np.where(found.temperatures > 96.05518, found.unstable, 2))
    growths = found.growths[cold]
    assert np.all(found.orders < 1e-10)
    assert 0 < growths[0] < 0.1 * growths.max()
    # the single cluster at the same temperature relaxes at e^beta = 8103, faster by far
    assert growths[0] < 1e-3 * np.exp(9.0)


def test_refusals_say_what_to_do():
    with pytest.raises(InputError, match="widen them"):
        branch(flock.USA(1.0), CIRCLE, (1.0, 2.0))
    with pytest.raises(InputError, match="holds degrees 1 to 40"):
        branch(flock.USA(1.0), CIRCLE, (0.1, 2.0), degree=41)
    model, everywhere = flock.USA(2.0), Harmonics(12)
    for ask in (
        lambda: bifurcation_temperatures(model, everywhere),
        lambda: branch(model, everywhere, (0.1, 1.0)),
        lambda: branches(model, everywhere, (0.1, 1.0)),
    ):
        with pytest.raises(InputError, match=r"use Zonal\(3, degree\)"):
            ask()


def test_sa_has_no_free_energy():
    found, _ = ordered(1.5, Zonal(3, 16), name="SA", step=0.02, largest=0.03, points=2)
    for ask in (lambda: found.advantages, found.first_order_points):
        with pytest.raises(InputError, match="no free energy"):
            ask()
