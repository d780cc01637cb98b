"""Critical points found from flows, their certificates and the bounds (P1-3, P1-7, P1-9, P1-10)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.meanfield.landscape import certify, critical_near, crowding, explore, find_critical
from tokenflock.meanfield.landscape.counting import crowded_mass
from tokenflock.meanfield.landscape.structure import moved, tangent_frames
from tokenflock.terms import Potential
from tokenflock.terms.perceptron import GELU, RELU, Perceptron

GRID = flock.from_angles(2 * np.pi * (np.arange(48) + 0.5) / 48)


def weights(seed, d=2, scale=1.0, activation=RELU):
    """omega_j ~ N(0, scale^2)."""
    return Perceptron.random(d, d, seed, scale * d**0.5, gradient=True, activation=activation)


@functools.cache
def found(beta, seed, scale=1.0, activation=RELU, direction="descent"):
    model = flock.USA(beta, "metastability", plus=weights(seed, 2, scale, activation))
    return find_critical(model, GRID, direction)


@pytest.mark.slow
def test_P1_9_descent_from_a_grid_ends_in_few_atoms():
    """A seed that converges: field 1e-12, groups farther apart than the threshold, masses that add up."""
    point = found(4.0, 2)
    assert point.converged
    assert point.count == 3
    assert crowding(point).clusters == 3
    assert point.masses.sum() == pytest.approx(1.0, abs=1e-14)
    certificate = certify(point)
    assert certificate.verdict == "strict SOPD"
    assert certificate.splitting.min() > 0
    # The field of the model itself, not of the landscape.
    speed = point.model.field(0.0, jnp.asarray(point.points), point.as_measure())
    assert float(jnp.max(jnp.abs(speed))) < 1e-12


@pytest.mark.slow
def test_eigenvalues_are_those_of_the_energy_in_geodesic_coordinates():
    """scipy's generalised eigenvalues of autodiff's Hessian of E(exp_x(xi)), the masses as metric."""
    point = found(4.0, 2)
    landscape, x = point.landscape, jnp.asarray(point.points)
    masses, frames = jnp.asarray(point.masses), tangent_frames(x)

    def energy(xi):
        return landscape.energy(moved(x, frames, xi[:, None]), masses)

    H = np.asarray(jax.hessian(energy)(jnp.full(3, 1e-12)))
    expected = scipy.linalg.eigh(H, np.diag(point.masses), eigvals_only=True)
    np.testing.assert_allclose(certify(point).eigenvalues, expected, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_P1_3_ascent_stays_below_the_energy_of_a_dirac_at_the_top(seed):
    point = found(4.0, seed, direction="ascent")
    circle = np.linspace(-np.pi, np.pi, 20_001)
    around = np.stack([np.cos(circle), np.sin(circle)], axis=-1)
    top = float(jnp.max(weights(seed).v(jnp.asarray(around))))
    assert point.converged
    assert point.energy <= 1 / 8 + top / 2 + 1e-6
    # A local maximum: no direction raises the energy.
    assert np.max(certify(point).eigenvalues) <= certify(point).tolerance


@pytest.mark.slow
@pytest.mark.parametrize(("convention", "scale"), [("perspective", 1.0), ("metastability", 0.1)])
def test_P1_7_masses_of_SOPD_states_obey_the_bound(convention, scale):
    """Every cluster of two or more atoms in an arc of 1/(2 sqrt b), where the bound is below 1."""
    tried = 0
    for activation in (RELU, GELU):
        for beta in (1.0, 4.0, 9.0):
            for seed in range(4):
                own = weights(seed, 2, scale, activation)
                point = find_critical(flock.USA(beta, convention, plus=own), GRID)
                certificate, counted = certify(point), crowding(point)
                if certificate.kappa < -1e-8 or point.residual > 1e-10:
                    continue
                if counted.mass_bound < 1:
                    tried += counted.crowded > 0
                    assert counted.crowded <= counted.mass_bound
                    assert counted.atoms <= counted.count_bound
    assert tried >= 6


def test_P1_7_the_bound_is_not_empty():
    """Two close atoms of mass 1/2 break it, and are not SOPD."""
    model = flock.USA(9.0, "metastability")
    point = critical_near(model, [[1.0, 0.0], [1.0, 0.0]], [0.5, 0.5])
    certificate = certify(point)
    assert certificate.verdict == "not SOPD"
    # m_1 = m_2 = 1/2: K''(0)/b e^{-b} = -1 gives eigenvalues 0 and -1.
    np.testing.assert_allclose(certificate.eigenvalues, [-1.0, 0.0], atol=1e-14)
    assert crowded_mass(point) == 1.0 > crowding(point).mass_bound


@pytest.mark.slow
def test_P1_10_minimiser_is_as_symmetric_as_the_perceptron():
    """One neuron on S^2: moments across its axis are isotropic, latitudes do not depend on the start."""
    model = flock.USA(1.0, "metastability", plus=Perceptron.gradient([0.3], [[0.0, 0.0, 1.0]]))
    starts = [flock.uniform(flock.Sphere(3), 64, seed) for seed in (0, 1)]
    heights = []
    for point in explore(model, starts):
        second = (point.masses[:, None] * point.points).T @ point.points
        np.testing.assert_allclose(point.masses @ point.points[:, :2], 0.0, atol=1e-2)
        np.testing.assert_allclose(second[0, 0], second[1, 1], atol=1e-2)
        np.testing.assert_allclose(second[0, 1], 0.0, atol=1e-2)
        assert certify(point).rotations == 1
        heights.append(np.sort(point.points[:, 2]))
    np.testing.assert_allclose(heights[0], heights[1], atol=1e-2)


@pytest.mark.slow
def test_an_atom_at_a_kink_is_certified_from_both_sides():
    """v = omega (a.x)_+^2 with the atom on a.x = 0: curvatures omega and 0, so one side is not strict."""
    point = critical_near(
        flock.USA(2.0, "metastability", plus=Perceptron.gradient([1.0], [[0.0, 1.0]])),
        [[1.0, 0.0]],
        [1.0],
    )
    certificate = certify(point)
    assert certificate.kinks == ((0, 0),)
    assert certificate.verdict == "unclear"
    assert "kink" in certificate.reason
    assert certificate.kappa == pytest.approx(0.0, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("direction", ["ascent", "descent"])
def test_SA_with_a_perceptron(d, direction):
    """b SA + u_paper = 0 with u_paper = b u: int e^{b x.y} P_x y dmu + w b u = 0, w = (1/b) int e^{b x.y}."""
    beta, own = 3.0, weights(1, d, 3.0, GELU)
    start = GRID if d == 2 else flock.uniform(flock.Sphere(3), 48, 0)
    point = find_critical(flock.SA(beta, plus=own), start, direction)
    assert point.converged
    assert np.isnan(point.energy)
    x, masses = point.points, point.masses
    kernel = np.exp(beta * x @ x.T) * masses
    push = np.asarray(own.field(0.0, jnp.asarray(x), point.as_measure(), flock.Dense()))
    stationary = kernel @ x + kernel.sum(axis=1, keepdims=True) * push
    stationary -= np.sum(stationary * x, axis=-1, keepdims=True) * x
    assert np.abs(stationary).max() < 1e-11
    certificate = certify(point)
    stable = certificate.eigenvalues if direction == "descent" else -certificate.eigenvalues
    assert stable.min() > 0 or certificate.verdict == "unclear"
    assert certificate.verdict in ("stable", "unstable", "unclear")


@pytest.mark.slow
def test_SA_without_a_perceptron_has_the_critical_points_of_USA():
    points, masses = [[1.0, 0.1], [-0.5, 0.8], [-0.5, -0.9]], [0.4, 0.3, 0.3]
    own = critical_near(flock.SA(2.0), points, masses)
    other = critical_near(flock.USA(2.0, "metastability"), own.points, masses)
    np.testing.assert_allclose(own.points, other.points, atol=1e-12)
    np.testing.assert_allclose(certify(own).eigenvalues, certify(other).eigenvalues, atol=1e-12)


def test_what_has_no_critical_point_is_said():
    with pytest.raises(InputError, match="descent"):
        find_critical(flock.USA(1.0), GRID, "sideways")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="on a sphere"):
        find_critical(flock.USA(1.0), flock.gaussian(flock.Euclidean(2), 4, 0))
    with pytest.raises(InputError, match="one mass each"):
        critical_near(flock.USA(1.0), [[1.0, 0.0]], [0.5, 0.5])
    pair = [0.5, 0.5]
    for nothing in (0.0, np.nan):
        with pytest.raises(InputError, match="atoms are directions"):
            critical_near(flock.USA(1.0), [[nothing, 0.0], [1.0, 0.0]], pair)
    with pytest.raises(InputError, match="3 coordinates, the model's weights 2"):
        critical_near(flock.USA(1.0, plus=weights(0)), np.eye(3)[:2], pair)
    with pytest.raises(InputError, match="'ascent', got 'up'"):
        critical_near(flock.USA(1.0), np.eye(2), pair, "up")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="merge is an angle"):
        find_critical(flock.USA(1.0), GRID, merge=-1.0)


def test_crowding_without_a_bound_has_none():
    """A potential that is no perceptron: the atoms are counted, the bounds are not known."""
    model = flock.USA(4.0, "metastability", plus=Potential(lambda x: x[0]))
    counted = crowding(critical_near(model, [[-1.0, 0.0]], [1.0]))
    assert counted.atoms == 1
    assert np.isnan([counted.mass_bound, counted.count_bound]).all()


@pytest.mark.slow
def test_weak_forces_beside_strong_attention_must_vanish_too():
    """Form A at beta = 30: e^30 = 1e13 beside a perceptron of size 1. A lone atom rests where grad v = 0."""
    own = Perceptron.gradient([1.0, -0.7], [[1.0, 0.2], [-0.3, 1.0]], GELU)
    model = flock.USA(30.0, "perspective", plus=own)
    slope = jax.grad(lambda t: own.v(jnp.stack([jnp.cos(t), jnp.sin(t)])[None])[0])
    rest = scipy.optimize.brentq(lambda t: float(slope(t)), 0.0, 0.5, xtol=1e-15)
    alone = critical_near(model, [[np.cos(1.0), np.sin(1.0)]], [1.0])
    assert alone.converged
    np.testing.assert_allclose(alone.angles, [rest], atol=1e-12)
    together = find_critical(model, flock.from_angles([0.3, 1.0]), "ascent")
    np.testing.assert_allclose(together.angles, [rest], atol=1e-12)


@pytest.mark.slow
def test_what_rounding_of_the_attention_hides_is_unclear():
    """Two atoms in one place pull with e^40 = 2e17, whose rounding exceeds any field of the perceptron."""
    own = Perceptron.gradient([1.0, -0.7], [[1.0, 0.2], [-0.3, 1.0]], GELU)
    close = np.array([1.0, 1.0 + 1e-9])
    x = np.stack([np.cos(close), np.sin(close)], axis=-1)
    point = critical_near(flock.USA(40.0, "perspective", plus=own), x, [0.5, 0.5])
    assert not point.converged
    assert certify(point).verdict == "unclear"
